"""Document editing."""

from facade.routes.articles import endpoints, image

ENDPOINTS = (*endpoints.ENDPOINTS, image.ENDPOINT)

__all__ = ["ENDPOINTS"]
