"""Conversations as messages of chat completions. Pure."""

from collections.abc import Sequence
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
    Opaque,
    ToolResult,
    ToolUse,
)
from services.common.messages.plain_message import PlainCall, PlainMessage
from services.inference.learned.refusals import (
    LONG_IDS,
    MESSAGE_NAME,
    OF_BLOCKS,
    OF_MESSAGES,
    SHORT_ID,
    USER_AFTER_TOOL,
)
from services.inference.providers.conversation_writer import ConversationWriter
from services.inference.providers.gemini import signatures
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai import sanitizing
from services.inference.providers.openai.cache_breakpoints import (
    BREAKPOINT,
    breakpoint_of,
    marked,
)
from services.inference.providers.openai.fields import OpenAIFields, Part
from services.inference.providers.openai.media import is_text, media_part, text_part
from services.inference.providers.openai.thoughts import (
    add_thoughts,
    returned_fields,
    sign_call,
    state_of,
)
from services.inference.providers.request_fields import BILLING_LINE
from services.inference.request.thinking import KINDS

# Assistant message inserted for servers that reject a user message right after a tool result.
_BETWEEN = "OK."
# Paths below which dropped fields are reported.
_OF_MESSAGES = "messages[].extra"
_OF_BLOCKS = "messages[].blocks[].extra"
_MARKS = "messages[].blocks[].cache_control"


class Conversation(ConversationWriter):
    """Translates the messages of one request, in order.

    Tool results become messages of the role `tool`. These must directly follow the calls that they
    answer, so content of the same user message, and messages between, are placed after them.

    Attributes:
        messages: the translated messages.
    """

    _fields: OpenAIFields

    def __init__(self, fields: OpenAIFields, messages: Sequence[Message | PlainMessage]) -> None:
        """Translate all messages.

        Plain messages are of another dialect.

        Raises:
            GatewayError: invalid, unsupported or not implemented, with the path of the part.
        """
        self.messages: list[Json] = []
        self._fields = fields
        self._extra = Opaque()  # of the current message
        self._waiting: list[Json] = []  # messages to place after the tool results
        self._unanswered: set[str] = set()  # ids of calls without a result so far
        self._add_all(messages)
        if self._waiting:
            self._add_waiting()

    def _add_all(self, messages: Sequence[Message | PlainMessage]) -> None:
        refused = self._fields.refused_fields
        waiting, unanswered = self._waiting, self._unanswered
        content: Any
        for self._message, message in enumerate(messages):
            if not isinstance(message, PlainMessage):
                self._add(message)
                continue
            # The fast path of nearly all messages; there may be 100,000 of them.
            role, content = message.role, message.content
            if message.marked or message.is_error or message.has_billing_line:
                content = self._without_dropped(message)
            elif not isinstance(content, str):
                content = self._plain_content(message)
            if role == "user":
                into = waiting if waiting or unanswered or refused else self.messages
                into.append({"role": role, "content": content})
            elif role == "assistant":
                self._add_plain_assistant(message, content)
            elif role == "tool":
                unanswered.discard(message.call_id)
                call_id = self._call_id(message.call_id) if refused else message.call_id
                self.messages.append({"role": role, "tool_call_id": call_id, "content": content})
            elif content:
                if not unanswered:
                    self._add_waiting()
                into = waiting if unanswered else self.messages
                into.append({"role": self._prompt_role(role == "developer"), "content": content})

    def _add_plain_assistant(self, message: PlainMessage, text: str) -> None:
        into = self.messages
        if self._unanswered and not message.calls:
            into = self._waiting  # a text between a call and its result
        else:
            if self._waiting:
                self._add_waiting()
            self._unanswered.clear()
        written: Json = {"role": "assistant", "content": text or None}
        if message.calls:
            written["tool_calls"] = [*map(self._plain_call, message.calls)]
        if self._fields.refused_fields:
            for call in written.get("tool_calls", ()):
                call["id"] = self._call_id(call["id"])
            if message.calls:
                sign_call(written["tool_calls"][0], signatures.NOT_SIGNED, self._fields)
            add_thoughts(written, (), self._fields)
        into.append(written)

    def _without_dropped(self, message: PlainMessage) -> str | list[Part]:
        """Return the content of a plain message; report what has no counterpart."""
        if message.is_error:
            self._fields.drop("messages[].blocks[].tool_result.is_error")
        if message.has_billing_line:
            self._fields.drop(BILLING_LINE)
        content = self._plain_content(message)
        if not message.marked or not (content or message.role != "system"):
            return content
        if content and self._fields.takes_marks:
            return self._marked_content(message)
        self._fields.drop(_MARKS)
        return content

    def _marked_content(self, message: PlainMessage) -> list[Part]:
        """Return the parts of a plain message, with a breakpoint where it is marked."""
        self._fields.has_breakpoints = True
        texts = message.texts_without_billing()
        parts = [text_part(text) for text in texts]
        place = max(0, message.marked - 1 - (len(message.texts) - len(texts)))
        parts[place] = marked(parts[place], is_long=message.is_marked_long)
        return [*parts]

    def _plain_content(self, message: PlainMessage) -> str | list[Part]:
        texts = message.texts_without_billing()
        # Texts of a model are concatenated, those of a user are joined with line breaks.
        return "".join(texts) if message.role == "assistant" else self._joined(texts)

    def _plain_call(self, call: PlainCall) -> Json:
        self._unanswered.add(call.id)
        name, text = self._fields.tool_name(call.function.name), call.function.arguments
        return {"id": call.id, "type": "function", "function": {"name": name, "arguments": text}}

    def _joined(self, texts: Sequence[str]) -> str | list[Part]:
        """Return texts as content; see `_shortest`."""
        if len(texts) > 1 and self._fields.server.newest:
            return [text_part(text) for text in texts]
        return "\n".join(texts)

    def _add(self, message: Message) -> None:
        role = message.role
        self._extra = message.extra
        self._is_assistant = role == conversation_pb2.ROLE_ASSISTANT
        if role == conversation_pb2.ROLE_USER:
            self._add_user(message)
        elif self._is_assistant:
            if self._unanswered and not any(block.HasField("tool_use") for block in message.blocks):
                # A text between a call and its result.
                before = len(self.messages)
                self._add_assistant(message)
                self._waiting += self.messages[before:]
                del self.messages[before:]
                return
            self._add_waiting()
            self._unanswered.clear()
            self._add_assistant(message)
        else:
            if not self._unanswered:
                self._add_waiting()
            message = self._fields.system_prompt(message)
            into = self._waiting if self._unanswered else self.messages
            is_developer = role == conversation_pb2.ROLE_DEVELOPER
            self._put(into, self._prompt_role(is_developer), message)

    def _prompt_role(self, is_developer: bool) -> str:
        """Return the role of instructions; only OpenAI's own server has one for developers."""
        return "developer" if is_developer and self._fields.server.newest else "system"

    def _add_waiting(self) -> None:
        if self._waiting and USER_AFTER_TOOL in self._fields.refused_fields:
            if self.messages and self.messages[-1]["role"] == "tool":
                self.messages.append({"role": "assistant", "content": _BETWEEN})
        self.messages += self._waiting
        self._waiting.clear()

    def _put(self, into: list[Json], role: str, message: Message) -> None:
        """Translate a message that has only content parts."""
        blocks = message.blocks
        if len(blocks) == 1 and self._is_plain(blocks[0]) and not message.HasField("extra"):
            # The fast path of nearly all messages; there may be 100,000 of them.
            written: Json = {"role": role, "content": blocks[0].text}
            if message.name:
                self._add_name(written, message)
            into.append(written)
            return
        parts: list[Part] = []
        for self._block, block in enumerate(blocks):
            parts += self._parts(block, media=role == "user")
        self._close(into, {"role": role, "content": self._shortest(parts)}, message)

    def _close(self, into: list[Json], written: Json, message: Message) -> None:
        """Append a message, unless it is empty."""
        if message.name:
            self._add_name(written, message)
        native = self._native_fields(message)
        if "audio" in native and not written["content"]:
            written["content"] = None
        if written["content"] or native or len(written.keys() - {"role", "content", "name"}):
            into.append({**native, **written})

    def _add_name(self, written: Json, message: Message) -> None:
        if MESSAGE_NAME in self._fields.refused_fields:
            self._fields.drop("messages[].name")
        else:
            written["name"] = message.name

    def _native_fields(self, message: Message) -> Json:
        if not message.HasField("extra"):
            return {}
        path = f"messages[{self._message}].extra"
        native = self._fields.native_fields(message.extra, path, _OF_MESSAGES, is_part=True)
        native = returned_fields(native, self._fields)
        return self._fields.accepted_fields(native, OF_MESSAGES, _OF_MESSAGES)

    def _add_user(self, message: Message) -> None:
        if not any(block.HasField("tool_result") for block in message.blocks):
            self._put(self._waiting, "user", message)
            return
        content_parts: list[Part] = []
        moved: list[Part] = []
        last: Json = {}
        for self._block, block in enumerate(message.blocks):
            if block.HasField("tool_result"):
                last = self._tool_result(block, moved)
                self.messages.append(last)
            else:
                content_parts += self._parts(block, media=True)
        if parts := moved + content_parts:
            written = {"role": "user", "content": self._shortest(parts)}
            self._close(self._waiting, written, message)
        else:
            for name, value in self._native_fields(message).items():
                last.setdefault(name, value)

    def _tool_result(self, block: Block, moved: list[Part]) -> Json:
        """Return the message of the role `tool`; append media, invalid there, to `moved`."""
        result: ToolResult = block.tool_result
        self._unanswered.discard(result.tool_use_id)
        if result.is_error:
            self._fields.drop("messages[].blocks[].tool_result.is_error")
        native = self._fields.accepted_fields(self._kept(block), OF_MESSAGES, _OF_MESSAGES)
        parts: list[Part] = []
        media: list[Part] = []
        for self._inner, inner in enumerate(result.blocks):
            is_media = inner.HasField("media") and not is_text(inner.media)
            (media if is_media else parts).extend(self._parts(inner, media=True))
        self._inner = None
        if media:
            parts.append(text_part(f"[{len(media)} attached in the next user message]"))
            moved.append(text_part(f"[Attached to the result of tool call {result.tool_use_id}]"))
            moved += media
        if parts and isinstance(last := parts[-1], dict):
            parts[-1] = self._with_breakpoint(last, block)
        return {
            **native,
            "role": "tool",
            "tool_call_id": self._call_id(result.tool_use_id),
            "content": self._shortest(parts),
        }

    def _add_assistant(self, message: Message) -> None:
        if all(map(self._is_plain, message.blocks)):
            # Texts of a model are concatenated, those of a user are joined with line breaks.
            text = "".join(block.text for block in message.blocks)
            written: Json = {"role": "assistant", "content": text}
            if text and self._fields.refused_fields:
                add_thoughts(written, (), self._fields)
            self._close(self.messages, written, message)
            return
        parts: list[Part] = []
        calls: list[Json] = []
        refusals: list[str] = []
        thoughts: list[Block] = []
        signature = ""  # of the next call, from the thinking block before it
        for self._block, block in enumerate(message.blocks):
            kind = block.WhichOneof("kind")
            if kind == "tool_use":
                calls.append(self._tool_call(block.tool_use, self._kept(block), signature))
                signature = ""
            elif kind == "refusal" and self._fields.server.newest:
                refusals.append(block.refusal)
            elif kind in KINDS:
                thoughts.append(block)
                signature = signatures.of_call(state_of(block))
            else:
                parts += self._parts(block, media=False)
        texts = _texts(parts)
        content = parts if texts is None else "".join(texts)
        written = {"role": "assistant", "content": content or None}
        if refusals:
            written["refusal"] = "".join(refusals)
        if calls:
            # Only the first of parallel calls is signed.
            sign_call(calls[0], signatures.NOT_SIGNED, self._fields)
            written["tool_calls"] = calls
        if content or refusals or calls:
            add_thoughts(written, thoughts, self._fields)
        self._close(self.messages, written, message)

    def _tool_call(self, call: ToolUse, native: Json, signature: str) -> Json:
        """Return a tool call, including the caller's unknown fields."""
        self._unanswered.add(call.id)
        kind, field = ("custom", "input") if call.freeform else ("function", "arguments")
        inner = native.get(kind)
        called: Json = {}
        if isinstance(inner, dict):
            called |= self._fields.accepted_fields(inner, OF_BLOCKS, _OF_BLOCKS)
        called["name"] = self._fields.tool_name(call.name)
        called[field] = call.input if call.freeform else call.input or "{}"
        written = {**native, "id": self._call_id(call.id), "type": kind, kind: called}
        if signature:
            sign_call(written, signature, self._fields)
        return written

    def _call_id(self, call_id: str) -> str:
        is_short = LONG_IDS in self._fields.refused_fields
        return sanitizing.tool_call_id(call_id, SHORT_ID) if is_short else call_id

    def _parts(self, block: Block, *, media: bool) -> list[Part]:
        """Return the content parts of a block; none if it is empty."""
        kind = block.WhichOneof("kind")
        if kind == "text" or kind == "refusal":
            text = block.text or block.refusal
            part = {**self._kept(block), **text_part(text)}
            return [self._with_breakpoint(part, block)] if text else []
        if kind == "media" and media:
            medium = media_part(block.media, self._path(), self._fields)
            return [self._with_breakpoint({**self._kept(block), **medium}, block)]
        path = self._path()
        if kind == "opaque":
            if text := self._referenced(block.opaque, self._fields.tool_name):
                return [text_part(text)]
            if self._fields.is_native_opaque(block.opaque):
                return [self._fields.own_value(block.opaque, path, "parts of this type")]
            text = self._foreign_text(block.opaque)
            if not text:
                return []
            # Texts of a model are concatenated.
            return [text_part(f"\n{text}\n" if self._is_assistant else text)]
        raise self._fields.unsupported(path, f"{kind or 'empty blocks'} here")

    def _kept(self, block: Block) -> Json:
        """Return the block's unknown fields that are passed through."""
        if block.cache_control and not self._is_marked(block):
            self._fields.drop_mark(_MARKS, block.extra, self._extra)
        if not block.HasField("extra"):
            return {}
        native = self._fields.native_fields(
            block.extra, f"{self._path()}.extra", _OF_BLOCKS, is_part=True
        )
        native = returned_fields(native, self._fields)
        return self._fields.accepted_fields(native, OF_BLOCKS, _OF_BLOCKS)

    def _is_marked(self, block: Block) -> bool:
        """Return whether a block is sent with a breakpoint: parts may have one, calls may not."""
        return (
            bool(block.cache_control)
            and not block.HasField("tool_use")
            and self._fields.takes_marks
        )

    def _with_breakpoint(self, part: Json, block: Block) -> Json:
        """Return a part with the breakpoint of a block, if that is marked."""
        if not (block.cache_control and self._is_marked(block)):
            return part
        self._fields.has_breakpoints = True
        return {**part, BREAKPOINT: breakpoint_of(block.cache_control)}

    def _is_plain(self, block: Block) -> bool:
        return bool(block.text) and not block.cache_control and not block.HasField("extra")

    def _shortest(self, parts: list[Part]) -> str | list[Part]:
        """Return content as a string if that is equivalent.

        Servers other than OpenAI's often accept text in no other form.
        """
        texts = _texts(parts)
        return parts if texts is None else self._joined(texts)


def _texts(parts: Sequence[Part]) -> list[str] | None:
    """Return the texts of parts if all of them are plain text, else None."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict) or part["type"] != "text" or len(part) != 2:
            return None
        texts.append(part["text"])
    return texts
