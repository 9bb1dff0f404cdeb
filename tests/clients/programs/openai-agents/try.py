"""OpenAI's Agents SDK over chat completions: answers, streams, tools, hand-over, output types."""

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.items import ToolCallItem
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel
from steps import ADDRESS, KEY, run

set_tracing_disabled(True)


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


@function_tool
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return "14 degrees, rain"


def chat(model: str) -> OpenAIChatCompletionsModel:
    client = AsyncOpenAI(base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0)
    return OpenAIChatCompletionsModel(model=model, openai_client=client)


async def answers(model: str) -> None:
    agent = Agent("Clerk", instructions="Be brief.", model=chat(model))
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


async def tools(model: str) -> None:
    agent = Agent("Clerk", instructions="Be brief.", model=chat(model), tools=[get_weather])
    answer = await Runner.run(agent, "use get_weather in parallel for Bern")
    assert "14 degrees, rain" in answer.final_output, answer
    assert sum(isinstance(item, ToolCallItem) for item in answer.new_items) == 2, answer
    asked = [*answer.to_input_list(), {"role": "user", "content": "thank you"}]
    again = await Runner.run(agent, asked)
    assert "thank you" in again.final_output, again
    stream = Runner.run_streamed(agent, "use get_weather for Bern")
    assert [event async for event in stream.stream_events()]
    assert "14 degrees, rain" in stream.final_output, stream


async def hand_over(model: str) -> None:
    other = Agent("Other", instructions="You are the other.", model=chat(model))
    agent = Agent("Clerk", instructions="Be brief.", model=chat(model), handoffs=[other])
    answer = await Runner.run(agent, "use transfer_to_other")
    assert answer.last_agent is other, answer
    assert "You are the other." in answer.final_output, answer


async def structured(model: str) -> None:
    agent = Agent("Clerk", model=chat(model), output_type=Place)
    answer = await Runner.run(agent, "describe a place")
    assert isinstance(answer.final_output, Place), answer


run(answers, tools, hand_over, structured)
