"""Document editing."""

from facade.routes.articles import comments, endpoints, image, sharing, suggestions

ENDPOINTS = (
    *endpoints.ENDPOINTS,
    *sharing.ENDPOINTS,
    *comments.ENDPOINTS,
    *suggestions.ENDPOINTS,
    image.ENDPOINT,
)

__all__ = ["ENDPOINTS"]
