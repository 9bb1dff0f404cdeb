"""The base class of all sections of the settings, and what they share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=256)]


class SettingsError(Exception):
    """Error raised when the settings are wrong; the text names the key and what it takes."""


class Section(BaseModel):
    """A table of the settings: unknown keys are errors, and values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def without_variables(value: Any) -> Any:
    """Return a value, or a table, of which no text holds a shell variable.

    Raises:
        ValueError: a text does.
    """
    for text in value.values() if isinstance(value, dict) else (value,):
        if isinstance(text, str) and "${" in text:
            raise ValueError(
                "variables are not expanded here; for a key write "
                'api_key_env = "NAME_OF_THE_VARIABLE"'
            )
    return value
