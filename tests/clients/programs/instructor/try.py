"""Instructor's modes over both SDKs: an object in one answer, in parts, and in JSON mode."""

from collections.abc import Iterable

import instructor
from anthropic import Anthropic
from openai import OpenAI
from pydantic import BaseModel
from steps import ADDRESS, KEY, has_json_mode, run


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


class Said(BaseModel):
    """The sandbox's answer in JSON mode."""

    sandbox: str
    said: str


ASKED = [{"role": "user", "content": "describe a place"}]


def chat(mode: instructor.Mode) -> instructor.Instructor:
    return instructor.from_openai(OpenAI(base_url=f"{ADDRESS}/beta/v1", api_key=KEY), mode=mode)


def messages(mode: instructor.Mode) -> instructor.Instructor:
    return instructor.from_anthropic(Anthropic(base_url=f"{ADDRESS}/beta", api_key=KEY), mode=mode)


def check(client: instructor.Instructor, model: str) -> None:
    asked = {"model": model, "messages": ASKED, "max_tokens": 500, "max_retries": 0}
    place = client.chat.completions.create(response_model=Place, **asked)
    assert isinstance(place, Place), place
    parts = list(client.chat.completions.create_partial(response_model=Place, **asked))
    assert parts[-1].model_dump() == place.model_dump(), parts


def chat_tools(model: str) -> None:
    check(chat(instructor.Mode.TOOLS), model)


def chat_schema(model: str) -> None:
    check(chat(instructor.Mode.JSON_SCHEMA), model)


def chat_parallel_tools(model: str) -> None:
    places = chat(instructor.Mode.PARALLEL_TOOLS).chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "use Place in parallel"}],
        response_model=Iterable[Place],
    )
    assert len(list(places)) == 2


def chat_json(model: str) -> None:
    if not has_json_mode(model):
        return
    answer = chat(instructor.Mode.JSON).chat.completions.create(
        model=model, messages=ASKED, response_model=Said, max_retries=0
    )
    assert "describe a place" in answer.said, answer


def messages_tools(model: str) -> None:
    check(messages(instructor.Mode.ANTHROPIC_TOOLS), model)


run(chat_tools, chat_schema, chat_parallel_tools, chat_json, messages_tools)
