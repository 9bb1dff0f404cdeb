"""Translate conversations: Google's contents and parts to canonical messages and blocks.

Each content is a message. Empty texts are dropped, and so are contents that become empty. Parts and
fields without a canonical name are kept as JSON.
"""

import binascii
import mimetypes
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from facade.dialects.gemini import types
from facade.dialects.gemini.file_names import file_id_of
from facade.dialects.gemini.signatures import is_packed, unpacked
from facade.dialects.paths import SYSTEM, SourceMap
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1 import conversation_pb2 as pb
from services.common.errors import invalid
from services.common.ids import UNNAMED_CALL

MessageList = RepeatedCompositeFieldContainer[pb.Message]
BlockList = RepeatedCompositeFieldContainer[pb.Block]

_SIGNATURE: Final = "thoughtSignature"
_CONTENT: Final = frozenset({"role", "parts"})
_BLOB: Final = frozenset({"mimeType", "data", "displayName"})
_FILE: Final = frozenset({"fileUri", "mimeType", "displayName"})
_CALL: Final = frozenset({"id", "name", "args"})
_RESPONSE: Final = frozenset({"id", "name", "response", "parts"})
# The usual fields of a result, whose text stands for it.
_OUTPUT, _ERROR = "output", "error"
_KINDS: Final[Mapping[str, pb.MediaKind.ValueType]] = {
    "image": pb.MEDIA_KIND_IMAGE,
    "audio": pb.MEDIA_KIND_AUDIO,
    "video": pb.MEDIA_KIND_VIDEO,
}
_VIDEO_SITES: Final = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def add_system(
    target: MessageList,
    instruction: types.SystemInstruction,
    path: str,
    source_map: SourceMap,
) -> None:
    """Add the system instruction at `path`, unless it is empty.

    Raises:
        GatewayError: invalid, for a part that is no text.
    """
    message = target.add(role=pb.ROLE_SYSTEM)
    for position, part in enumerate(instruction.get("parts") or ()):
        text = part.get("text")
        if text is None:
            where = f"{path}.parts[{position}]"
            raise invalid(where, f"{where}: must be a text")
        if text:
            source_map.add_mapping(0, len(message.blocks), SYSTEM, position)
            message.blocks.add(text=text)
    if not message.blocks:
        del target[-1]
    source_map.add_mapping(len(target), 0, 0, 0)


def add_contents(
    target: MessageList, contents: Sequence[types.Content], path: str, source_map: SourceMap
) -> None:
    """Add the conversation at `path`.

    Raises:
        GatewayError: invalid, naming the invalid part; also if no content has parts.
    """
    before = len(target)
    conversation = _Conversation(target, path, source_map, _covered_thoughts(contents))
    for index, content in enumerate(contents):
        conversation.add(index, content)
    if len(target) == before:
        raise invalid(path, f"{path}: must have at least one content with parts that are not empty")


class _Conversation:
    """Translates the contents of one request, in order.

    Args:
        target: receives the messages.
        path: path of the contents.
        source_map: receives the positions.
        covered: the positions of thoughts that a signature repeats.
    """

    def __init__(
        self,
        target: MessageList,
        path: str,
        source_map: SourceMap,
        covered: frozenset[tuple[int, int]],
    ) -> None:
        self._target = target
        self._path = path
        self._source_map = source_map
        self._covered = covered
        # Ids of calls without a result, by the name of the function.
        self._open: defaultdict[str, deque[str]] = defaultdict(deque)
        self._index = 0  # of the content
        self._role = ""
        self._left_out = -len(target)  # contents that were dropped

    def add(self, index: int, content: types.Content) -> None:
        """Add a content."""
        self._index = index
        self._role = "model" if content.get("role") == "model" else "user"
        role = pb.ROLE_ASSISTANT if self._role == "model" else pb.ROLE_USER
        number = len(self._target)
        message = self._target.add(role=role)
        if index - number != self._left_out:
            self._left_out = index - number
            self._source_map.add_mapping(number, 0, index, 0)
        shift = 0
        for position, part in enumerate(content.get("parts") or ()):
            if (index, position) in self._covered:
                continue
            count = len(message.blocks)
            if position - count != shift:
                shift = position - count
                self._source_map.add_mapping(number, count, index, position)
            self._add_part(
                message.blocks, part, f"{self._path}[{index}].parts[{position}]", position
            )
        if unknown := _without(content, _CONTENT):
            message.extra.CopyFrom(_opaque(unknown, f"{self._path}[{index}]"))
        elif not message.blocks:
            del self._target[-1]

    def _add_part(self, blocks: BlockList, part: types.Part, path: str, position: int) -> None:
        signature = part.get(_SIGNATURE)
        if signature and is_packed(signature):
            thoughts = unpacked(signature)
            if thoughts is not None:
                blocks.extend(thoughts)
                part = {**part}
                del part[_SIGNATURE]
        if (text := part.get("text")) is not None:
            self._add_text(blocks, part, text, path)
        elif (blob := part.get("inlineData")) is not None:
            added = blocks.add()
            _set_blob(added.media, blob, f"{path}.inlineData")
            _set_rest(added, part, "inlineData", _without(blob, _BLOB), path)
        elif (file := part.get("fileData")) is not None:
            added = blocks.add()
            _set_file(added.media, file)
            _set_rest(added, part, "fileData", _without(file, _FILE), path)
        elif (call := part.get("functionCall")) is not None:
            self._check_role("functionCall", "model", path)
            added = blocks.add()
            self._set_call(added.tool_use, call, path, position)
            _set_rest(added, part, "functionCall", _without(call, _CALL), path)
        elif (response := part.get("functionResponse")) is not None:
            self._check_role("functionResponse", "user", path)
            added = blocks.add()
            self._set_result(added.tool_result, response, f"{path}.functionResponse")
            _set_rest(added, part, "functionResponse", _without(response, _RESPONSE), path)
        elif fields := _set_fields(part):
            blocks.add().opaque.CopyFrom(_opaque(fields, path))

    def _add_text(self, blocks: BlockList, part: types.Part, text: str, path: str) -> None:
        others = _without(part, frozenset({"text", "thought"}))
        if not text:
            if others:  # a signature without a text
                blocks.add().opaque.CopyFrom(_opaque(_set_fields(part), path))
            return
        added = blocks.add()
        if part.get("thought"):
            self._check_role("thought", "model", path)
            added.thinking.text = text
        else:
            added.text = text
        if others:
            added.extra.CopyFrom(_opaque(others, path))

    def _check_role(self, field: str, role: str, path: str) -> None:
        if self._role != role:
            where = f"{path}.{field}"
            raise invalid(where, f"{where}: allowed only in contents with the role {role}")

    def _set_call(
        self, target: pb.ToolUse, call: types.FunctionCall, path: str, position: int
    ) -> None:
        target.name = call["name"]
        target.id = call.get("id") or f"{UNNAMED_CALL}{self._index}_{position}"
        target.input = to_json(call.get("args") or {}, f"{path}.functionCall.args").decode()
        self._open[target.name].append(target.id)

    def _set_result(
        self, target: pb.ToolResult, response: types.FunctionResponse, path: str
    ) -> None:
        target.tool_use_id = self._call_of(response, path)
        result = response.get("response") or {}
        text = plain_result(result)
        target.is_error = _ERROR in result and _OUTPUT not in result
        if text is None:
            text = to_json(result, f"{path}.response").decode()
        if text:
            target.blocks.add(text=text)
        for position, part in enumerate(response.get("parts") or ()):
            where = f"{path}.parts[{position}]"
            if (blob := part.get("inlineData")) is not None:
                _set_blob(target.blocks.add().media, blob, f"{where}.inlineData")
            elif (file := part.get("fileData")) is not None:
                _set_file(target.blocks.add().media, file)
            else:
                raise invalid(where, f"{where}: must have inlineData or fileData")

    def _call_of(self, response: types.FunctionResponse, path: str) -> str:
        """Return the id of the call that a result belongs to."""
        waiting = self._open[response["name"]]
        if call_id := response.get("id"):
            if call_id in waiting:
                waiting.remove(call_id)
            return call_id
        if not waiting:
            raise invalid(
                f"{path}.id",
                f"{path}.id: is required, as the contents have no earlier call of this function"
                " without a result",
            )
        return waiting.popleft()


def plain_result(result: Mapping[str, Any]) -> str | None:
    """Return the text of a result that is nothing but a text; None for any other.

    A text that could be the JSON of an object is none, so that the result can be written again.
    """
    match result:
        case {"output": str(text)} | {"error": str(text)} if len(result) == 1:
            return text if text and not text.lstrip().startswith("{") else None
    return None


def _covered_thoughts(contents: Sequence[types.Content]) -> frozenset[tuple[int, int]]:
    """Return the positions of unsigned thoughts that a packed signature after them repeats.

    Clients that keep a stream have each of its chunks as a content.
    """
    covered: set[tuple[int, int]] = set()
    is_repeated = False
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content.get("role") != "model":
            is_repeated = False
            continue
        parts = content.get("parts") or ()
        for position in range(len(parts) - 1, -1, -1):
            part = parts[position]
            if not part.get("thought"):
                is_repeated = is_packed(part.get(_SIGNATURE))
            elif is_repeated and not part.get(_SIGNATURE):
                covered.add((index, position))
    return frozenset(covered)


def _set_blob(target: pb.Media, blob: types.Blob, path: str) -> None:
    text = blob["data"].translate(_URL_SAFE).rstrip("=")
    try:
        target.data = binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        raise invalid(f"{path}.data", f"{path}.data: must be base64, without line breaks") from None
    target.mime_type = blob["mimeType"]
    target.kind = media_kind(blob["mimeType"])
    target.name = blob.get("displayName") or ""


def _set_file(target: pb.Media, file: types.FileData) -> None:
    address = file["fileUri"]
    mime = file.get("mimeType") or ""
    if file_id := file_id_of(address):
        target.file_id = file_id
    else:
        target.url = address
        if not mime and not address.startswith(_VIDEO_SITES):
            mime = mimetypes.guess_type(address.partition("?")[0], strict=False)[0] or ""
    target.mime_type = mime
    is_video = not mime and address.startswith(_VIDEO_SITES)
    target.kind = pb.MEDIA_KIND_VIDEO if is_video else media_kind(mime)
    target.name = file.get("displayName") or ""


def media_kind(mime: str) -> pb.MediaKind.ValueType:
    """Return the kind of a medium of a MIME type."""
    return _KINDS.get(mime.lower().partition("/")[0], pb.MEDIA_KIND_DOCUMENT)


def _set_rest(
    target: pb.Block, part: types.Part, name: str, unknown: Mapping[str, Any], path: str
) -> None:
    """Keep the unknown fields of a part, and of the object in its field `name`."""
    others: dict[str, Any] = _without(part, frozenset({name}))
    if unknown:
        others[name] = unknown
    if others:
        target.extra.CopyFrom(_opaque(others, path))


def _set_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def _without(fields: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return the other fields that are not null."""
    if fields.keys() <= names:
        return {}
    return {
        name: value for name, value in fields.items() if name not in names and value is not None
    }


def _opaque(fields: Mapping[str, Any], path: str) -> pb.Opaque:
    return to_opaque(pb.DIALECT_GEMINI, fields, path)
