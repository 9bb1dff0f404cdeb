"""Translate the body of an interaction to that of a response."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from facade.dialects import responses
from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.field_types import given_values
from facade.dialects.interactions.errors import interaction_error
from facade.dialects.interactions.items import InputReader, naming
from facade.dialects.interactions.paths import CONFIG
from facade.dialects.interactions.types import InteractionBody
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.validation import read_quickly, write_json
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, WebTool
from services.common import ids
from services.common.errors import GatewayError, invalid

Json = dict[str, Any]

_BODY: TypeAdapter[InteractionBody] = TypeAdapter(InteractionBody)

# Fields of the body with the same meaning in that of a response.
_SAME: Final = {
    "model": "model",
    "system_instruction": "instructions",
    "previous_interaction_id": "previous_response_id",
    "stream": "stream",
    "background": "background",
    "store": "store",
    "labels": "metadata",
}
# The same in `generation_config`.
_CONFIG: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_output_tokens",
}
_CONFIG_FIELDS: Final = frozenset(
    (*_CONFIG, "seed", "stop_sequences", "thinking_level", "thinking_summaries", "tool_choice")
)
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none", "validated": "auto"}
_TIERS: Final = {"standard": "default"}
# Fields without which an answer would be another, with what to do instead.
_REFUSED: Final = {
    "agent": "the gateway runs no agents; name a model",
    "continuation_token": "the gateway's interactions end with their answer; omit it",
    "environment": "the gateway has no environments; run tools in your program",
    "webhook_config": "the gateway sends no webhooks for interactions; poll the interaction",
    "use_built_in_tools": "not supported on this endpoint; name google_search or url_context",
    "thinking_block_strategy": "not supported on this endpoint; use /v1/messages",
}
_JSON: Final = "application/json"
_SCHEMA_NAME: Final = "answer"
_FORMATS: Final = ("text", "image", "audio", "video")
_PARAMETERS: Final = "parameters"
_FETCH: Final = b'{"type":"web_fetch_20250910","name":"web_fetch"}'
_TOOLS: Final = ("function", "google_search", "url_context", "code_execution", "mcp_server")
_FUNCTION: Final = ("name", "description", "parameters")


def parse_interaction(body: bytes, *, new_id: ids.IdGenerator = ids.new_id) -> ParsedRequest:
    """Parse the body of `POST /v1beta/interactions`.

    Args:
        body: JSON.
        new_id: creates ids of input items, with a given prefix.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_BODY, body)
    del body  # frees its megabytes, unless the caller keeps a reference
    translation = _Translation(wire)
    written = write_json(translation.body, "")
    try:
        parsed = responses.parse_request(written, new_id=new_id)
    except GatewayError as error:
        raise interaction_error(error) from None
    del written
    request: GenerateRequest = parsed.request
    config = wire.generation_config or {}
    request.stop_sequences.extend(config.get("stop_sequences") or ())
    if (seed := config.get("seed")) is not None:
        request.seed = seed
    for path in translation.pages:
        opaque = Opaque(dialect=DIALECT_ANTHROPIC, json=_FETCH)
        web = WebTool(kind=WebTool.KIND_FETCH)
        request.tools.append(Tool(name="web_fetch", opaque=True, extra=opaque, web=web))
        translation.tool_paths.append(path)
    parsed.source_map.tools = translation.tool_paths
    parsed.source_map.dropped = [*translation.dropped]
    return parsed


class _Translation:
    """The body of a response for that of an interaction.

    Attributes:
        body: the body.
        dropped: paths of fields that have no counterpart, without duplicates.
        tool_paths: the paths of the tools of the body.
        pages: the paths of tools that read pages, which responses do not have.
    """

    def __init__(self, wire: InteractionBody) -> None:
        """Translate a body.

        Raises:
            GatewayError: invalid, naming the field.
        """
        self._wire = wire
        unknown = {name: one for name, one in (wire.model_extra or {}).items() if one is not None}
        for name, why in _REFUSED.items():
            if name in unknown:
                raise invalid(name, f"{name}: {why}")
        if wire.model is None:
            raise invalid("model", "model: is required")
        self.dropped = dict.fromkeys(unknown)
        self.tool_paths: list[str] = []
        self.pages: list[str] = []
        reader = InputReader()
        same = {name: getattr(wire, name) for name in _SAME}
        self.body: Json = {_SAME[name]: value for name, value in same.items() if value is not None}
        if wire.input is not None:
            self.body["input"] = reader.items(wire.input)
        self.dropped |= reader.dropped
        self._add_config(wire.generation_config or {})
        self._add_tools(wire.tools or ())
        self._add_format()
        self._add_googles()
        if wire.service_tier is not None:
            self.body["service_tier"] = _TIERS.get(wire.service_tier, wire.service_tier)
        self._add_extensions()

    def _add_config(self, config: Mapping[str, Any]) -> None:
        body = self.body
        body |= {own: config[name] for name, own in _CONFIG.items() if config.get(name) is not None}
        reasoning: Json = {}
        if (level := config.get("thinking_level")) is not None:
            reasoning["effort"] = level
        if config.get("thinking_summaries") == "auto":
            reasoning["summary"] = "auto"
        if reasoning:
            body["reasoning"] = reasoning
        if (choice := config.get("tool_choice")) is not None:
            with naming(f"{CONFIG}.tool_choice"):
                body["tool_choice"] = _choice(choice)
        for name, value in config.items():
            if name not in _CONFIG_FIELDS and value is not None:
                self.dropped[f"{CONFIG}.{name}"] = None

    def _add_tools(self, tools: Sequence[Json]) -> None:
        made = []
        for index, sent in enumerate(tools):
            path = f"tools[{index}]"
            with naming(path):
                tool = _typed(sent)
                if tool.get("type") == "url_context":
                    self.pages.append(path)
                    continue
                made.append(self._tool(tool, path))
            self.tool_paths.append(path)
        if made:
            self.body["tools"] = made

    def _tool(self, tool: Json, path: str) -> Json:
        match tool.get("type"):
            case "function":
                self._drop(tool, ("type", *_FUNCTION), path)
                fields = {name: tool[name] for name in _FUNCTION if tool.get(name) is not None}
                return {"type": "function", "strict": False, **fields}
            case "google_search":
                if tool.get("search_types") not in (None, ["web_search"]):
                    self.dropped[f"{path}.search_types"] = None
                self._drop(tool, ("type", "search_types"), path)
                return {"type": "web_search"}
            case "code_execution":
                return {"type": "code_interpreter", "container": {"type": "auto"}}
            case "mcp_server":
                return _remote_server(tool)
        raise invalid(
            f"{path}.type", f"{path}.type: must be {', '.join(_TOOLS)}; others run at Google alone"
        )

    def _drop(self, tool: Json, known: Sequence[str], path: str) -> None:
        for name, value in tool.items():
            if name not in known and value is not None:
                self.dropped[f"{path}.{name}"] = None

    def _add_format(self) -> None:
        wire = self._wire
        modalities = [one.lower() for one in wire.response_modalities or ()]
        if modalities not in ([], ["text"]):
            name = "response_modalities"
            raise invalid(name, f"{name}: must be text; use generateContent for others")
        form = wire.response_format
        if isinstance(form, list):
            if len(form) != 1:
                raise invalid("response_format", "response_format: must have one format, of text")
            form = form[0]
        if not form:
            if wire.response_mime_type == _JSON:
                self.body["text"] = {"format": {"type": "json_object"}}
            return
        kind = form.get("type")
        if kind not in _FORMATS:
            # The schema itself, as earlier versions of the API have it.
            form, kind = {"mime_type": wire.response_mime_type or _JSON, "schema": form}, "text"
        if kind != "text":
            name = "response_format.type"
            raise invalid(name, f"{name}: must be text; use generateContent for others")
        if schema := form.get("schema"):
            own = {"type": "json_schema", "name": _SCHEMA_NAME, "schema": schema, "strict": False}
            self.body["text"] = {"format": own}
        elif form.get("mime_type") == _JSON:
            self.body["text"] = {"format": {"type": "json_object"}}

    def _add_googles(self) -> None:
        """Add the options that only Google's models have."""
        own: Json = {}
        if self._wire.safety_settings:
            own["safety_settings"] = [*map(_safety_setting, self._wire.safety_settings)]
        if self._wire.cached_content:
            own["cached_content"] = self._wire.cached_content
        if own:
            self.body["extra_body"] = {"google": own}

    def _add_extensions(self) -> None:
        """Add the gateway's own fields; the parameters of steps would be those of responses."""
        own = {
            name: one for name, one in given_values(self._wire).items() if name in EXTENSION_FIELDS
        }
        chain = own.get("fallback_config") or {}
        for index, step in enumerate(chain.get("steps") or ()):
            if step.get(_PARAMETERS):
                path = f"fallback_config.steps[{index}].{_PARAMETERS}"
                raise invalid(path, f"{path}: not supported on this endpoint; omit it")
        self.body |= own


def _typed(tool: Json) -> Json:
    """Return a tool with its type, also one in the form of `generateContent`."""
    if "type" in tool or len(tool) != 1:
        return tool
    (name, fields), *_ = tool.items()
    return {**(fields or {}), "type": name}


def _choice(choice: str | Json) -> str | Json:
    path = f"{CONFIG}.tool_choice"
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise invalid(path, f"{path}: must be {', '.join(_CHOICES)}")
        return _CHOICES[choice]
    allowed = choice.get("allowed_tools")
    if not isinstance(allowed, dict):
        raise invalid(path, f"{path}: must be {', '.join(_CHOICES)}, or have allowed_tools")
    mode = _CHOICES.get(allowed.get("mode") or "auto")
    if mode == "none":
        return mode
    names = allowed.get("tools") or []
    tools = [{"type": "function", "name": name} for name in names]
    return {"type": "allowed_tools", "mode": mode or "auto", "tools": tools}


def _remote_server(tool: Json) -> Json:
    fields = {"server_label": tool.get("name"), "server_url": tool.get("url")}
    names = [name for one in tool.get("allowed_tools") or () for name in one.get("tools") or ()]
    return {
        "type": "mcp",
        "require_approval": "never",
        **{name: value for name, value in fields.items() if value},
        **({"headers": tool["headers"]} if tool.get("headers") else {}),
        **({"allowed_tools": names} if names else {}),
    }


def _safety_setting(setting: Mapping[str, Any]) -> Json:
    """Return a safety setting in the form of `generateContent`."""
    others = {name: one for name, one in setting.items() if name not in ("type", "threshold")}
    category = str(setting["type"]).upper()
    category = category if category.startswith("HARM_") else f"HARM_CATEGORY_{category}"
    return {**others, "category": category, "threshold": str(setting["threshold"]).upper()}
