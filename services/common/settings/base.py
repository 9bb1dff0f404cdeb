"""The base class and shared types of the sections of the settings."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=256)]


class SettingsError(Exception):
    """Error raised for invalid settings; the message names the key and its valid values."""


class Section(BaseModel):
    """A table of the settings: unknown keys are errors, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
