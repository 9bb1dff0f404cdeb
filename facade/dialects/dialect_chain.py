"""Further models in a field of a dialect itself, as a chain of the gateway.

Anthropic's `fallbacks` and OpenRouter's `models` name models that are tried after the requested
one. Their providers could only try models of their own. Here they are steps like those of
`fallback_config`, which takes precedence: beside it, the field is passed on unchanged.

Sources: Anthropic's "Refusals and fallback", OpenRouter's "Model fallbacks".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from facade.dialects.fallback import FallbackFields
from facade.dialects.paths import SourceMap
from services.common.errors import GatewayError, invalid
from services.common.text.texts import MAX_NAME

MAX_STEPS = 16


def has_chain(body: FallbackFields, field: str) -> bool:
    """Return whether a field of a body is a list of further models to be tried by the gateway."""
    extra = body.model_extra
    return (
        extra is not None
        and isinstance(extra.get(field), list)
        and body.fallback in (None, "auto")
        and body.fallback_config is None
    )


def take_chain(
    body: FallbackFields,
    field: str,
    requested: str,
    overridden: Mapping[str, Any] | None,
    source_map: SourceMap,
) -> bool:
    """Move a list of further models to `fallback_config`; return whether there are any.

    Args:
        body: the body, which no other request shares; modified in place.
        field: the name of the field, which holds a list.
        requested: the requested model.
        overridden: the fields that an entry may override, with the objects that those of an entry
            are merged with, or None; None if entries are names.
        source_map: the positions of the entries are added.

    Raises:
        GatewayError: invalid, naming the entry.
    """
    assert body.model_extra is not None
    entries: Sequence[Any] = body.model_extra.pop(field)
    steps: list[dict[str, Any]] = []
    for index, entry in enumerate(entries):
        path = f"{field}[{index}]"
        name_path = path if overridden is None else f"{path}.model"
        name, parameters = _entry(entry, path, name_path, overridden)
        if name == requested and not parameters:
            continue  # OpenRouter's clients repeat it
        step = {"step_id": f"{field}-{index + 1}", "model": name}
        steps.append({**step, **({"parameters": parameters} if parameters else {})})
        source_map.chain.append(name_path)
    if len(steps) > MAX_STEPS:
        raise invalid(field, f"{field}: must name at most {MAX_STEPS} further models")
    if not steps:
        return False
    body.fallback = "enabled"
    body.fallback_config = {  # type: ignore[assignment]  # it is validated when it is read
        "strategy": {"mode": "sequential"},
        "steps": steps,
    }
    return True


def _entry(
    entry: Any, path: str, name_path: str, overridden: Mapping[str, Any] | None
) -> tuple[str, Mapping[str, Any]]:
    """Return the model of an entry, and the fields that it overrides."""
    name, parameters = entry, dict[str, Any]()
    if overridden is not None:
        if not isinstance(entry, dict):
            raise invalid(path, f"{path}: must be an object with a model")
        name = entry.get("model")
        for field, value in entry.items():
            if field != "model" and field not in overridden:
                allowed = ", ".join(overridden)
                raise invalid(
                    f"{path}.{field}", f"{path}.{field}: must be model or one of {allowed}"
                )
            if field != "model" and value is not None:
                parameters[field] = _merged(overridden[field], value)
    if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME):
        raise invalid(name_path, f"{name_path}: must be the name of a model")
    return name, parameters


def _merged(entry_value: Any, value: Any) -> Any:
    """Return the value of a field of an entry: an object is merged with that of the body."""
    return (
        {**entry_value, **value}
        if isinstance(entry_value, dict) and isinstance(value, dict)
        else value
    )


def of_caller(error: GatewayError, source_map: SourceMap) -> GatewayError:
    """Return an error about a step with the path of the caller's entry."""
    path = source_map.path_of_step(error.param)
    error.message = error.message.replace(error.param, path) if error.param else error.message
    error.param = path
    return error
