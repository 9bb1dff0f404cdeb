"""Plans that are read from requests, and requests refused before any model is called."""

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError
from tests.grid import each_row
from tests.services.inference.fallback.scripted_engine import (
    AUTO,
    DISABLED,
    ENABLED,
    STRICT,
    ScriptedEngine,
    chain,
    request,
)
from tests.services.inference.fallback.virtual_time import in_no_time

STEPS = "fallback_config.steps"


async def refusal(scripted: ScriptedEngine, request: pb.GenerateRequest) -> GatewayError:
    with pytest.raises(GatewayError) as refused:
        await scripted.engine.generate(request)
    assert not scripted.p.calls
    assert refused.value.message.startswith(f"{refused.value.param}: ")
    return refused.value


def second(**fields: object) -> pb.GenerateRequest:
    return chain("a", {"model": "b", **fields})


def given(**fields: object) -> dict[str, pb.GenerateRequest]:
    return {"parameters": pb.GenerateRequest(**fields)}


@each_row(
    ("wanted", "param"),
    [
        (request(fallback=ENABLED), "fallback_config"),
        (request(fallback=STRICT), "fallback_config"),
        (chain(), STEPS),
        (chain(*"a" * 17), STEPS),
        (chain("nobody"), f"{STEPS}[0].model"),
        (chain("a", "nobody", mode=ENABLED), f"{STEPS}[1].model"),
        (chain(""), f"{STEPS}[0].model"),
        (chain("a", {"model": "b", "step_id": "s1"}), f"{STEPS}[1].step_id"),
        (chain({"model": "b", "step_id": ""}), f"{STEPS}[0].step_id"),
        (chain("a", config={"global_timeout_ms": 0}), "fallback_config.global_timeout_ms"),
        (second(timeout_ms=0), f"{STEPS}[1].timeout_ms"),
        (
            second(retry_policy=pb.RetryPolicy(max_retries=11)),
            f"{STEPS}[1].retry_policy.max_retries",
        ),
        (
            second(retry_policy=pb.RetryPolicy(backoff_factor=0.5)),
            f"{STEPS}[1].retry_policy.backoff_factor",
        ),
        (
            second(retry_policy=pb.RetryPolicy(backoff_factor=float("nan"))),
            f"{STEPS}[1].retry_policy.backoff_factor",
        ),
        (second(fail_on=pb.FailOn(status_code=[500, 99])), f"{STEPS}[1].fail_on.status_code[1]"),
        (second(fail_on=pb.FailOn(error_contains=[""])), f"{STEPS}[1].fail_on.error_contains[0]"),
        (second(**given(temperature=3)), f"{STEPS}[1].parameters.temperature"),
        (second(**given(top_logprobs=3)), f"{STEPS}[1].parameters.top_logprobs"),
        (second(**given(model="c")), f"{STEPS}[1].parameters.model"),
        (second(**given(fallback=AUTO)), f"{STEPS}[1].parameters.fallback"),
        (
            second(**given(messages=[Message(blocks=[Block(text="x")])])),
            f"{STEPS}[1].parameters.messages[0].role",
        ),
        (
            second(**given(thinking=pb.ThinkingConfig(mode=1, budget_tokens=5))),
            f"{STEPS}[1].parameters.thinking.budget_tokens",
        ),
    ],
)
@in_no_time
async def test_a_chain_that_breaks_a_rule_is_refused_naming_the_place(wanted, param):
    error = await refusal(ScriptedEngine(), wanted)
    assert (error.param, error.http_status) == (param, 400)


@in_no_time
async def test_one_mode_alone_is_known():
    chained = chain("a")
    chained.fallback_config.strategy_mode = "parallel"
    error = await refusal(ScriptedEngine(), chained)
    assert error.param == "fallback_config.strategy.mode"


@in_no_time
async def test_sixteen_steps_are_allowed():
    text, *_ = await ScriptedEngine().ask(False, chain(*"b" * 16))
    assert text == "I am b"


@pytest.mark.parametrize("mode", [AUTO, DISABLED, 0])
@in_no_time
async def test_auto_and_disabled_do_not_read_the_config(mode):
    chained = chain("nobody", mode=mode)
    chained.fallback_config.strategy_mode = "nonsense"
    text, *_ = await ScriptedEngine().ask(False, chained)
    assert text == "I am a"


@pytest.mark.parametrize("mode", [AUTO, DISABLED, ENABLED])
@in_no_time
async def test_an_outer_model_that_is_not_there_is_not_found(mode):
    error = await refusal(ScriptedEngine(), chain("a", mode=mode, model="nobody"))
    assert (error.param, error.http_status) == ("model", 404)


@pytest.mark.parametrize("mode", [AUTO, DISABLED, ENABLED])
@in_no_time
async def test_the_outer_model_is_held_to_what_it_writes(mode):
    error = await refusal(ScriptedEngine(), chain("a", mode=mode, model="short", max_tokens=101))
    assert error.param == "max_tokens"


@in_no_time
async def test_a_kept_chain_holds_each_request_to_its_model():
    scripted = ScriptedEngine()
    await scripted.engine.generate(chain("a", mode=ENABLED, model="short", max_tokens=100))
    with pytest.raises(GatewayError, match="max_tokens"):
        await scripted.engine.generate(chain("a", mode=ENABLED, model="short", max_tokens=101))
    # The same steps without the outer model.
    await scripted.engine.generate(chain("a", mode=STRICT, model="short", max_tokens=101))
    assert [name for _, name in scripted.asked()] == ["short", "a"]


@in_no_time
async def test_parameters_are_checked_with_each_request():
    scripted = ScriptedEngine()
    step = {"model": "a", "parameters": pb.GenerateRequest(top_logprobs=3)}
    await scripted.engine.generate(chain(step, logprobs=True))
    with pytest.raises(GatewayError, match="top_logprobs"):
        await scripted.engine.generate(chain(step))


@in_no_time
async def test_missing_and_repeated_fallbacks_are_left_out():
    scripted = ScriptedEngine(fallbacks=("gone", "a", "b", "p/b", "c"))
    for name in ("a", "b"):
        scripted.p.plays(name, [])
    _, route, _ = await scripted.ask(False, request())
    assert [name for _, name in scripted.asked()] == ["a"] * 3 + ["b"] * 3 + ["c"]
    assert route.model == "c"


@in_no_time
async def test_tokens_are_counted_for_the_first_step():
    counted = await ScriptedEngine().engine.count_tokens(chain("b", model="nobody"))
    assert (counted.input_tokens, counted.route.model, counted.route.step) == (7, "b", "s1")
