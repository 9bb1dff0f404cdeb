"""Models in OpenAI's format (Format A), with the gateway's own fields."""

from collections.abc import Iterable
from typing import Any

import orjson

from facade.dialects.lifecycle import day, stage
from facade.dialects.pricing import caches, pricing, token_pricing
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import MediaKind
from gateway.inference.v1.inference_pb2 import Model

_MEDIA: dict[MediaKind.ValueType, str] = {
    conversation.MEDIA_KIND_IMAGE: "image",
    conversation.MEDIA_KIND_DOCUMENT: "pdf",
    conversation.MEDIA_KIND_AUDIO: "audio",
    conversation.MEDIA_KIND_VIDEO: "video",
}


def render_model(model: Model) -> bytes:
    """Return the JSON of a model."""
    return orjson.dumps(_model(model))


def render_model_list(models: Iterable[Model]) -> bytes:
    """Return the JSON of a list of models, in the given order."""
    return orjson.dumps({"object": "list", "data": [_model(model) for model in models]})


def _model(model: Model) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": model.created_at,
        "owned_by": model.provider,
        "lifecycle": stage(model),
        "deprecated_at": day(model.deprecated_at),
        "shutdown_date": day(model.retires_at),
        "display_name": model.display_name,
        # Unknown values are null.
        "max_input_tokens": model.context_window or None,
        "max_output_tokens": model.max_output_tokens or None,
        "pricing": pricing(model) and {**(pricing(model) or {}), **token_pricing(model)},
        # OpenRouter's fields, which its clients and others read.
        "context_length": model.context_window or None,
        "top_provider": {
            "context_length": model.context_window or None,
            "max_completion_tokens": model.max_output_tokens or None,
        },
        "architecture": {"input_modalities": _modalities(model), "output_modalities": ["text"]},
        "supported_parameters": _parameters(model),
        "capabilities": {
            "inputs": _inputs(model),
            "tools": model.tools if model.HasField("tools") else None,
            "thinking": model.thinking if model.HasField("thinking") else None,
            "structured_output": (
                model.structured_output if model.HasField("structured_output") else None
            ),
            "efforts": list(model.efforts),
            "prompt_caching": caches(model),
            "batch": False,
        },
    }


def _inputs(model: Model) -> list[str]:
    return ["text", *(_MEDIA[kind] for kind in model.inputs)]


def _modalities(model: Model) -> list[str]:
    """Return the inputs under OpenRouter's names."""
    return ["file" if name == "pdf" else name for name in _inputs(model)]


def _parameters(model: Model) -> list[str]:
    """Return the parameters that a model is not known to lack, under OpenRouter's names.

    Clients take a parameter that is not listed for one that is not supported.
    """
    names = ["max_tokens"]
    if model.tools or not model.HasField("tools"):
        names += ["tools", "tool_choice"]
    if model.thinking or not model.HasField("thinking"):
        names += ["reasoning", "reasoning_effort"]
    if model.structured_output or not model.HasField("structured_output"):
        names += ["response_format", "structured_outputs"]
    return names
