"""Valid replacements for names that Gemini would reject. Pure."""

import re
from collections.abc import Iterable

from services.common.errors import model_not_found
from services.inference.providers.conversation_writer import digest_of

_MODEL = re.compile(r"(?:(?:models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]{0,200}", re.ASCII)
# FunctionDeclaration.name in Google's reference of the API.
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", re.ASCII)
_MAX_NAME = 64
_DIGEST_LENGTH = 12


def model_path(upstream: str) -> str:
    """Return the path of a model below the base URL.

    Raises:
        GatewayError: model_not_found, if the name is malformed.
    """
    if not _MODEL.fullmatch(upstream):
        raise model_not_found(upstream)
    return upstream if "/" in upstream else f"models/{upstream}"


def function_name(name: str) -> str:
    """Return a function name that Gemini accepts, derived from the given one."""
    if _NAME.fullmatch(name):
        return name
    kept = name[: _MAX_NAME - _DIGEST_LENGTH - 2]
    return f"_{kept}_{digest_of(name, _DIGEST_LENGTH)}"


def given_names(names: Iterable[str]) -> dict[str, str]:
    """Return the original names of functions that `function_name` renames, by the new name."""
    return {shaped: name for name in names if (shaped := function_name(name)) != name}
