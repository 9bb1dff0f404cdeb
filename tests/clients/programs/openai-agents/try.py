"""OpenAI's Agents SDK over chat completions, and with its defaults over responses.

Answers, streams, tools, hand-over, output types, sessions in stored conversations, file search.
"""

from agents import (
    Agent,
    FileSearchTool,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    set_default_openai_client,
    set_tracing_disabled,
)
from agents.items import ToolCallItem
from agents.models.interface import Model
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel
from steps import ADDRESS, KEY, MODELS, OF_RESPONSES, run_all

set_tracing_disabled(True)


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


@function_tool
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return "14 degrees, rain"


def opened() -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0)


def chat(model: str) -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel(model=model, openai_client=opened())


def responses(model: str) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(model=model, openai_client=opened())


async def check_answers(model: Model) -> None:
    agent = Agent("Clerk", instructions="Be brief.", model=model)
    answer = await Runner.run(agent, "hello there")
    assert "hello there" in answer.final_output, answer
    assert answer.context_wrapper.usage.output_tokens > 0, answer
    stream = Runner.run_streamed(agent, "hello there")
    pieces = [
        event.data.delta
        async for event in stream.stream_events()
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
    ]
    assert "".join(pieces) == answer.final_output, pieces
    assert len(pieces) > 1, pieces


async def check_tools(model: Model) -> None:
    agent = Agent("Clerk", instructions="Be brief.", model=model, tools=[get_weather])
    answer = await Runner.run(agent, "use get_weather in parallel for Bern")
    assert "14 degrees, rain" in answer.final_output, answer
    assert sum(isinstance(item, ToolCallItem) for item in answer.new_items) == 2, answer
    asked = [*answer.to_input_list(), {"role": "user", "content": "thank you"}]
    again = await Runner.run(agent, asked)
    assert "thank you" in again.final_output, again
    stream = Runner.run_streamed(agent, "use get_weather for Bern")
    assert [event async for event in stream.stream_events()]
    assert "14 degrees, rain" in stream.final_output, stream


async def check_hand_over(model: Model) -> None:
    other = Agent("Other", instructions="You are the other.", model=model)
    agent = Agent("Clerk", instructions="Be brief.", model=model, handoffs=[other])
    answer = await Runner.run(agent, "use transfer_to_other")
    assert answer.last_agent is other, answer
    assert "You are the other." in answer.final_output, answer


async def check_structured(model: Model) -> None:
    agent = Agent("Clerk", model=model, output_type=Place)
    answer = await Runner.run(agent, "describe a place")
    assert isinstance(answer.final_output, Place), answer


async def chat_answers(model: str) -> None:
    await check_answers(chat(model))


async def chat_tools(model: str) -> None:
    await check_tools(chat(model))


async def chat_hand_over(model: str) -> None:
    await check_hand_over(chat(model))


async def chat_structured(model: str) -> None:
    await check_structured(chat(model))


async def responses_answers(model: str) -> None:
    await check_answers(responses(model))


async def responses_tools(model: str) -> None:
    await check_tools(responses(model))


async def responses_hand_over(model: str) -> None:
    await check_hand_over(responses(model))


async def responses_hand_over_streamed(model: str) -> None:
    other = Agent("Other", instructions="You are the other.", model=responses(model))
    agent = Agent("Clerk", model=responses(model), handoffs=[other])
    stream = Runner.run_streamed(agent, "use transfer_to_other")
    assert [event async for event in stream.stream_events()]
    assert stream.last_agent is other, stream
    assert "You are the other." in stream.final_output, stream


async def responses_structured(model: str) -> None:
    await check_structured(responses(model))


async def defaults(model: str) -> None:
    """Name nothing but the client, as the SDK's own examples do."""
    client = opened()
    set_default_openai_client(client, use_for_tracing=False)
    agent = Agent("Clerk", instructions="Be brief.", tools=[get_weather])
    run = RunConfig(model=model, model_provider=OpenAIProvider(openai_client=client))
    answer = await Runner.run(agent, "use get_weather for Bern", run_config=run)
    assert "14 degrees, rain" in answer.final_output, answer


async def file_search(model: str) -> None:
    """Search a vector store of the gateway, and cite its file."""
    client = opened()
    text = b"Tomatoes are watered at dawn."
    file = await client.files.create(file=("garden.txt", text), purpose="assistants")
    store = await client.vector_stores.create(name="Notes")
    added = await client.vector_stores.files.create_and_poll(
        file.id, vector_store_id=store.id, poll_interval_ms=50
    )
    assert added.status == "completed", added
    tool = FileSearchTool(vector_store_ids=[store.id], include_search_results=True)
    agent = Agent("Gardener", instructions="Be brief.", model=responses(model), tools=[tool])
    query = 'sandbox: arguments {"queries": ["tomatoes"]}'
    answer = await Runner.run(agent, f"use file_search. {query}")
    assert "watered at dawn" in answer.final_output, answer
    items = [item.raw_item for item in answer.new_items]
    [call] = [item for item in items if item.type == "file_search_call"]
    assert [result.text for result in call.results] == [text.decode()], call
    [cited] = items[-1].content[0].annotations
    assert (cited.type, cited.file_id) == ("file_citation", file.id), cited
    asked_again = [*answer.to_input_list(), {"role": "user", "content": "thank you"}]
    assert "thank you" in (await Runner.run(agent, asked_again)).final_output
    await client.vector_stores.delete(store.id)


def asked(items: list[dict]) -> list[str]:
    """Return what a user has said."""
    return [item["content"][0]["text"] for item in items if item.get("role") == "user"]


async def conversation_session(model: str) -> None:
    """Keep a session in a conversation of the gateway's."""
    session = OpenAIConversationsSession(openai_client=opened())
    agent = Agent("Clerk", instructions="Be brief.", model=responses(model), tools=[get_weather])
    await Runner.run(agent, "use get_weather for Bern", session=session)
    stream = Runner.run_streamed(agent, "(sandbox: recite)", session=session)
    assert [event async for event in stream.stream_events()]
    assert "use get_weather for Bern" in stream.final_output, stream
    assert "14 degrees, rain" in stream.final_output, stream
    kept = await session.get_items()
    assert asked(kept) == ["use get_weather for Bern", "(sandbox: recite)"], kept
    assert kept[-1]["content"][0]["text"] == stream.final_output, kept
    assert {"function_call", "function_call_output"} < {item["type"] for item in kept}, kept
    assert await session.get_items(limit=2) == kept[-2:]
    assert await session.pop_item() == kept[-1]
    many = [{"role": "user", "content": f"number {number}"} for number in range(45)]
    await session.add_items(many)
    assert len(await session.get_items()) == len(kept) - 1 + len(many)
    name = session.session_id
    await session.clear_session()
    assert await session.get_items() == []
    assert session.session_id != name


async def conversation(model: str) -> None:
    """Run requests of a stored conversation, whose items the gateway puts before each."""
    client = opened()
    talk = await client.conversations.create()
    agent = Agent("Clerk", instructions="Be brief.", model=responses(model), tools=[get_weather])
    first = await Runner.run(agent, "use get_weather for Bern", conversation_id=talk.id)
    assert "14 degrees, rain" in first.final_output, first
    second = await Runner.run(agent, "(sandbox: recite)", conversation_id=talk.id)
    assert "use get_weather for Bern" in second.final_output, second
    items = [item async for item in client.conversations.items.list(talk.id, order="asc")]
    assert asked([item.to_dict() for item in items]) == [
        *("use get_weather for Bern", "(sandbox: recite)")
    ], items
    assert items[-1].content[0].text == second.final_output, items
    assert len({item.id for item in items}) == len(items), items


run_all(
    {
        (chat_answers, chat_tools, chat_hand_over, chat_structured): MODELS,
        (
            responses_answers,
            responses_tools,
            responses_hand_over,
            responses_hand_over_streamed,
            responses_structured,
            defaults,
            conversation_session,
            conversation,
            file_search,
        ): OF_RESPONSES,
    }
)
