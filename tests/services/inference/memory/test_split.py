"""The part of a request that Memory receives: no instructions, no bytes, and nothing is lost."""

import hashlib

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Thinking
from gateway.inference.v1.inference_pb2 import FallbackStep, GenerateRequest, Memory
from gateway.memory.v1.memory_pb2 import BeginTurn
from services.common.errors import GatewayError
from services.inference.memory.split import check_steps, split_request, uses_memory
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import Retries
from services.inference.providers.base import Target
from tests.services.inference.memory.builders import (
    assistant,
    call,
    developer,
    image,
    request,
    result,
    system,
    texts,
    user,
)

PICTURE = b"a picture"
HASH = hashlib.sha256(PICTURE).digest()


def test_memory_takes_part_where_it_is_named() -> None:
    assert uses_memory(request(user("Hi")))
    assert uses_memory(request(user("Hi"), memory_id=""))
    assert not uses_memory(GenerateRequest(messages=[user("Hi")]))


def test_instructions_stay_wherever_they_stand() -> None:
    asked = request(system("Be brief."), user("Hi"), developer("Be kind."), user("There"))
    apart = split_request(asked)
    assert texts(apart.begin.messages) == ["Hi", "There"]
    assert texts(apart.instructions) == ["Be brief.", "Be kind."]
    assert not asked.messages


def test_memory_receives_the_memory_options_of_the_request() -> None:
    asked = request(user("Hi"))
    asked.memory.MergeFrom(
        Memory(mode=Memory.MODE_READ_ONLY, history_window=7, summary_window=6, personal_memory=True)
    )
    assert split_request(asked).begin == BeginTurn(
        memory_id="m",
        mode=BeginTurn.MODE_READ_ONLY,
        history_window=7,
        summary_window=6,
        personal_memory=True,
        messages=[user("Hi")],
    )
    unset = split_request(request(user("Hi"))).begin
    assert not unset.HasField("history_window")
    assert not unset.HasField("summary_window")
    assert unset.mode == BeginTurn.MODE_UNSPECIFIED


def test_media_in_messages_and_tool_results_become_hashes() -> None:
    asked = request(
        user("See", image(data=PICTURE)),
        assistant(call("1")),
        user(result("1", image(data=PICTURE), image(url="https://x/y"))),
    )
    apart = split_request(asked)
    first = apart.begin.messages[0].blocks[1].media
    in_result, by_address = apart.begin.messages[2].blocks[0].tool_result.blocks
    assert first.mime_type == "image/png"
    assert first.sha256 == in_result.media.sha256 == HASH
    assert by_address.media.url == "https://x/y"
    paths = {path: media.WhichOneof("source") for path, media in apart.media.values()}
    assert paths == {
        "messages[0].blocks[1]": "data",
        "messages[2].blocks[0].tool_result.blocks[1]": "url",
    }


def test_calls_that_come_with_thoughts_are_kept_by_their_ids() -> None:
    thought = Block(thinking=Thinking(text="hmm", signature="s"))
    apart = split_request(
        request(user("Hi"), assistant(thought, call("1"), call("2")), user(result("1")))
    )
    assert apart.messages_with_thinking == {("1", "2"): assistant(thought, call("1"), call("2"))}
    assert (
        split_request(request(user("Hi"), assistant(thought, "Hello"))).messages_with_thinking == {}
    )


def test_profile_only_split_sends_the_newest_message() -> None:
    conversation = [
        user("One"),
        assistant("Two"),
        system("Now"),
        user("Three", image(data=PICTURE)),
    ]
    more = [assistant(call("1")), user(result("1"))]
    asked = request(system("Be"), *conversation, *more, memory_id="")
    apart = split_request(asked)
    assert texts(apart.instructions) == ["Be"]
    assert apart.kept == ([*conversation, *more], ["messages[4].blocks[1]"])
    assert texts(apart.begin.messages) == ["Three -", "-", "-"]
    assert apart.begin.messages[0].blocks[1].media.sha256 == HASH
    assert apart.begin.personal_memory


@pytest.mark.parametrize("memory_id", ["m", ""])
def test_instructions_alone_are_no_turn(memory_id: str) -> None:
    with pytest.raises(GatewayError, match=r"^messages: ") as refused:
        split_request(request(system("Be"), developer("Be"), memory_id=memory_id))
    assert refused.value.code == "invalid_request"


def plan(*parameters: GenerateRequest | None) -> Plan:
    target = Target("a", "p", "a")
    return Plan(
        tuple(
            Step("s", target, 1, Retries(), parameters=one, path=f"steps[{index}]")
            for index, one in enumerate(parameters)
        )
    )


@pytest.mark.parametrize("memory_id", ["m", ""])
def test_step_may_override_instructions_not_conversation(memory_id: str) -> None:
    asked = request(system("Be"), user("Hi"), memory_id=memory_id)
    others = GenerateRequest(messages=[system("Do"), system("not"), user("Hi")])
    check_steps(asked, plan(None, GenerateRequest(temperature=1), others))
    step = FallbackStep(parameters=GenerateRequest(messages=[user("Bye")]))
    with pytest.raises(GatewayError) as refused:
        check_steps(asked, plan(None, step.parameters))
    assert refused.value.param == "steps[1].parameters.messages"
