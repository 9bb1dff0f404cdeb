"""The output items of a streamed response while they are open."""

from typing import Any, Protocol

from facade.dialects.google_code import Output, Program, item_id, to_item
from facade.dialects.openai.file_search import FILE_SEARCH
from facade.dialects.responses import output
from facade.dialects.responses.output import IN_PROGRESS, Json
from facade.dialects.responses.state import Echo
from facade.dialects.responses.unknown_fields import native_fields
from facade.dialects.responses.writer import Deltas, EventWriter
from gateway.conversation.v1.conversation_pb2 import Block, ServerToolResult
from gateway.inference.v1.inference_pb2 import Event


class OpenItem(Protocol):
    """An item that has begun."""

    def add(self, kind: str, event: Event) -> None:
        """Write a delta of the open block."""
        ...

    def end_block(self) -> None:
        """Write the end of the open block."""
        ...

    def item(self, status: str) -> Json:
        """Return the item as a whole."""
        ...


class OpenMessage:
    """A message: texts and refusals, each a content part."""

    def __init__(self, writer: EventWriter, index: int, given_id: str) -> None:
        """Begin a message, the item number `index`."""
        self._writer = writer
        self._place = {"item_id": given_id, "output_index": index}
        self._id = given_id
        self._parts: list[Json] = []
        self._of_message: Json = {}  # unknown fields of the message
        self._own: Json = {}  # unknown fields and annotations of the part
        self._texts: list[str] = []
        self._logprobs: list[Json] = []
        self._deltas: Deltas | None = None
        self._is_text = True
        writer.write(
            "response.output_item.added",
            output_index=index,
            item=output.message({}, given_id, IN_PROGRESS, []),
        )

    def begin_part(self, block: Block) -> None:
        """Begin a content part."""
        self._is_text = block.HasField("text")
        self._own = native_fields(block.extra)
        self._texts, self._logprobs = [], []
        self._place["content_index"] = len(self._parts)
        kind = "output_text" if self._is_text else "refusal"
        self._deltas = Deltas(
            f"response.{kind}.delta", dict(self._place), has_logprobs=self._is_text
        )
        part = output.text_part({}, "", []) if self._is_text else output.refusal_part("")
        self._writer.write("response.content_part.added", **self._place, part=part)
        for number, annotation in enumerate(self._own.get("annotations") or ()):
            self._write_annotation(number, annotation)

    def add_text(self, text: str, pieces: Any) -> None:
        """Write more of the text or refusal."""
        assert self._deltas is not None
        self._texts.append(text)
        self._writer.write_delta(self._deltas, text, pieces)

    def add_with_logprobs(self, text: str, logprobs: list[Json]) -> None:
        """Write more of the text, with its log probabilities."""
        self._texts.append(text)
        self._logprobs += logprobs
        self._writer.write(
            "response.output_text.delta", **self._place, delta=text, logprobs=logprobs
        )

    def add(self, kind: str, event: Event) -> None:
        """Write citations, and keep unknown fields."""
        fields: Json = {}
        if kind == "extra_fields":
            self._of_message |= native_fields(event.extra_fields.message)
        elif kind == "citation":
            fields["annotations"] = [output.annotation(event.citation)]
        elif kind == "opaque":
            fields = native_fields(event.opaque)
            fields.pop("type", None)
        if not fields:
            return
        added = fields.pop("annotations", None) or []
        before = self._own.setdefault("annotations", [])
        for number, annotation in enumerate(added, len(before)):
            self._write_annotation(number, annotation)
        self._own = {**self._own, **fields, "annotations": [*before, *added]}

    def end_block(self) -> None:
        """Write the end of the content part."""
        text = "".join(self._texts)
        if self._is_text:
            self._writer.write(
                "response.output_text.done", **self._place, text=text, logprobs=self._logprobs
            )
            part = output.text_part(self._own, text, self._logprobs)
        else:
            self._writer.write("response.refusal.done", **self._place, refusal=text)
            part = output.refusal_part(text)
        self._writer.write("response.content_part.done", **self._place, part=part)
        self._parts.append(part)

    def item(self, status: str) -> Json:
        """Return the message as a whole."""
        return output.message(self._of_message, self._id, status, self._parts)

    def _write_annotation(self, number: int, annotation: object) -> None:
        self._writer.write(
            "response.output_text.annotation.added",
            **self._place,
            annotation_index=number,
            annotation=annotation,
        )


class OpenReasoning:
    """Thinking, or a summary of it, in one part."""

    def __init__(self, writer: EventWriter, index: int, given_id: str, block: Block) -> None:
        """Begin the item number `index` with a thinking block."""
        self._writer = writer
        self._id = given_id
        self._own = native_fields(block.extra)
        self._proof = block.thinking.signature
        self._texts: list[str] = []
        self._place = {"item_id": given_id, "output_index": index}
        self._deltas: Deltas | None = None
        writer.write(
            "response.output_item.added",
            output_index=index,
            item=output.reasoning({}, given_id, "", ""),
        )
        if block.thinking.text:
            self._add_text(block.thinking.text, ())

    def add(self, kind: str, event: Event) -> None:
        """Write more of the text, or keep more of the signature."""
        if kind == "thinking":
            self._add_text(event.thinking, event.pieces)
        elif kind == "signature":
            self._proof += event.signature
        elif kind == "opaque":
            fields = native_fields(event.opaque)
            fields.pop("type", None)
            self._own |= fields

    def _add_text(self, text: str, pieces: Any) -> None:
        if self._deltas is None:
            self._place["summary_index"] = 0
            kind = "response.reasoning_summary_text.delta"
            self._deltas = Deltas(kind, dict(self._place))
            self._writer.write(
                "response.reasoning_summary_part.added",
                **self._place,
                part={"type": "summary_text", "text": ""},
            )
        self._texts.append(text)
        self._writer.write_delta(self._deltas, text, pieces)

    def end_block(self) -> None:
        """Write the end of the text."""
        if self._deltas is None:
            return
        text = "".join(self._texts)
        self._writer.write("response.reasoning_summary_text.done", **self._place, text=text)
        self._writer.write(
            "response.reasoning_summary_part.done",
            **self._place,
            part={"type": "summary_text", "text": text},
        )

    def item(self, status: str) -> Json:
        """Return the item as a whole."""
        return output.reasoning(self._own, self._id, "".join(self._texts), self._proof)


class OpenCall:
    """A call of one of the caller's tools."""

    def __init__(self, writer: EventWriter, index: int, given_id: str, block: Block) -> None:
        """Begin the item number `index` with a call."""
        self._writer = writer
        self._id = given_id
        self._own = native_fields(block.extra)
        self._use = block.tool_use
        self._texts: list[str] = []
        self._place = {"item_id": given_id, "output_index": index}
        is_custom = self._use.freeform
        self._kind = "custom_tool_call_input" if is_custom else "function_call_arguments"
        self._deltas = Deltas(f"response.{self._kind}.delta", dict(self._place))
        writer.write(
            "response.output_item.added",
            output_index=index,
            item=output.call(self._own, given_id, IN_PROGRESS, self._use, ""),
        )
        if self._use.input:
            self._add_text(self._use.input, ())

    def add(self, kind: str, event: Event) -> None:
        """Write more of the arguments."""
        if kind == "input":
            self._add_text(event.input, event.pieces)
        elif kind == "opaque":
            fields = native_fields(event.opaque)
            fields.pop("type", None)
            self._own |= fields

    def _add_text(self, text: str, pieces: Any) -> None:
        self._texts.append(text)
        self._writer.write_delta(self._deltas, text, pieces)

    def end_block(self) -> None:
        """Write the end of the arguments."""
        if not (self._texts or self._use.freeform):
            self._add_text(output.whole_arguments(self._use, ""), ())
        field = "input" if self._use.freeform else "arguments"
        content = {field: "".join(self._texts)}
        self._writer.write(f"response.{self._kind}.done", **self._place, **content)

    def item(self, status: str) -> Json:
        """Return the call as a whole."""
        return output.call(self._own, self._id, status, self._use, "".join(self._texts))


class OpenSearch:
    """A call of one of the gateway's own tools, open until its result arrives."""

    def __init__(
        self, writer: EventWriter, index: int, given_id: str, block: Block, echo: Echo
    ) -> None:
        """Begin the item number `index` with a call."""
        self._writer = writer
        self.index = index
        self._id = given_id
        self._echo = echo
        self.use = block.server_tool_use
        self._texts = [self.use.input]
        self._place = {"item_id": given_id, "output_index": index}
        self.result: ServerToolResult | None = None
        writer.write(
            "response.output_item.added",
            output_index=index,
            item=output.search(given_id, IN_PROGRESS, self.use.name, ""),
        )
        is_of_files = self.use.name == FILE_SEARCH
        self._kind = f"response.{'file' if is_of_files else 'web'}_search_call"
        writer.write(f"{self._kind}.in_progress", **self._place)

    def add(self, kind: str, event: Event) -> None:
        """Keep more of the arguments."""
        if kind == "input":
            self._texts.append(event.input)

    def end_block(self) -> None:
        """Write that the search begins."""
        self._writer.write(f"{self._kind}.searching", **self._place)

    def end(self) -> None:
        """Write that the search has ended."""
        self._writer.write(f"{self._kind}.completed", **self._place)

    def item(self, status: str) -> Json:
        """Return the call as a whole."""
        arguments = "".join(self._texts)
        return output.search(
            *(self._id, status, self.use.name, arguments, self.result),
            sources=self._echo.sources,
            results=self._echo.results,
        )


class OpenProgram:
    """A program that Google has run, open until its output arrives."""

    def __init__(self, writer: EventWriter, index: int, program: Program) -> None:
        """Begin the item number `index` with a program."""
        self._writer = writer
        self.index = index
        self.program = program
        self._place = {"item_id": item_id(program), "output_index": index}
        self.output: Output | None = None
        begun = to_item(program._replace(code=""), None, IN_PROGRESS)
        writer.write("response.output_item.added", output_index=index, item=begun)
        kind = "response.code_interpreter_call"
        writer.write(f"{kind}.in_progress", **self._place)
        writer.write(f"{kind}_code.delta", **self._place, delta=program.code)
        writer.write(f"{kind}_code.done", **self._place, code=program.code)
        writer.write(f"{kind}.interpreting", **self._place)

    def add(self, kind: str, event: Event) -> None:
        """Do nothing: the program arrives as a whole."""

    def end_block(self) -> None:
        """Do nothing: the output ends the item."""

    def item(self, status: str) -> Json:
        """Write that the program has ended, and return the item as a whole."""
        self._writer.write("response.code_interpreter_call.completed", **self._place)
        status = output.program_status(self.output)
        return to_item(self.program, self.output, status)


class OpenWhole:
    """An item that arrives as a whole."""

    def __init__(self, writer: EventWriter, index: int, item: Json) -> None:
        """Begin the item number `index`."""
        self._item = item
        writer.write("response.output_item.added", output_index=index, item=item)

    def add(self, kind: str, event: Event) -> None:
        """Add fields of an item of an unknown type."""
        if kind == "opaque":
            fields = native_fields(event.opaque)
            fields.pop("type", None)
            self._item = {**self._item, **fields}

    def end_block(self) -> None:
        """Do nothing: there are no parts."""

    def item(self, status: str) -> Json:
        """Return the item."""
        return self._item
