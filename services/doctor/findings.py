"""Findings of checks, and how they are shown."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import orjson

Status = Literal["ok", "warning", "failure"]
_ORDER: Sequence[Status] = ("ok", "warning", "failure")


class Finding(NamedTuple):
    """What one check has found.

    Attributes:
        check: what was checked.
        status: `warning` where a gateway runs, and not as it should.
        message: what was found.
        advice: what to do next; "" where nothing is to be done.
    """

    check: str
    status: Status
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, advice: str) -> Finding:
    """Return a finding of what is probably a mistake."""
    return Finding(check, "warning", message, advice)


def failure(check: str, message: str, advice: str) -> Finding:
    """Return a finding of what keeps the gateway, or a part of it, from working."""
    return Finding(check, "failure", message, advice)


def worst(findings: Sequence[Finding]) -> Status:
    """Return the status of all findings together."""
    return max((one.status for one in findings), key=_ORDER.index, default="ok")


def as_text(findings: Sequence[Finding]) -> str:
    """Return a line for each finding, and below it what to do."""
    width = max((len(one.check) for one in findings), default=0)
    lines = []
    for one in findings:
        lines.append(f"{one.status:<8} {one.check:<{width}}  {one.message}")
        if one.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {one.advice}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as one JSON object."""
    checks = [one._asdict() for one in findings]
    return orjson.dumps({"status": worst(findings), "checks": checks}).decode()
