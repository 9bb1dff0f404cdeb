"""Document editing: translation between its JSON and the calls of the article service."""

from facade.dialects.articles.answers import render
from facade.dialects.articles.errors import Code, render_error, request_error
from facade.dialects.articles.reading import read, read_object

__all__ = [
    "Code",
    "read",
    "read_object",
    "render",
    "render_error",
    "request_error",
]
