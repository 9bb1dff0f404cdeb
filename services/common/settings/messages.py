"""Messages about invalid settings, with the key that was probably meant."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def words(item: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the message for an error in settings of the class `model`."""
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] != "extra_forbidden":
        return item["msg"]
    # Imported on demand: most settings are valid.
    from difflib import get_close_matches

    *path, name = item["loc"]
    close = get_close_matches(str(name), _keys_at(path, model), n=1)
    return "unknown key" + (f"; did you mean {close[0]}?" if close else "")


def _keys_at(path: Sequence[int | str], model: type[BaseModel]) -> Iterable[str]:
    """Return the valid keys of the section at `path`."""
    section: Any = model
    for step in path:
        if isinstance(section, type) and issubclass(section, BaseModel):
            section = section.model_fields[str(step)].annotation
        else:
            section = get_args(section)[-1]  # the type of a list's items or a table's values
    fields: Mapping[str, Any] = section.model_fields
    return fields
