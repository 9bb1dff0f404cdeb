"""The fields of a form as JSON: `svg[model]` is the member `model` of `svg`. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gateway.inference.v1.inference_pb2 import FormPart

# The parts of a name. Servers differ about points and white space between them.
_NAMES: Final = re.compile(r"[^\[\].\s]+")
# Bytes of a file that may be a text sent as a file.
_SHORT: Final = 256


def fields_of_form(parts: Iterable[FormPart]) -> Iterator[dict[str, Any]]:
    """Yield each text of a form as an object with one member; files are left out."""
    for part in parts:
        if part.HasField("filename") and len(part.content) > _SHORT:
            continue
        value: Any = part.content.decode(errors="replace")
        for name in reversed(_NAMES.findall(part.name) or [part.name]):
            value = {name: value}
        yield value
