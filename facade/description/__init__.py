"""Descriptions of the API: the OpenAPI document and the page `/docs`."""
