"""What makes two requests equal. Pure."""

import hashlib
from collections.abc import Iterator
from typing import Literal

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.authentication import Caller
from services.common.lazy_request import LazyRequest
from services.inference.plans.plan import Plan

# Incremented when the format or content of entries changes.
VERSION = b"1"

Scope = Literal["user", "team"]


def owner_of(caller: Caller, scope: Scope) -> str:
    """Return the name of those who share answers with a caller, in 32 hexadecimal digits."""
    is_team = scope == "team" and bool(caller.team_id)
    owner = f"team\0{caller.team_id}" if is_team else f"user\0{caller.user_id}"
    return hashlib.sha256(owner.encode()).hexdigest()[:32]


def key_of(
    owner: str, request: GenerateRequest, lazy: LazyRequest | None, plan: Plan, *, whole: bool
) -> str:
    """Return the key of a request's answer in the store, `owner/hash`.

    Equal are requests of one owner and dialect for the same model in the same words, whole or
    streamed, that the same models would answer.

    Args:
        owner: see `owner_of`.
        request: the request.
        lazy: its conversation, if it is not complete.
        plan: the models that may answer it.
        whole: whether the answer is wanted whole.
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
    source = {} if lazy is None else lazy.source
    for name in sorted(source):
        yield name.encode()
        yield source[name]
    yield b"models"
    for step in plan.steps:
        for one in step.deployments or (step,):
            yield str(one.key).encode()
