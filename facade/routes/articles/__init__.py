"""Document editing."""

from facade.routes.articles.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
