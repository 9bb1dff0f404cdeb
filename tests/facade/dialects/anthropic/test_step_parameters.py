"""Parameters that a fallback step overrides in Anthropic's dialect."""

from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1 import inference_pb2 as pb
from tests.facade.dialects.anthropic.bodies import parsed, refusal
from tests.grid import each_row

PATH = "fallback_config.steps[0].parameters"
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def with_step(parameters: dict[str, Any], **fields: Any) -> dict[str, Any]:
    config = {
        "strategy": {"mode": "sequential"},
        "steps": [{"step_id": "a", "model": "m", "parameters": parameters}],
    }
    return {"fallback": "enabled", "fallback_config": config, **fields}


def overridden(parameters: dict[str, Any], **fields: Any) -> pb.GenerateRequest:
    (step,) = parsed(**with_step(parameters, **fields)).fallback_config.steps
    return step.parameters


def test_only_what_a_step_overrides_is_set():
    assert overridden({"temperature": 0}, top_k=5, tools=[TOOL]) == pb.GenerateRequest(
        temperature=0
    )
    assert overridden({}, top_k=5) == pb.GenerateRequest()
    assert overridden({"top_k": None}, top_k=5) == pb.GenerateRequest()


def test_a_step_is_checked_as_part_of_the_merged_request():
    thinking = {"type": "enabled", "budget_tokens": 2048}
    assert overridden({"max_tokens": 9000}, thinking=thinking).max_tokens == 9000
    error = refusal(**with_step({"max_tokens": 2048}, thinking=thinking))
    assert error.param == f"{PATH}.max_tokens"
    choice = {"type": "tool", "name": "look"}
    assert overridden({"tool_choice": choice}, tools=[TOOL]).tool_choice.name == "look"
    assert refusal(**with_step({"tool_choice": choice})).param == f"{PATH}.tool_choice"
    other = [{**TOOL, "name": "other"}]
    error = refusal(**with_step({"tools": other}, tools=[TOOL], tool_choice=choice))
    assert error.param == f"{PATH}.tools"


def test_effort_of_the_request_survives_a_step_s_thinking():
    request = overridden({"thinking": {"type": "adaptive"}}, output_config={"effort": "low"})
    assert request.thinking == pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ADAPTIVE, effort="low")


def test_unknown_fields_of_request_and_step_are_merged():
    request = overridden({"b": 2, "metadata": {"user_id": "v"}}, a=1, b=1)
    assert orjson.loads(request.extra.json) == {"a": 1, "b": 2}
    assert request.end_user == "v"


def test_a_step_can_undo_what_the_request_keeps_as_json():
    request = overridden({"metadata": {"user_id": "v"}}, metadata={"user_id": "u", "x": 1})
    assert (request.end_user, request.extra.json) == ("v", b"{}")


def test_a_step_with_its_own_system_prompt_has_all_messages():
    request = overridden({"system": "Be long."}, system="Be brief.")
    assert [(message.role, message.blocks[0].text) for message in request.messages] == [
        (c.ROLE_SYSTEM, "Be long."),
        (c.ROLE_USER, "Hi"),
    ]
    request = overridden({"messages": [{"role": "user", "content": "Yo"}]}, system="Be brief.")
    assert [message.blocks[0].text for message in request.messages] == ["Be brief.", "Yo"]


@each_row(
    ("parameters", "param"),
    [
        ({"temperature": 2}, "temperature"),
        ({"max_tokens": "1"}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]},
         "messages[0].content[0].source"),
        ({"system": [{"type": "text"}]}, "system[0].text"),
        ({"tools": []}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"stop_sequences": []}, "stop_sequences"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "thinking.budget_tokens"),
        ({"model": "n"}, "model"),
        ({"stream": True}, "stream"),
        ({"fallback": "auto"}, "fallback"),
        ({"memory_id": "a"}, "memory_id"),
        ({"multimodal": {}}, "multimodal"),
        ({"use_built_in_tools": True}, "use_built_in_tools"),
        ({"thinking_block_strategy": "flatten"}, "thinking_block_strategy"),
    ],
)  # fmt: skip
def test_a_bad_override_is_refused_with_its_path(parameters, param):
    error = refusal(**with_step(parameters))
    assert error.param == f"{PATH}.{param}"
    assert error.message.startswith(f"{PATH}.{param}: ")
