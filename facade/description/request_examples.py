"""An example of a request to each endpoint: as a command for a shell, and as a form of `/docs`."""

import html
import shlex
from collections.abc import Iterator, Mapping

import orjson

from facade.credentials import ApiFormat, KeyKind
from facade.dialects.json_schemas import JsonObject, NamedSchema
from facade.endpoint import Body, EndpointSpec

_JSON = "application/json"
_FORM = "multipart/form-data"
# Values of fields of a form; its file is chosen, or read by curl.
_PARTS = {"purpose": "user_data"}
_MIN_ROWS, _MAX_ROWS = 3, 24


def curl(endpoint: EndpointSpec, operation: JsonObject, path: str) -> str:
    """Return a request for a shell."""
    words = ["curl" if endpoint.method in ("GET", "POST") else f"curl -X {endpoint.method}"]
    words.append(f'"$GATEWAY{path}"' if "{" not in path else f"$GATEWAY{shlex.quote(path)}")
    words += [f'-H "{name}: {value}"' for name, value in _headers(endpoint).items()]
    if endpoint.method == "POST" and endpoint.body is None:
        words[0] = "curl -X POST"
    if endpoint.body is not None and endpoint.body.media_type == _JSON:
        words += [f"-H 'Content-Type: {_JSON}'", f"-d {shlex.quote(_body(operation))}"]
    elif endpoint.body is not None and endpoint.body.media_type == _FORM:
        file, others = _form_fields(endpoint.body)
        parts = [f"-F {name}={value}" for name, value in others.items()]
        words.append(" ".join([*parts, f"-F {file}=@notes.txt"]))
    elif endpoint.body is not None:
        words += [f"-H 'Content-Type: {endpoint.body.media_type}'", "--data-binary @notes.txt"]
    return " \\\n  ".join(words)


def form(endpoint: EndpointSpec, operation: JsonObject, path: str) -> Iterator[str]:
    """Yield the parts of a form, which the script of the page sends."""
    headers = _headers(endpoint)
    if endpoint.body is not None and endpoint.body.media_type == _JSON:
        headers = {**headers, "Content-Type": _JSON}
    data = html.escape(orjson.dumps(headers).decode())
    yield f'<form data-method="{endpoint.method}" data-path="{html.escape(path)}" '
    yield f'data-headers="{data}"><h3>Try it</h3>'
    for parameter in operation.get("parameters", []):
        # The version is among the headers.
        if parameter["in"] != "header":
            yield _field(parameter["name"], parameter["in"], required=parameter["in"] == "path")
    if endpoint.body is not None and endpoint.body.media_type == _JSON:
        text = _body(operation)
        rows = min(max(text.count("\n") + 1, _MIN_ROWS), _MAX_ROWS)
        yield f'<label for="{endpoint.operation_id}-body">Body</label>'
        yield f'<textarea id="{endpoint.operation_id}-body" rows="{rows}" spellcheck="false">'
        yield f"{html.escape(text)}</textarea>"
    elif endpoint.body is not None:
        file, others = _form_fields(endpoint.body)
        yield f'<label>{file} <input type="file" name="{file}" data-in="part" required></label>'
        for name, value in others.items():
            yield _field(name, "part", value=value)
    if endpoint.body is not None and endpoint.answer.is_streamed:
        yield '<label><input type="checkbox" name="streamed"> Streamed</label>'
    yield '<button>Send</button> <span role="status"></span>'
    yield '<pre hidden tabindex="0" aria-label="Response"></pre></form>'


def _form_fields(body: Body) -> tuple[str, Mapping[str, str]]:
    """Return the name of the file of a form, and examples of its other fields."""
    wire_type = body.wire_type
    schema = wire_type.source if isinstance(wire_type, NamedSchema) else wire_type
    fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
    files = [name for name, field in fields.items() if field.get("format") == "binary"]
    others = {name: value for name, value in _PARTS.items() if name in fields}
    return (files[0] if files else "file"), others


def _field(name: str, place: str, *, value: str = "", required: bool = False) -> str:
    attributes = f'name="{html.escape(name)}" data-in="{place}" value="{html.escape(value)}"'
    return (
        f"<label>{html.escape(name)} <input {attributes}{' required' if required else ''}></label>"
    )


def _headers(endpoint: EndpointSpec) -> Mapping[str, str]:
    """Return the headers of a request, with names of variables in place of keys."""
    rules = endpoint.rules
    headers = {}
    if rules.key is KeyKind.ADMIN:
        headers["Authorization"] = "Bearer $ADMIN_KEY"
    elif rules.key is KeyKind.CALLER and rules.takes_bearer:
        headers["Authorization"] = "Bearer $GATEWAY_KEY"
    elif rules.key is KeyKind.CALLER:
        headers["x-api-key"] = "$GATEWAY_KEY"
    if rules.api_format is ApiFormat.ANTHROPIC:
        headers["anthropic-version"] = "2023-06-01"
    return headers


def _body(operation: JsonObject) -> str:
    example = operation["requestBody"]["content"][_JSON].get("example", {})
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()
