"""Detection of JSON that refers to something stored at a provider. Pure.

All callers of the gateway share the operator's account there: one could read the files of another,
or continue their conversations. The one rule for all dialects works on parsed JSON, outside of
texts, arguments and results, which are the caller's own (`native_fields`):

- A field whose name says that it refers to something stored is refused unless it is empty.
- So is any other field with a text that looks like an id of a provider, or with the address of a
  provider's own API.
- An id is that of an item if the item says more than its id. An item of nothing but an id, or of a
  type whose content is missing, is looked up by the provider.

Callers must send the value that was searched, serialized again, and not its JSON: a repeated member
has another value for another parser.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from services.inference.request.native_fields import FieldClass, classify, identifies
from services.inference.request.paths import Place

# Ids of OpenAI, Anthropic and others: `file-abc1`, `cntr_6a`, `vs_1`. Those of items are random,
# and used in every conversation that its caller sends back.
_OBJECTS: Final = (
    r"(?:resp|file|vs|cntr|container|conv|asst|thread|run|skill|batch|msgbatch|ftjob|upload|pmpt"
    r"|voice|agent|sesn|session|memstore|vault|vlt)[-_](?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]+"
    r"|(?:files|cachedContents|fileSearchStores|corpora|tunedModels|projects)/\S+"
)
_ITEMS: Final = r"(?:msg|rs|ws|fs|ig|ci|mcp|mcpr|mcpl|audio)_(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]+"
_OBJECT_ID = re.compile(_OBJECTS, re.ASCII)
_STORED_ID = re.compile(f"{_OBJECTS}|{_ITEMS}", re.ASCII)
_MAX_ID: Final = 256
# Hosts of the providers' own APIs, which have no media but stored ones.
_API_HOSTS: Final = (
    *("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
    *("api.openai.com", "openai.azure.com", "api.anthropic.com"),
)
_WEB_SCHEMES: Final = ("http", "https")
_DATA: Final = "data:"
# Characters of an address in which its scheme and host are.
_BEGINNING: Final = 2_048
# Values that refer to nothing. A number may be an id, also 0.
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
# Fields of an item that do not make up for its content.
_NO_CONTENT: Final = frozenset({"id", "type", "status", "object", "version", "index"})
_NAMED: Final = frozenset({"id", "status"})
# Fields without one of which an item is looked up by its id, by the item's type.
_CONTENT_OF_ITEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "image_generation_call": ("result",),
    "web_search_call": ("action",),
    "file_search_call": ("results",),
    "code_interpreter_call": ("code", "outputs"),
    "computer_call": ("action", "actions"),
    "reasoning": ("encrypted_content", "summary", "content"),
    "mcp_list_tools": ("tools",),
    "mcp_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
}
_REFERENCE: Final = "item_reference"
_APPROVAL: Final = "mcp_approval_response"
_APPROVED: Final = "approval_request_id"
# Calls of tools, whose input is the caller's own.
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "custom_tool_call"})
_INPUT: Final = "input"
# Outputs of programs at the provider. They name the files that the program wrote, but no later
# program receives these.
_PROGRAM_OUTPUTS: Final = frozenset({"code_execution_output", "bash_code_execution_output"})
_FILE_ID: Final = "file_id"
# Results of the caller's search, with a source of any form.
_SEARCHED: Final = frozenset({"search_result", "search_result_location"})
_SOURCE: Final = "source"
_STORE: Final = "store"
# Lists and objects whose elements have an id of their own, and no type.
_WITH_OWN_IDS: Final = frozenset(
    {
        *("pending_safety_checks", "acknowledged_safety_checks", "plugins", "documents"),
        *("tool_calls", "reasoning_details"),
        # Parts of Google's conversations.
        *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
        # An earlier recording of the model, for the caller that it was spoken to: the id is
        # random, and the recording is stored for an hour.
        "audio",
    }
)


def find_reference(
    value: Mapping[str, Any] | Sequence[Any],
    *,
    is_part: bool = False,
    approvals: Collection[str] = (),
) -> str | None:
    """Return the path of the first reference to something stored, or None.

    Args:
        value: parsed JSON.
        is_part: whether it is the rest of an item whose content is elsewhere, so that it may have
            an id.
        approvals: ids of the conversation's requests for an approval, which it may answer.

    Returns:
        The path below `value`, such as `container.id` or `tools[0].vector_store_ids`.
    """
    if is_part and isinstance(value, dict) and _is_only_named(value):
        return None  # nearly every item of a conversation that is sent back
    search = _Search(approvals)
    place_found: Place | None = None
    if isinstance(value, dict):
        place_found = search.in_object(value, None, is_part=is_part)
    elif isinstance(value, list):
        place_found = search.in_list(value, None, FieldClass.BY_VALUE, "")
    while place_found is None and search.waiting:
        place_found = search.in_next()
    return None if place_found is None else place_found.path()


class _Search:
    """A search for references.

    Attributes:
        waiting: the objects and lists to search, each with its place and the name of its field.
    """

    def __init__(self, approvals: Collection[str]) -> None:
        self.waiting: list[tuple[Any, Place, str]] = []
        self._approvals = approvals

    def in_next(self) -> Place | None:
        """Search the next object or list, but for the objects and lists in it."""
        value, place, name = self.waiting.pop()
        field = classify(name)
        if not isinstance(value, dict):
            return self.in_list(value, place, field, name)
        if field is FieldClass.STORED_BY_NAME and value.get("id"):
            return Place(place, "id")
        return self.in_object(value, place, is_part=name in _WITH_OWN_IDS)

    def in_list(
        self, items: Sequence[Any], place: Place | None, field: FieldClass, name: str
    ) -> Place | None:
        """Search a list, which is a field of this class and name."""
        for index, element in enumerate(items):
            if isinstance(element, dict | list):
                self.waiting.append((element, Place(place, index), name))
            elif field is not FieldClass.TEXT and isinstance(element, str) and _is_stored(element):
                return Place(place, index)
        return None

    def in_object(
        self, fields: Mapping[str, Any], place: Place | None, *, is_part: bool
    ) -> Place | None:
        """Search an object."""
        kind = fields.get("type")
        is_typed = isinstance(kind, str) or isinstance(fields.get("role"), str)
        if is_typed and not is_part and self._is_looked_up(fields, kind):
            return Place(place, "id")
        if kind == _APPROVAL and not self._is_asked(fields.get(_APPROVED)):
            return Place(place, _APPROVED)
        for name, value in fields.items():
            if value in _EMPTY or (is_typed and _is_own(name, kind)):
                continue
            field = classify(name)
            if field is FieldClass.CONTENT:
                continue
            if field is not FieldClass.TEXT and (
                _refers(field, name, value)
                or (field is FieldClass.ITEM_ID and not (is_typed or is_part))
            ):
                return Place(place, name)
            if isinstance(value, dict | list):
                self.waiting.append((value, Place(place, name), name))
        return None

    def _is_asked(self, request: object) -> bool:
        """Return whether the conversation has a request for an approval."""
        return isinstance(request, str) and request in self._approvals

    def _is_looked_up(self, item: Mapping[str, Any], kind: object) -> bool:
        """Return whether the provider would look an item up by its id."""
        if not item.get("id"):
            return False
        if kind == _REFERENCE:
            return True
        if isinstance(kind, str) and kind in _CONTENT_OF_ITEMS:
            return not any(item.get(name) for name in _CONTENT_OF_ITEMS[kind])
        return not any(value for name, value in item.items() if name not in _NO_CONTENT)


def _is_only_named(part: Mapping[str, Any]) -> bool:
    """Return whether the rest of an item is its id and its status."""
    name = part.get("id")
    return (
        part.keys() <= _NAMED
        and isinstance(name, str)
        and isinstance(part.get("status", ""), str)
        and not _is_object_id(name)
    )


def _is_own(name: str, kind: object) -> bool:
    """Return whether a field of an object of a type is the caller's own, whatever its name."""
    if not isinstance(kind, str):
        return False
    return (
        (name == _INPUT and kind in _CALLS)
        or (name == _FILE_ID and kind in _PROGRAM_OUTPUTS)
        or (name == _SOURCE and kind in _SEARCHED)
    )


def _refers(field: FieldClass, name: str, value: object) -> bool:
    """Return whether a field refers to something stored by itself, or by its text."""
    match field:
        case FieldClass.STORED:
            return _has_meaning(name, value)
        case FieldClass.STORED_BY_NAME:
            return isinstance(value, str)
        case FieldClass.ITEM_ID:
            return _is_object_id(value)
        case FieldClass.ADDRESS:
            return isinstance(value, str) and is_stored_address(value)
        case FieldClass.BY_VALUE:
            return isinstance(value, str) and _is_stored(value)
    return False


def _has_meaning(name: str, value: object) -> bool:
    """Return whether a value of a field that refers to something stored can do so.

    Switches and numbers do not, such as `safe_prompt` and `prompt_logprobs`, unless the number is
    an id.
    """
    if isinstance(value, bool):
        return value and name == _STORE
    return not isinstance(value, int | float) or identifies(name)


def _is_object_id(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_ID and bool(_OBJECT_ID.fullmatch(value))


def _is_stored(text: str) -> bool:
    """Return whether a text is an id or an address of something stored at a provider."""
    if len(text) <= _MAX_ID and _STORED_ID.fullmatch(text) is not None:
        return True
    return "://" in text[:_BEGINNING] and is_stored_address(text)


def is_stored_address(address: str) -> bool:
    """Return whether an address is one of a provider's own API, or not on the web.

    Providers read such addresses, `gs://…` or `https://generativelanguage.googleapis.com/…`, with
    the rights of the account.
    """
    if address[: len(_DATA)].lower() == _DATA:
        return False
    address = address[:_BEGINNING].strip()
    try:
        parts = urlsplit(address)
        host = normalize("NFKC", unquote(parts.hostname or "")).rstrip(".").lower()
    except ValueError:
        return True
    if not parts.scheme:
        return _STORED_ID.fullmatch(address[:_MAX_ID]) is not None
    # Parsers differ about backslashes, and about addresses without a host.
    if parts.scheme not in _WEB_SCHEMES or not host or "\\" in address:
        return True
    return any(host == one or host.endswith((f".{one}", f"-{one}")) for one in _API_HOSTS)
