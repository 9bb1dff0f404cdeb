"""Which requests are equal."""

from dataclasses import replace
from typing import Any

from gateway.accounts.v1 import accounts_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.grpc.authentication import Caller
from services.common.messages.lazy_request import LazyRequest
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import Retries
from services.inference.providers.base import Target
from services.inference.response_cache.keys import key_of, owner_of

ADA = Caller("ada", "lab", accounts_pb2.PLAN_ENTERPRISE, "key-1")
USER = {"role": "user", "content": "Hi"}


def plan(*upstreams: str) -> Plan:
    return Plan(tuple(Step("s", Target("m", "p", name), 1, Retries()) for name in upstreams))


def key(owner: str = "o", upstreams=("u",), whole=True, model="m", **fields: Any) -> str:
    body = {"messages": [USER], **fields}
    request = GenerateRequest(model=model, temperature=body.pop("temperature", 0))
    lazy = LazyRequest(request, body, size=9, requires_official_api=False)
    return key_of(owner, request, lazy, plan(*upstreams), whole=whole)


def test_equal_requests_have_one_key_in_any_order_of_fields():
    assert key(tools=[], system="s") == key(system="s", tools=[])


def test_whatever_changes_the_answer_changes_the_key():
    others = [
        key("p"),
        key(whole=False),
        key(model="n"),
        key(upstreams=["v"]),
        key(upstreams=["u", "v"]),
        key(temperature=0.5),
        key(messages=[USER, USER]),
        key(messages=[{**USER, "content": "hi"}]),
        key(system="s"),
        key(system="", s=""),
        key(tools=[{"name": "f"}]),
    ]
    assert len({key(), *others}) == len(others) + 1


def test_every_deployment_of_a_model_is_in_the_key():
    def of(*upstreams: str) -> str:
        steps = plan("u", *upstreams).steps
        balanced = replace(steps[0], deployments=steps if upstreams else ())
        request = GenerateRequest(model="m")
        return key_of("o", request, None, Plan((balanced,)), whole=True)

    assert len({of(), of("v"), of("w"), of("v", "w"), of("w", "v")}) == 5


def test_the_owner_is_in_the_place_and_in_the_hash():
    one, other = key("a" * 32).split("/"), key("b" * 32).split("/")
    assert (one[0], other[0]) == ("a" * 32, "b" * 32)
    assert one[1] != other[1]


def test_the_owner_is_the_user_or_the_team():
    other = replace(ADA, user_id="bob")
    alone = replace(ADA, team_id="")
    assert owner_of(ADA, "user") != owner_of(other, "user")
    assert owner_of(ADA, "team") == owner_of(other, "team")
    assert owner_of(ADA, "team") != owner_of(replace(ADA, team_id="den"), "team")
    assert owner_of(alone, "team") == owner_of(ADA, "user")
    # A team of a user's name is not that user.
    assert owner_of(replace(ADA, team_id="ada"), "team") != owner_of(ADA, "user")
    assert owner_of(ADA, "user") == owner_of(replace(ADA, key_id="key-2"), "user")
