"""Families of models on Bedrock, which differ in what Converse takes for them. Pure.

Source: the user guide, "Supported models and model features", "Prompt caching" and the pages of
each family's parameters; and reports about what is rejected.
"""

import re
from enum import Enum, auto

from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.conversation.v1.conversation_pb2 import MediaKind
from services.inference.providers.base import Target


class Family(Enum):
    """A family of models with parameters of its own."""

    CLAUDE = auto()
    NOVA = auto()
    NOVA_2 = auto()
    GPT_OSS = auto()
    GPT = auto()
    KIMI = auto()
    OTHER = auto()


# Names begin with an inference profile's geography, or are ARNs that end in such a name.
_FAMILIES = (
    (re.compile(r"anthropic\.|claude"), Family.CLAUDE),
    (re.compile(r"amazon\.nova-2|\bnova-2"), Family.NOVA_2),
    (re.compile(r"amazon\.nova|\bnova-"), Family.NOVA),
    (re.compile(r"gpt-oss"), Family.GPT_OSS),
    (re.compile(r"openai\.|\bgpt-"), Family.GPT),
    (re.compile(r"moonshot|kimi"), Family.KIMI),
)
_CACHING = frozenset({Family.CLAUDE, Family.NOVA, Family.NOVA_2})
_OF_CLAUDE = frozenset({pb.MEDIA_KIND_IMAGE, pb.MEDIA_KIND_DOCUMENT})
_RESULT_STATUS = frozenset({Family.CLAUDE, Family.NOVA, Family.NOVA_2})


def family_of(target: Target) -> Family:
    """Return the family of a model; see `family_of_names`."""
    return family_of_names(target.upstream, target.name)


def family_of_names(upstream: str, callers_name: str) -> Family:
    """Return the family of a model, by Bedrock's name for it and the caller's.

    The ARN of an application inference profile does not say which model it has; the caller's name
    for the model then decides.
    """
    for name in (upstream, callers_name.rpartition("/")[2]):
        for pattern, family in _FAMILIES:
            if pattern.search(name.lower()):
                return family
    return Family.OTHER


def takes_cache_points(family: Family) -> bool:
    """Return whether models of a family cache prompts; others reject cache points."""
    return family in _CACHING


def takes_medium(family: Family, kind: MediaKind.ValueType) -> bool:
    """Return whether models of a family may read a kind of medium; unknown ones may."""
    return family is not Family.CLAUDE or kind in _OF_CLAUDE


def takes_result_status(family: Family) -> bool:
    """Return whether tool results may say that the tool failed."""
    return family in _RESULT_STATUS
