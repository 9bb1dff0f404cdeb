"""Document editing."""

from facade.routes.articles import endpoints, image, sharing

ENDPOINTS = (*endpoints.ENDPOINTS, *sharing.ENDPOINTS, image.ENDPOINT)

__all__ = ["ENDPOINTS"]
