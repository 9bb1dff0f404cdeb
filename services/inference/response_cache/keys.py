"""Cache keys: equal requests have the same key. Pure."""

import hashlib
from collections.abc import Iterator
from typing import Literal

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.grpc.authentication import Caller
from services.common.messages.lazy_request import LazyRequest
from services.inference.plans.plan import Plan

# Incremented when the format or content of entries changes.
VERSION = b"1"

Scope = Literal["user", "team"]


def owner_of(caller: Caller, scope: Scope) -> str:
    """Return an identifier of the user or team that shares cached answers, 32 hex digits."""
    if scope == "team" and caller.team_id:
        return _digest_of(f"team\0{caller.team_id}")
    return owner_of_user(caller.user_id)


def owner_of_user(user_id: str) -> str:
    """Return the identifier of a user who shares cached answers with nobody."""
    return _digest_of(f"user\0{user_id}")


def key_of(
    owner: str, request: GenerateRequest, lazy: LazyRequest | None, plan: Plan, *, whole: bool
) -> str:
    """Return the key of a request's answer in the store, `owner/hash`.

    Two requests are equal if they have the same owner, dialect, model and content, ask both for a
    whole answer or both for a stream, and have the same models in their plans.

    Args:
        owner: see `owner_of`.
        request: the request.
        lazy: the lazy request; None if the request is complete.
        plan: the plan of the request.
        whole: whether the answer is whole or a stream.
    """
    digest = hashlib.sha256()
    for part in _parts(owner, request, lazy, plan, whole=whole):
        # The lengths separate the parts unambiguously.
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return f"{owner}/{digest.hexdigest()}"


def _parts(
    owner: str, request: GenerateRequest, lazy: LazyRequest | None, plan: Plan, *, whole: bool
) -> Iterator[bytes]:
    yield VERSION
    yield owner.encode()
    yield b"whole" if whole else b"stream"
    yield request.SerializeToString(deterministic=True)
    verbatim = {} if lazy is None else lazy.verbatim
    for name in sorted(verbatim):
        yield name.encode()
        yield verbatim[name]
    yield b"models"
    for step in plan.steps:
        for one in step.deployments or (step,):
            yield str(one.key).encode()


def _digest_of(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:32]
