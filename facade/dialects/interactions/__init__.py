"""Google's Interactions API over stored responses: translation between the two formats.

An interaction is a response whose steps are its items. The body of an interaction becomes the body
of a response, so that storage, continuation, background generation and every provider are those of
responses; response objects and their events become interactions and theirs.
"""

from facade.dialects.interactions.errors import interaction_error
from facade.dialects.interactions.events import InteractionEvents, InteractionStream, replayed
from facade.dialects.interactions.objects import render_interaction
from facade.dialects.interactions.paths import FIELD_NAMES
from facade.dialects.interactions.queries import InteractionQuery, parse_interaction_query
from facade.dialects.interactions.request import parse_interaction
from facade.dialects.interactions.types import InteractionBody

__all__ = [
    "FIELD_NAMES",
    "InteractionBody",
    "InteractionEvents",
    "InteractionQuery",
    "InteractionStream",
    "interaction_error",
    "parse_interaction",
    "parse_interaction_query",
    "render_interaction",
    "replayed",
]
