"""LangChain's chat models over chats, messages and responses, and its embeddings.

Answers, streams, tools, an agent, structured output, many requests at once.
"""

from typing import Any
from unittest.mock import patch

import tiktoken
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from steps import (
    ADDRESS,
    EMBEDDING,
    KEY,
    MODELS,
    OF_RESPONSES,
    has_json_mode,
    run_all,
    shows_thoughts,
)

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


@tool
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return "14 degrees, rain"


def chat(model: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=model, base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0, **options
    )


def messages(model: str, **options: Any) -> ChatAnthropic:
    return ChatAnthropic(
        model=model, base_url=f"{ADDRESS}/beta", api_key=KEY, max_retries=0, **options
    )


def check_answers(client: BaseChatModel) -> None:
    question = [SystemMessage("Be brief."), HumanMessage("hello there")]
    answer = client.invoke(question)
    assert "hello there" in answer.text, answer
    assert answer.usage_metadata["output_tokens"] > 0, answer
    whole = AIMessageChunk("")
    for chunk in client.stream(question):
        whole += chunk
    assert whole.text == answer.text, whole
    assert whole.usage_metadata["output_tokens"] > 0, whole


def check_tools(client: BaseChatModel) -> None:
    bound = client.bind_tools([get_weather])
    question = HumanMessage("use get_weather in parallel for Bern")
    assert len(bound.invoke([question]).tool_calls) == 2
    whole = AIMessageChunk("")
    for chunk in bound.stream([question]):
        whole += chunk
    assert [call["name"] for call in whole.tool_calls] == ["get_weather"] * 2, whole
    assert all("place" in call["args"] for call in whole.tool_calls), whole
    agent = create_agent(client, [get_weather], system_prompt="Be brief.")
    done = agent.invoke({"messages": [HumanMessage("use get_weather for Bern")]})
    assert "14 degrees, rain" in done["messages"][-1].text, done
    seen = list(agent.stream({"messages": [HumanMessage("use get_weather for Bern")]}))
    assert len(seen) == 3, seen


def check_structured(client: BaseChatModel, *methods: str) -> None:
    for method in methods:
        place = client.with_structured_output(Place, method=method).invoke("describe a place")
        assert isinstance(place, Place), (method, place)


def chat_answers(model: str) -> None:
    check_answers(chat(model, stream_usage=True, temperature=0.5))


def chat_tools(model: str) -> None:
    check_tools(chat(model))


def chat_structured(model: str) -> None:
    check_structured(chat(model), "json_schema", "function_calling")
    structured = chat(model).with_structured_output(None, method="json_mode", include_raw=True)
    answer = structured.invoke("say JSON")
    if has_json_mode(model):
        assert isinstance(answer["parsed"], dict), answer
    else:
        assert "one JSON object" in answer["raw"].text, answer


def messages_answers(model: str) -> None:
    check_answers(messages(model, temperature=0.5))


def messages_tools(model: str) -> None:
    check_tools(messages(model))


def messages_structured(model: str) -> None:
    check_structured(messages(model), "json_schema", "function_calling")


def messages_thinking(model: str) -> None:
    client = messages(model, max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000})
    agent = create_agent(client, [get_weather])
    done = agent.invoke({"messages": [HumanMessage("use get_weather for Bern")]})
    blocks = [block["type"] for message in done["messages"] for block in message.content_blocks]
    assert ("reasoning" in blocks) == shows_thoughts(model), done
    assert "14 degrees, rain" in done["messages"][-1].text, done


def both_in_turn(model: str) -> None:
    """Go on with what the other client was answered, hidden thinking included."""
    thinks = messages(model, max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000})
    for first, then in ((thinks, chat(model)), (chat(model), thinks)):
        agent = create_agent(first, [get_weather])
        history = agent.invoke({"messages": [HumanMessage("use get_weather for Bern")]})["messages"]
        answer = then.invoke([*history, HumanMessage("thank you")])
        assert "thank you" in answer.text, answer


def images(model: str) -> None:
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    question = HumanMessage([{"type": "text", "text": "what is this?"}, image])
    for client in (chat(model), messages(model)):
        answer = client.invoke([question])
        assert "of 1x1 pixels" in answer.text, answer


async def many_at_once(model: str) -> None:
    questions: list[Any] = [[HumanMessage(f"say {number}")] for number in range(4)]
    for client in (chat(model), messages(model)):
        for answers in (client.batch(questions), await client.abatch(questions)):
            assert [f"say {n}" in answer.text for n, answer in enumerate(answers)] == [True] * 4
        ended = dict(client.batch_as_completed(questions, config={"max_concurrency": 2}))
        assert all(f"say {number}" in ended[number].text for number in range(4)), ended


def responses_answers(model: str) -> None:
    check_answers(chat(model, use_responses_api=True))


def responses_tools(model: str) -> None:
    check_tools(chat(model, use_responses_api=True))


def responses_structured(model: str) -> None:
    check_structured(chat(model, use_responses_api=True), "json_schema", "function_calling")


def responses_images(model: str) -> None:
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    question = HumanMessage([{"type": "text", "text": "what is this?"}, image])
    answer = chat(model, use_responses_api=True).invoke([question])
    assert "of 1x1 pixels" in answer.text, answer


def responses_state(model: str) -> None:
    client = chat(model, use_responses_api=True, use_previous_response_id=True)
    first = client.invoke("hello there")
    history = [HumanMessage("hello there"), first, HumanMessage("sandbox: recite")]
    assert "hello there" in client.invoke(history).text


def embeddings(model: str, **options: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(
        model=model, base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0, **options
    )


def check_vectors(client: OpenAIEmbeddings) -> None:
    vectors = client.embed_documents(["a dog", "two cats"])
    assert [len(vector) for vector in vectors] == [256, 256], vectors
    assert client.embed_query("a dog") == vectors[0]


def texts_as_vectors(model: str) -> None:
    check_vectors(embeddings(model, check_embedding_ctx_length=False))
    short = embeddings(model, check_embedding_ctx_length=False, dimensions=8)
    assert len(short.embed_query("a dog")) == 8


def tokens_as_vectors(model: str) -> None:
    """Send tokens, as the class does by itself; tiktoken would download what tokens stand for."""
    every_byte = tiktoken.Encoding(
        name="bytes",
        pat_str=r"(?s:.)",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={},
    )
    with patch.object(tiktoken, "get_encoding", lambda name: every_byte):
        check_vectors(embeddings(model))


run_all(
    {
        (
            chat_answers,
            chat_tools,
            chat_structured,
            messages_answers,
            messages_tools,
            messages_structured,
            messages_thinking,
            both_in_turn,
            images,
        ): MODELS,
        (
            responses_answers,
            responses_tools,
            responses_structured,
            responses_images,
            responses_state,
            many_at_once,
        ): OF_RESPONSES,
        (texts_as_vectors,): EMBEDDING,
        (tokens_as_vectors,): ["openai/embed"],
    }
)
