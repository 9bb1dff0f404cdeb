"""The base class and shared types of the sections of the settings."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.common.key_format import looks_like_key

Name = Annotated[str, Field(min_length=1, max_length=256)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _variable_name(value: str) -> str:
    """Return the name of an environment variable unchanged.

    Raises:
        ValueError: the text is no such name; the message does not repeat it, as it may be a key.
    """
    if value and (not _VARIABLE.fullmatch(value) or looks_like_key(value)):
        raise ValueError(
            "must be the name of an environment variable, and looks like a key; use api_key or "
            "api_key_file for a key itself"
            if looks_like_key(value)
            else "must be the name of an environment variable: letters, digits and _"
        )
    return value


# The name of an environment variable with a key, or "".
VariableName = Annotated[str, AfterValidator(_variable_name)]

_Value = TypeVar("_Value")


class SettingsError(Exception):
    """Error raised for invalid settings; the message names the key and its valid values."""


class Section(BaseModel):
    """A table of the settings: unknown keys are errors, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PlanLimits(Section):
    """A limit for each plan."""

    personal_free: Annotated[int, Field(ge=0)]
    personal_pro: Annotated[int, Field(ge=0)]
    team_pro: Annotated[int, Field(ge=0)]
    enterprise: Annotated[int, Field(ge=0)]


def setting(
    default: _Value, description: str, *, details: str = "", seen: str = "", example: object = None
) -> _Value:
    """Return the field of a key, with its documentation.

    `gateway config example` prints the default and the description. The tables of settings in the
    documentation, which `make docs` writes, have the details too, and what callers see.

    Args:
        default: the value without the key.
        description: what the key sets, the unit and special values; plain text.
        details: continues the description; Markdown.
        seen: what a caller sees when a limit is reached; Markdown.
        example: a value that the example shows, commented out, instead of the default.
    """
    return Field(
        default,
        description=description,
        examples=None if example is None else [example],
        json_schema_extra={"details": details, "seen": seen},
    )


def without_variables(value: Any) -> Any:
    """Return a value or a table unchanged, after checking it for shell variables.

    Raises:
        ValueError: a text contains a variable, `${…}`.
    """
    for text in value.values() if isinstance(value, dict) else (value,):
        if isinstance(text, str) and "${" in text:
            raise ValueError(
                "variables are not expanded in settings; for a key, set api_key_env = "
                '"NAME_OF_THE_VARIABLE"'
            )
    return value
