"""Pydantic AI's two kinds of model: answers, streams, tools, structured output, thinking."""

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, NativeOutput, ToolOutput
from pydantic_ai.messages import ThinkingPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from steps import ADDRESS, KEY, run, shows_thoughts


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


def chat(model: str) -> Model:
    provider = OpenAIProvider(base_url=f"{ADDRESS}/beta/v1", api_key=KEY)
    return OpenAIChatModel(model, provider=provider)


def messages(model: str) -> Model:
    provider = AnthropicProvider(base_url=f"{ADDRESS}/beta", api_key=KEY)
    return AnthropicModel(model, provider=provider)


def weather_agent(model: Model) -> Agent:
    agent = Agent(model, instructions="Be brief.")

    @agent.tool_plain
    def get_weather(place: str) -> str:
        """Tell the weather of a place."""
        return "14 degrees, rain"

    return agent


async def check_answers(model: Model) -> None:
    agent = Agent(model, instructions="Be brief.")
    answer = await agent.run("hello there")
    assert "hello there" in answer.output, answer
    assert answer.usage.output_tokens > 0, answer
    async with agent.run_stream("hello there") as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == answer.output, pieces
    assert len(pieces) > 1, pieces


def calls(history: list[ModelMessage]) -> int:
    return sum(isinstance(part, ToolCallPart) for message in history for part in message.parts)


async def check_tools(model: Model) -> None:
    agent = weather_agent(model)
    answer = await agent.run("use get_weather in parallel for Bern")
    assert "14 degrees, rain" in answer.output, answer
    assert calls(answer.all_messages()) == 2, answer
    again = await agent.run("thank you", message_history=answer.all_messages())
    assert "thank you" in again.output, again
    async with agent.iter("use get_weather for Bern") as steps:
        async for node in steps:
            if agent.is_model_request_node(node):
                async with node.stream(steps.ctx) as events:
                    assert [event async for event in events]
    assert "14 degrees, rain" in steps.result.output, steps.result


async def check_structured(model: Model, *kinds: type) -> None:
    for kind in kinds:
        answer = await Agent(model, output_type=kind(Place)).run("describe a place")
        assert isinstance(answer.output, Place), (kind, answer)


async def chat_answers(model: str) -> None:
    await check_answers(chat(model))


async def chat_tools(model: str) -> None:
    await check_tools(chat(model))


async def chat_structured(model: str) -> None:
    await check_structured(chat(model), ToolOutput, NativeOutput)


async def messages_answers(model: str) -> None:
    await check_answers(messages(model))


async def messages_tools(model: str) -> None:
    await check_tools(messages(model))


async def messages_structured(model: str) -> None:
    await check_structured(messages(model), ToolOutput)


async def messages_thinking(model: str) -> None:
    settings = AnthropicModelSettings(
        max_tokens=4000, anthropic_thinking={"type": "enabled", "budget_tokens": 2000}
    )
    agent = weather_agent(messages(model))
    answer = await agent.run("use get_weather for Bern", model_settings=settings)
    parts = [part for message in answer.all_messages() for part in message.parts]
    # One without words carries Gemini's signature of a call.
    thoughts = [part for part in parts if isinstance(part, ThinkingPart) and part.content]
    assert bool(thoughts) == shows_thoughts(model), parts
    assert "14 degrees, rain" in answer.output, answer


run(
    chat_answers,
    chat_tools,
    chat_structured,
    messages_answers,
    messages_tools,
    messages_structured,
    messages_thinking,
)
