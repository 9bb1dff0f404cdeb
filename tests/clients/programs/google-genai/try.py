"""Google's Python SDK: whole and streamed, sync and async, chats, functions, schemas, files."""

import io
import json

from google import genai
from google.genai import errors, types
from pydantic import BaseModel
from steps import ADDRESS, EMBEDDING, KEY, OF_RESPONSES, run_all


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


def client(key: str) -> genai.Client:
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=ADDRESS))


# A client that nobody refers to closes its connections.
GOOGLE = client(KEY)


def whole(model: str) -> None:
    config = types.GenerateContentConfig(system_instruction="be brief", temperature=0.5)
    answer = GOOGLE.models.generate_content(model=model, contents="hello there", config=config)
    assert "hello there" in answer.text and "be brief" in answer.text, answer
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP, answer
    assert answer.usage_metadata.total_token_count > answer.usage_metadata.prompt_token_count > 0
    assert answer.response_id and answer.model_version, answer


def streamed(model: str) -> None:
    chunks = [*GOOGLE.models.generate_content_stream(model=model, contents="hello there")]
    assert "hello there" in "".join(chunk.text or "" for chunk in chunks), chunks
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP, chunks
    assert chunks[-1].usage_metadata.candidates_token_count > 0, chunks


async def asynchronous(model: str) -> None:
    models = GOOGLE.aio.models
    assert "hi" in (await models.generate_content(model=model, contents="hi")).text
    text = ""
    async for chunk in await models.generate_content_stream(model=model, contents="hello there"):
        text += chunk.text or ""
    assert "hello there" in text, text


def chat(model: str) -> None:
    talk = GOOGLE.chats.create(model=model)
    talk.send_message("hello there")
    "".join(chunk.text or "" for chunk in talk.send_message_stream("and you"))
    assert "hello there" in talk.send_message("sandbox: recite").text
    assert [content.role for content in talk.get_history()][:3] == ["user", "model", "user"]


def functions(model: str) -> None:
    called: list[str] = []

    def look_up(place: str) -> str:
        """Look up a place."""
        called.append(place)
        return "sunny everywhere"

    thinking = types.ThinkingConfig(thinking_budget=1024, include_thoughts=True)
    config = types.GenerateContentConfig(tools=[look_up], thinking_config=thinking)
    talk = GOOGLE.chats.create(model=model, config=config)
    answer = talk.send_message("use the tool look_up")
    assert called and "sunny everywhere" in answer.text, answer
    assert "hello" in talk.send_message("hello").text


def forced_functions(model: str) -> None:
    declared = [
        types.FunctionDeclaration(
            name=name,
            parameters=types.Schema(
                type=types.Type.OBJECT,
                properties={"n": types.Schema(type=types.Type.INTEGER, nullable=True)},
            ),
        )
        for name in ("one", "two", "three")
    ]
    choice = types.FunctionCallingConfig(
        mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["two", "three"]
    )
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        tool_config=types.ToolConfig(function_calling_config=choice),
    )
    answer = GOOGLE.models.generate_content(model=model, contents="hello", config=config)
    assert [call.name for call in answer.function_calls] == ["two"], answer


def schema(model: str) -> None:
    for options in (
        {"response_schema": Place},
        {"response_json_schema": Place.model_json_schema()},
    ):
        config = types.GenerateContentConfig(response_mime_type="application/json", **options)
        answer = GOOGLE.models.generate_content(model=model, contents="a place", config=config)
        assert json.loads(answer.text).keys() == {"name", "population"}, answer


def counts(model: str) -> None:
    assert GOOGLE.models.count_tokens(model=model, contents="hello there").total_tokens > 0
    assert GOOGLE.models.get(model=model).name == f"models/{model}"


def files(model: str) -> None:
    # More than the chunks in which the client sends a file.
    large = GOOGLE.files.upload(
        file=io.BytesIO(b"x" * (9 << 20)), config={"mime_type": "application/octet-stream"}
    )
    assert large.size_bytes == 9 << 20, large
    note = GOOGLE.files.upload(
        file=io.BytesIO(b"the text of the file"),
        config={"mime_type": "text/plain", "display_name": "note.txt"},
    )
    assert GOOGLE.files.get(name=note.name).display_name == "note.txt"
    answer = GOOGLE.models.generate_content(model=model, contents=["read this", note])
    # The sandbox is the only one to say what it got in place of its text.
    assert model.startswith("sandbox/") or "the text of the file" in answer.text, answer
    assert {large.name, note.name} <= {file.name for file in GOOGLE.files.list()}
    for file in (large, note):
        GOOGLE.files.delete(name=file.name)


def interactions(model: str) -> None:
    first = GOOGLE.interactions.create(model=model, input="I am Ada.")
    recited = GOOGLE.interactions.create(
        model=model, input="sandbox: recite", previous_interaction_id=first.id
    )
    assert "I am Ada." in recited.output_text, recited
    text = ""
    for event in GOOGLE.interactions.create(model=model, input="hello there", stream=True):
        if event.event_type == "step.delta" and event.delta.type == "text":
            text += event.delta.text
    assert "hello there" in text, text
    GOOGLE.interactions.delete(id=first.id)


def listed(model: str) -> None:
    names = [one.name for one in GOOGLE.models.list(config={"page_size": 5})]
    assert f"models/{model}" in names and len(names) > 5, names


def wrong(model: str) -> None:
    for name, key, status in (
        ("nobody/knows", KEY, "NOT_FOUND"),
        (model, f"gw-{'A' * 43}", "UNAUTHENTICATED"),
    ):
        try:
            google = client(key)
            google.models.generate_content(model=name, contents="hello")
        except errors.ClientError as error:
            assert error.status == status and error.message, error
        else:
            raise AssertionError(status)


def embeddings(model: str) -> None:
    config = types.EmbedContentConfig(output_dimensionality=8, task_type="RETRIEVAL_QUERY")
    made = GOOGLE.models.embed_content(model=model, contents=["one", "two"], config=config)
    assert [len(one.values) for one in made.embeddings] == [8, 8], made


run_all(
    {
        (
            whole,
            streamed,
            asynchronous,
            chat,
            functions,
            forced_functions,
            schema,
            interactions,
        ): OF_RESPONSES,
        (counts, files, listed, wrong): OF_RESPONSES[:4],
        (embeddings,): EMBEDDING,
    }
)
