"""The gateway's own fields, read through a body that has nothing else."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from facade.dialects.extensions import ExtensionFields, set_extensions
from facade.dialects.paths import SourceMap
from facade.dialects.validation import read
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError
from tests.grid import each_row

FIELDS = TypeAdapter(ExtensionFields)
STEP = {"step_id": "a", "model": "m"}


def parameters(given: Mapping[str, object], path: str, source_map: SourceMap) -> pb.GenerateRequest:
    """Stand in for a dialect: take any temperature, remember where it stood."""
    return pb.GenerateRequest(temperature=given["temperature"], end_user=path)


def extended(**fields: Any) -> pb.GenerateRequest:
    request = pb.GenerateRequest()
    set_extensions(request, read(FIELDS, orjson.dumps(fields)), parameters, SourceMap())
    return request


def chain(*steps: Any, mode: str = "enabled", **fields: Any) -> dict[str, Any]:
    config = {"strategy": {"mode": "sequential"}, "steps": list(steps), **fields}
    return {
        "fallback": mode,
        "fallback_config": {name: value for name, value in config.items() if value is not ...},
    }


def test_nothing_given_sets_nothing():
    assert extended() == pb.GenerateRequest()


def test_multimodal_sets_only_what_is_given():
    assert extended(multimodal={}).HasField("multimodal")
    request = extended(
        multimodal={
            "enabled": True,
            "image": {"model": "eye", "prompt": "Say what you see.", "max_images": 3},
            "pdf": {"enabled": False, "mode": "images", "ocr": "never", "max_pages": 9},
            "video": {},
            "audio": {"language": "de"},
        }
    )
    assert request.multimodal == pb.Multimodal(
        enabled=True,
        image=pb.ImageAdaptation(model="eye", prompt="Say what you see.", max_images=3),
        pdf=pb.PdfAdaptation(
            enabled=False,
            mode=pb.PdfAdaptation.MODE_IMAGES,
            ocr=pb.PdfAdaptation.OCR_NEVER,
            max_pages=9,
        ),
        video=pb.VideoAdaptation(),
        audio=pb.AudioAdaptation(language="de"),
    )


@pytest.mark.parametrize("mode", ["disabled", "auto"])
def test_a_chain_that_is_not_asked_for_is_not_read(mode):
    request = extended(fallback=mode, fallback_config={"steps": "nonsense"})
    assert request == pb.GenerateRequest(
        fallback=pb.FallbackMode.Value(f"FALLBACK_MODE_{mode.upper()}")
    )


@pytest.mark.parametrize("mode", ["enabled", "strict"])
def test_a_chain_keeps_every_figure(mode):
    step = {
        "step_id": "second",
        "model": "p/m",
        "timeout_ms": 500,
        "retry_policy": {"max_retries": 10, "backoff_factor": 1.5, "jitter_ms": 0},
        "fail_on": {"status_code": [429, 599], "error_contains": ["busy"]},
        "parameters": {"temperature": 0.5},
    }
    request = extended(**chain(STEP, step, mode=mode, global_timeout_ms=9000, max_total_retries=0))
    assert request.fallback == pb.FallbackMode.Value(f"FALLBACK_MODE_{mode.upper()}")
    assert request.fallback_config == pb.FallbackConfig(
        strategy_mode="sequential",
        global_timeout_ms=9000,
        max_total_retries=0,
        steps=[
            pb.FallbackStep(step_id="a", model="m"),
            pb.FallbackStep(
                step_id="second",
                model="p/m",
                timeout_ms=500,
                retry_policy=pb.RetryPolicy(max_retries=10, backoff_factor=1.5, jitter_ms=0),
                fail_on=pb.FailOn(status_code=[429, 599], error_contains=["busy"]),
                parameters=pb.GenerateRequest(
                    temperature=0.5, end_user="fallback_config.steps[1].parameters"
                ),
            ),
        ],
    )


def test_a_chain_that_comes_again_is_read_as_before():
    def read_again(request: pb.GenerateRequest) -> pb.GenerateRequest:
        request.fallback_config.steps[0].model = "changed"
        return extended(**chain(STEP, mode="strict"))

    first = extended(**chain(STEP, mode="enabled"))
    again = read_again(first)
    assert [step.model for step in again.fallback_config.steps] == ["m"]
    assert again.fallback != first.fallback


def test_a_policy_given_empty_is_still_given():
    (step,) = extended(**chain({**STEP, "retry_policy": {}, "fail_on": {}})).fallback_config.steps
    assert step.HasField("retry_policy")
    assert step.HasField("fail_on")


def test_memory_keeps_every_figure():
    assert extended(memory_id="älter 1").memory == pb.Memory(memory_id="älter 1")
    request = extended(
        memory_id="a",
        memory_config={
            "memory_mode": "read_only",
            "history_window": 5,
            "summary_window": 6,
            "personal_memory": True,
        },
    )
    assert request.memory == pb.Memory(
        memory_id="a",
        mode=pb.Memory.MODE_READ_ONLY,
        history_window=5,
        summary_window=6,
        personal_memory=True,
    )


def test_a_window_has_no_bound():
    request = extended(
        memory_id="a", memory_config={"history_window": 10**18, "summary_window": 2**32}
    )
    assert request.memory.history_window == request.memory.summary_window == 2**32 - 1


def test_personal_memory_needs_no_conversation():
    request = extended(memory_config={"personal_memory": True})
    assert request.memory == pb.Memory(personal_memory=True)


def steps(*given: Any) -> dict[str, Any]:
    return chain(*given)


FIRST = "fallback_config.steps[0]"
TABLE: list[tuple[dict[str, Any], str, str]] = [
    ({"multimodal": True}, "multimodal", "must be an object"),
    ({"multimodal": {"enabled": "yes"}}, "multimodal.enabled", "true or false"),
    ({"multimodal": {"pictures": {}}}, "multimodal.pictures", "not a known field"),
    ({"multimodal": {"#x": 1}}, "multimodal.#x", "not a known field"),
    ({"multimodal": {"x" * 200: 1}}, "multimodal." + "x" * 128, "not a known field"),
    ({"multimodal": {"image": True}}, "multimodal.image", "must be an object"),
    ({"multimodal": {"image": {"model": ""}}}, "multimodal.image.model", "must not be empty"),
    ({"multimodal": {"image": {"max_images": 0}}}, "multimodal.image.max_images", "at least 1"),
    ({"multimodal": {"image": {"detail": "low"}}}, "multimodal.image.detail", "not a known"),
    ({"multimodal": {"pdf": {"mode": "html"}}}, "multimodal.pdf.mode", "'images' or 'text'"),
    ({"multimodal": {"pdf": {"ocr": True}}}, "multimodal.pdf.ocr", "'always' or 'never'"),
    ({"multimodal": {"pdf": {"max_pages": 1.5}}}, "multimodal.pdf.max_pages", "an integer"),
    ({"multimodal": {"video": {"frames": -1}}}, "multimodal.video.frames", "at least 1"),
    ({"multimodal": {"video": {"frames": 101}}}, "multimodal.video.frames", "at most 100"),
    ({"multimodal": {"audio": {"language": "a\r\nb"}}}, "multimodal.audio.language", "match"),
    ({"multimodal": {"audio": {"language": 5}}}, "multimodal.audio.language", "a string"),
    ({"fallback": "maybe"}, "fallback", "'disabled', 'auto', 'enabled' or 'strict'"),
    ({"fallback": True}, "fallback", "'disabled'"),
    ({"fallback": "enabled"}, "fallback_config", "is required"),
    ({"fallback": "strict", "fallback_config": None}, "fallback_config", "is required"),
    ({"fallback": "strict", "fallback_config": []}, "fallback_config", "must be an object"),
    (chain(STEP, strategy=...), "fallback_config.strategy", "is required"),
    (chain(STEP, strategy={}), "fallback_config.strategy.mode", "is required"),
    (chain(STEP, strategy={"mode": "parallel"}), "fallback_config.strategy.mode", "'sequential'"),
    (chain(STEP, strategy={"mode": "sequential", "x": 1}), "fallback_config.strategy.x", "known"),
    (chain(STEP, global_timeout_ms=0), "fallback_config.global_timeout_ms", "at least 1"),
    (chain(STEP, max_total_retries=-1), "fallback_config.max_total_retries", "at least 0"),
    (chain(STEP, other=1), "fallback_config.other", "not a known field"),
    (chain(steps=...), "fallback_config.steps", "is required"),
    (steps(), "fallback_config.steps", "must not be empty"),
    (steps(*({**STEP, "step_id": str(n)} for n in range(17))), "fallback_config.steps", "most 16"),
    (steps("a"), FIRST, "must be an object"),
    (steps({"model": "m"}), f"{FIRST}.step_id", "is required"),
    (steps({"step_id": "a"}), f"{FIRST}.model", "is required"),
    (steps({**STEP, "model": ""}), f"{FIRST}.model", "must not be empty"),
    (steps({**STEP, "timeout_ms": 0}), f"{FIRST}.timeout_ms", "at least 1"),
    (steps({**STEP, "weight": 1}), f"{FIRST}.weight", "not a known field"),
    (steps({**STEP, "parameters": []}), f"{FIRST}.parameters", "must be an object"),
    (
        steps({**STEP, "retry_policy": {"max_retries": 11}}),
        f"{FIRST}.retry_policy.max_retries",
        "at most 10",
    ),
    (
        steps({**STEP, "retry_policy": {"backoff_factor": 0.5}}),
        f"{FIRST}.retry_policy.backoff_factor",
        "at least 1",
    ),
    (
        steps({**STEP, "retry_policy": {"jitter_ms": -1}}),
        f"{FIRST}.retry_policy.jitter_ms",
        "at least 0",
    ),
    (
        steps({**STEP, "fail_on": {"status_code": [99]}}),
        f"{FIRST}.fail_on.status_code[0]",
        "at least 100",
    ),
    (
        steps({**STEP, "fail_on": {"status_code": [200, 600]}}),
        f"{FIRST}.fail_on.status_code[1]",
        "at most 599",
    ),
    (
        steps({**STEP, "fail_on": {"error_contains": [""]}}),
        f"{FIRST}.fail_on.error_contains[0]",
        "must not be empty",
    ),
    ({"memory_id": ""}, "memory_id", "must not be empty"),
    ({"memory_id": "a" * 257}, "memory_id", "at most 256"),
    ({"memory_id": "a\nb"}, "memory_id", "printable"),
    ({"memory_id": 5}, "memory_id", "must be a string"),
    ({"memory_config": {}}, "memory_id", "is required"),
    ({"memory_config": {"personal_memory": False}}, "memory_id", "is required"),
    ({"memory_id": "a", "memory_config": []}, "memory_config", "must be an object"),
    ({"memory_id": "a", "memory_config": {"turns": 5}}, "memory_config.turns", "not a known"),
    (
        {"memory_id": "a", "memory_config": {"memory_mode": "write"}},
        "memory_config.memory_mode",
        "'read_write' or 'read_only'",
    ),
    (
        {"memory_id": "a", "memory_config": {"history_window": 4}},
        "memory_config.history_window",
        "at least 5",
    ),
    (
        {"memory_id": "a", "memory_config": {"summary_window": 4}},
        "memory_config.summary_window",
        "at least 5",
    ),
    (
        {"memory_id": "a", "memory_config": {"history_window": 5.5}},
        "memory_config.history_window",
        "an integer",
    ),
]


@each_row(("fields", "param", "takes"), TABLE)
def test_a_broken_rule_is_reported_with_its_field(fields, param, takes):
    with pytest.raises(GatewayError) as caught:
        extended(**fields)
    assert caught.value.http_status == 400
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")
    assert takes in caught.value.message


def test_sixteen_steps_are_a_chain():
    given = chain(*({**STEP, "step_id": str(number)} for number in range(16)))
    assert len(extended(**given).fallback_config.steps) == 16
