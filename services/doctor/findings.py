"""Findings of checks, and their output formats."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import orjson

Status = Literal["ok", "warning", "failure"]
_ORDER: Sequence[Status] = ("ok", "warning", "failure")


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        check: name of the check.
        status: `warning` if the gateway runs, but not as it should.
        message: description of the result.
        advice: recommended action, or "".
    """

    check: str
    status: Status
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """Return a finding that requires no action."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, advice: str) -> Finding:
    """Return a finding for a probable mistake."""
    return Finding(check, "warning", message, advice)


def failure(check: str, message: str, advice: str) -> Finding:
    """Return a finding for a problem that prevents the gateway, or a part of it, from working."""
    return Finding(check, "failure", message, advice)


def worst(findings: Sequence[Finding]) -> Status:
    """Return the worst status of the findings."""
    return max((finding.status for finding in findings), key=_ORDER.index, default="ok")


def as_text(findings: Sequence[Finding]) -> str:
    """Return one line per finding, followed by its advice."""
    width = max((len(finding.check) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.status:<8} {finding.check:<{width}}  {finding.message}")
        if finding.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {finding.advice}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as one JSON object."""
    checks = [finding._asdict() for finding in findings]
    return orjson.dumps({"status": worst(findings), "checks": checks}).decode()
