"""The page `/docs`: every endpoint by area, with its fields, a request to paste, and one to try.

Its style and its script are in the page, each named by its hash in the page's policy: nothing else
runs, and no text becomes HTML (Trusted Types without a policy), whatever a model or a user wrote.
Viewers of OpenAPI documents (Scalar, RapiDoc, Redoc, Elements, swagger-ui) make HTML or styles from
text, so that none of them shows anything under this policy.
"""

import html
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from facade.areas import by_area
from facade.description.openapi import described_endpoints, document
from facade.description.request_examples import curl, form
from facade.dialects.json_schemas import JsonObject
from facade.endpoint import EndpointSpec

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:62em;margin:0 auto;padding:1em}
nav a{margin-right:1em;white-space:nowrap}
h2{margin-top:2em;border-bottom:1px solid #8886}
details{border:1px solid #8886;border-radius:.4em;margin:.5em 0;padding:.5em .8em}
summary{cursor:pointer}summary span{opacity:.75}
summary b{display:inline-block;min-width:4.5em}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:1px solid #8883}
pre{overflow:auto;max-height:40em;background:#8882;padding:.8em;border-radius:.4em}
section,details{scroll-margin-top:4em}
form{border-top:1px solid #8883;margin-top:1em}
label{display:inline-block;margin:.4em 1em .4em 0}
input,textarea,button{font:inherit;padding:.3em .5em}
textarea{font:.9em/1.4 ui-monospace,monospace;width:100%;box-sizing:border-box}
#keys{position:sticky;top:0;background:Canvas;border:0;border-bottom:1px solid #8886}
"""
_SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")
_CODE_SPAN = re.compile(r"`([^`]+)`")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(_SCRIPT)}",
            f"style-src {_hash(_STYLE)}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_INTRODUCTION = """<h1>The API</h1>
<p>OpenAI's SDKs get the address of this gateway with <code>/v1</code>, Anthropic's without it. Each
endpoint has a request to paste into a shell, with <code>GATEWAY</code>, this address, and
<code>GATEWAY_KEY</code>, an API key; and a form that sends it from here. The
<a href="/console">console</a> is for models, files, memories and documents in the browser;
<a href="/openapi.json">openapi.json</a> has every field for tools.</p>
"""
_KEYS = """<form id="keys">
<label>API key <input id="key" type="password" autocomplete="off" placeholder="gw-…"></label>
<label>Admin key <input id="admin-key" type="password" autocomplete="off" placeholder="gwadmin-…">
</label></form>
"""


@cache
def page(endpoints: tuple[EndpointSpec, ...]) -> str:
    """Return the page for the endpoints, in HTML."""
    description = orjson.loads(document(endpoints))
    areas = by_area(described_endpoints(endpoints))
    links = " ".join(f'<a href="#{area.anchor}">{html.escape(area.title)}</a>' for area in areas)
    sections = "".join(
        f'<section id="{area.anchor}"><h2>{html.escape(area.title)}</h2>'
        + "".join("".join(_endpoint(member, description)) for member in members)
        + "</section>"
        for area, members in areas.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>API of the gateway</title><style>{_STYLE}</style></head>"
        f"<body>{_INTRODUCTION}{_KEYS}<nav>{links}</nav>{sections}"
        f"<script>{_SCRIPT}</script></body></html>"
    )


def _endpoint(endpoint: EndpointSpec, description: JsonObject) -> Iterator[str]:
    """Yield the parts of the description of an endpoint."""
    path = _shown_path(endpoint)
    operation = description["paths"][endpoint.documented_path][endpoint.method.lower()]
    yield f'<details id="{endpoint.operation_id}"><summary><b>{endpoint.method}</b> '
    yield f"<code>{html.escape(path)}</code> <span>{html.escape(endpoint.summary)}</span></summary>"
    yield f"<pre>{html.escape(curl(endpoint, operation, path))}</pre>"
    parameters = [_parameter(one) for one in operation.get("parameters", [])]
    yield from _table("Parameters", parameters)
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield from _table("Body", list(_fields(content["schema"], description)))
    statuses = ((status, "", one["description"]) for status, one in operation["responses"].items())
    yield from _table("Responses", list(statuses))
    yield from form(endpoint, operation, path)
    yield "</details>"


def _shown_path(endpoint: EndpointSpec) -> str:
    return endpoint.documented_path.removeprefix("/beta")


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    if rows:
        cells = "".join(
            f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(kind)}</td>"
            f"<td>{_with_code(text)}</td></tr>"
            for name, kind, text in rows
        )
        yield f"<h3>{title}</h3><table>{cells}</table>"


def _with_code(text: str) -> str:
    """Return a description in HTML, with its code spans."""
    return _CODE_SPAN.sub(r"<code>\1</code>", html.escape(text))


def _parameter(parameter: JsonObject) -> tuple[str, str, str]:
    place = "required, " if parameter.get("required") else ""
    kind = f"{place}{parameter['in']}, {_type(parameter.get('schema', {}))}"
    return parameter["name"], kind, parameter.get("description", "")


def _fields(schema: JsonObject, description: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of a body; those that are required come first."""
    schema = _resolved(schema, description)
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    for name in sorted(properties, key=lambda name: (name not in required, name)):
        field = properties[name]
        text = field.get("description") or _resolved(field, description).get("description", "")
        kind = _type(field)
        yield name, f"required, {kind}" if name in required else kind, text.partition("\n\n")[0]


def _resolved(schema: JsonObject, description: JsonObject) -> JsonObject:
    name = schema.get("$ref", "").removeprefix("#/components/schemas/")
    resolved: JsonObject = description["components"]["schemas"][name] if name else schema
    return resolved


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in a few words."""
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        kinds = dict.fromkeys(_type(choice) for choice in choices)
        return " or ".join(kind for kind in kinds if kind != "null")
    if "enum" in schema:
        return ", ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "$ref" in schema:
        return "object"
    return str(schema.get("type", "any"))
