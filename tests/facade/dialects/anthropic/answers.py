"""Answers as the service gives them, whole and as events."""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1 import inference_pb2 as pb

OVER = pb.Finish(reason=c.FINISH_REASON_END_TURN)


def answer(
    *blocks: c.Block,
    id: str = "msg_1",
    finish: pb.Finish = OVER,
    usage: c.Usage | None = None,
    **fields: Any,
) -> pb.GenerateResponse:
    """Return a whole answer of these blocks."""
    return pb.GenerateResponse(
        id=id,
        model="up-1",
        choices=[pb.Choice(blocks=blocks, finish=finish)],
        usage=usage or c.Usage(input_tokens=3, output_tokens=5),
        **fields,
    )


def _kept(json: bytes) -> c.Opaque:
    return c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=json)


_CALL = c.Block(tool_use=c.ToolUse(id="toolu_1", name="look", input='{"at": ["here", 1.5]}'))

# Whole answers of every kind that the dialect can show.
ANSWERS = {
    "nothing": answer(),
    "text": answer(c.Block(text="Hällo\n\u2028 \U0001f600")),
    "two texts": answer(c.Block(text="a"), c.Block(text="b")),
    "empty text": answer(c.Block(text=""), c.Block(text="b")),
    "foreign id": answer(c.Block(text="a"), id="chatcmpl-1"),
    "thinking": answer(
        c.Block(thinking=c.Thinking(text="Let me see.", signature="c2lnbmVk")),
        c.Block(redacted_thinking="AbC="),
        c.Block(text="Yes."),
    ),
    "hidden thinking": answer(c.Block(thinking=c.Thinking(signature="c2lnbmVk"))),
    "parallel calls": answer(
        c.Block(text="Looking."),
        _CALL,
        c.Block(tool_use=c.ToolUse(id="toolu_2", name="stop")),
        finish=pb.Finish(reason=c.FINISH_REASON_TOOL_USE),
    ),
    "refusal": answer(
        c.Block(refusal="I won't."), finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)
    ),
    "stop": answer(
        c.Block(text="a"),
        finish=pb.Finish(reason=c.FINISH_REASON_STOP_SEQUENCE, stop_sequence="END"),
    ),
    "max tokens": answer(c.Block(text="a"), finish=pb.Finish(reason=c.FINISH_REASON_MAX_TOKENS)),
    "cache": answer(
        c.Block(text="a"),
        usage=c.Usage(
            input_tokens=1,
            output_tokens=9,
            cache_creation_input_tokens=20,
            cache_read_input_tokens=300,
            reasoning_tokens=4,
        ),
    ),
    "citations": answer(
        c.Block(
            text="Cited.",
            extra=_kept(
                b'{"citations":[{"type":"page_location","cited_text":"x","document_index":0,'
                b'"document_title":null,"file_id":null,"start_page_number":1,"end_page_number":2}]}'
            ),
        )
    ),
    "server tool": answer(
        c.Block(
            opaque=_kept(
                b'{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search",'
                b'"input":{"query":"a"}}'
            )
        ),
        c.Block(
            opaque=_kept(
                b'{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":'
                b'[{"type":"web_search_result","title":"t","url":"https://a.example",'
                b'"encrypted_content":"e","page_age":null}]}'
            )
        ),
        c.Block(text="Found."),
    ),
}


def events(whole: pb.GenerateResponse, *, piece: int, filled: bool) -> Iterator[pb.Event]:
    """Return an answer as events, text in pieces of so many characters.

    `filled` puts the first piece into the start of its block, as some providers do.
    """
    yield pb.Event(start=pb.Start(id=whole.id, model=whole.model, extra=whole.extra))
    choice = whole.choices[0]
    for index, block in enumerate(choice.blocks):
        start, deltas = _taken_apart(block, piece)
        if filled and deltas:
            _fill(start, deltas.pop(0))
        yield pb.Event(block=index, block_start=start)
        for delta in deltas:
            delta.block = index
            yield delta
        yield pb.Event(block=index, block_stop=pb.BlockStop())
    yield pb.Event(finish=choice.finish)
    yield pb.Event(usage=whole.usage)


def batches(all_events: Sequence[pb.Event], sizes: Sequence[int]) -> Iterator[list[pb.Event]]:
    """Cut events into batches of these sizes, over and over."""
    at = turn = 0
    while at < len(all_events):
        size = sizes[turn % len(sizes)]
        yield list(all_events[at : at + size])
        at += size
        turn += 1


def _taken_apart(block: c.Block, piece: int) -> tuple[c.Block, list[pb.Event]]:
    start = c.Block()
    start.CopyFrom(block)
    match block.WhichOneof("kind"):
        case "text":
            start.text = ""
            return start, [pb.Event(text=text) for text in _pieces(block.text, piece)]
        case "refusal":
            start.refusal = ""
            return start, [pb.Event(refusal=text) for text in _pieces(block.refusal, piece)]
        case "thinking":
            start.thinking.text = start.thinking.signature = ""
            thoughts = [pb.Event(thinking=text) for text in _pieces(block.thinking.text, piece)]
            proof = [pb.Event(signature=text) for text in _pieces(block.thinking.signature, piece)]
            return start, thoughts + proof
        case "tool_use":
            start.tool_use.input = ""
            return start, [pb.Event(input=text) for text in _pieces(block.tool_use.input, piece)]
        case _:
            return start, []


def _fill(start: c.Block, delta: pb.Event) -> None:
    match delta.WhichOneof("kind"):
        case "text":
            start.text = delta.text
        case "refusal":
            start.refusal = delta.refusal
        case "thinking":
            start.thinking.text = delta.thinking
        case "signature":
            start.thinking.signature = delta.signature
        case "input":
            start.tool_use.input = delta.input


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
