"""Field types and limits that the wire types of all dialects share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from facade.dialects.validation import few_fields

UINT32_MAX = 2**32 - 1

# Maximum lengths of lists, in all dialects.
MAX_MESSAGES = 100_000
MAX_BLOCKS = 100_000  # of a message
MAX_TOOL_CALLS = 10_000  # of a message
MAX_TOOLS = 10_000
MAX_STOP_SEQUENCES = 1_000

Count = Annotated[int, Field(ge=0, le=UINT32_MAX)]
Positive = Annotated[int, Field(ge=1, le=UINT32_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class Extension(BaseModel):
    """An object of the gateway's own fields, in which unknown fields are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    _few_fields = model_validator(mode="before")(few_fields)


def given_values(fields: BaseModel) -> dict[str, Any]:
    """Return the fields that are given and not null."""
    return fields.model_dump(exclude_unset=True, exclude_none=True)
