"""Models in Anthropic's format (Format B), and its pagination."""

from collections.abc import Mapping, Sequence

import orjson

from facade.dialects.lifecycle import moment, stage
from facade.dialects.pricing import pricing
from facade.dialects.queries import parse_limit
from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_DOCUMENT, MEDIA_KIND_IMAGE
from gateway.inference.v1.inference_pb2 import Model
from services.common.errors import invalid
from services.common.text.texts import quoted

DEFAULT_LIMIT = 20
_EFFORTS = ("low", "medium", "high", "max")
MAX_LIMIT = 1000


def render_model(model: Model) -> bytes:
    """Return the JSON of a model."""
    return orjson.dumps(_model_info(model))


def render_model_list(models: Sequence[Model], query: Mapping[str, str]) -> bytes:
    """Return the JSON of a page of `models`, in their order.

    `query` may have `limit` (1 to 1000; 20 when absent) and either `after_id` or `before_id`, the
    name of the model before or after the page.

    Raises:
        GatewayError: invalid, naming the query parameter.
    """
    limit = parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT)
    after, before = query.get("after_id"), query.get("before_id")
    if after is not None and before is not None:
        raise invalid("before_id", "before_id: must not be given together with after_id")
    if before is not None:
        end = _position(models, before, "before_id")
        start = max(0, end - limit)
        has_more = start > 0
    else:
        start = 0 if after is None else _position(models, after, "after_id") + 1
        end = min(len(models), start + limit)
        has_more = end < len(models)
    page = models[start:end]
    return orjson.dumps(
        {
            "data": [_model_info(model) for model in page],
            "has_more": has_more,
            "first_id": page[0].name if page else None,
            "last_id": page[-1].name if page else None,
        }
    )


def _position(models: Sequence[Model], name: str, parameter: str) -> int:
    for index, model in enumerate(models):
        if model.name == name:
            return index
    raise invalid(parameter, f"{parameter}: unknown model {quoted(name)}")


def _model_info(model: Model) -> dict[str, object]:
    return {
        "id": model.name,
        "type": "model",
        "display_name": model.display_name,
        "created_at": moment(model.created_at),
        "lifecycle": stage(model),
        "deprecated_at": moment(model.deprecated_at) if model.deprecated_at else None,
        "retires_at": moment(model.retires_at) if model.retires_at else None,
        "max_input_tokens": model.context_window or None,
        "max_tokens": model.max_output_tokens or None,
        "pricing": pricing(model),
        "capabilities": _capabilities(model),
    }


def _effort(model: Model, name: str) -> dict[str, bool]:
    """Return whether an effort is supported; of unknown efforts, all are translated."""
    return {"supported": name in model.efforts if model.efforts else model.thinking}


def _capabilities(model: Model) -> dict[str, object]:
    """Return known capabilities; unknown ones count as not supported."""
    no = {"supported": False}
    thinking = {"supported": model.thinking}
    return {
        "batch": no,
        "citations": no,
        "code_execution": no,
        "context_management": no,
        "effort": {**thinking, **{name: _effort(model, name) for name in _EFFORTS}},
        "image_input": {"supported": MEDIA_KIND_IMAGE in model.inputs},
        "pdf_input": {"supported": MEDIA_KIND_DOCUMENT in model.inputs},
        "server_tools": {**no, "code_execution": no, "web_search": no},
        "structured_outputs": {"supported": model.structured_output},
        "thinking": {
            **thinking,
            "types": {
                "enabled": thinking,
                "disabled": thinking,
                "adaptive": no,
                "between_tools": no,
            },
        },
    }
