"""The table of endpoints in `docs/http-api.md`: `python -m facade.endpoint_table` writes it."""

import sys
from collections.abc import Iterable
from pathlib import Path

from facade.credentials import ApiFormat, KeyKind, Rules
from facade.endpoint import EndpointSpec
from facade.endpoints import ENDPOINTS
from facade.openapi import described_endpoints

_BEGIN = "<!-- `make endpoints` writes the table. -->\n"
_HEAD = "| endpoint | description | key | format |\n|---|---|---|---|\n"
_FORMATS = {
    ApiFormat.OPENAI: "OpenAI's",
    ApiFormat.ANTHROPIC: "Anthropic's",
    ApiFormat.ENVELOPE: "envelope",
    None: "by the key's header",
}


def endpoint_table(endpoints: Iterable[EndpointSpec]) -> str:
    """Return the endpoints of the API as a table in Markdown."""
    return _HEAD + "".join(map(_row, described_endpoints(endpoints)))


def with_table(document: str) -> str:
    """Return a document with the current table in place of the one at its end."""
    return document.partition(_BEGIN)[0] + _BEGIN + endpoint_table(ENDPOINTS)


def _row(endpoint: EndpointSpec) -> str:
    rules = endpoint.rules
    name = f"`{endpoint.method} {endpoint.documented_path}`"
    return f"| {name} | {endpoint.summary} | {_key(rules)} | {_FORMATS[rules.api_format]} |\n"


def _key(rules: Rules) -> str:
    match rules.key:
        case KeyKind.NONE:
            return "none"
        case KeyKind.ADMIN:
            return "admin key"
        case KeyKind.CALLER:
            return "API key" if rules.takes_bearer else "API key in `x-api-key`"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text()))
