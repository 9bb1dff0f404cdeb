"""Tries parts of requests: what becomes of each at a provider of each kind."""

import json

from tests.surface.bodies import bodies
from tests.surface.context import NEEDS
from tests.surface.outcomes import Json, Sent, outcome
from tests.surface.requests import Part
from tests.surface.table import KINDS
from tests.surface.target import MODELS, Target


class Trial:
    """Tries the parts of one dialect. The request without a part is often that of another part."""

    def __init__(self, target: Target, dialect: str) -> None:
        self._target = target
        self._dialect = dialect
        self._sent: dict[str, Sent] = {}

    async def outcomes(self, part: Part) -> list[str]:
        """Return what becomes of a part, in the order of `KINDS`."""
        return [await self.outcome(part, kind) for kind in KINDS[self._dialect]]

    async def outcome(self, part: Part, kind: str) -> str:
        """Return what becomes of a part at a kind of provider."""
        body, others = bodies(self._dialect, part, MODELS[kind])
        with_part = await self._target.send(self._dialect, body)
        without = await self._send_once(others[0])
        for other in others[1:]:
            if without.status >= 400:
                without = await self._send_once(other)
        names = [step.name for step in part.field.steps]
        return outcome(names, NEEDS.get(names[0], ()), with_part, without)

    async def _send_once(self, body: Json) -> Sent:
        key = json.dumps(body)
        if key not in self._sent:
            self._sent[key] = await self._target.send(self._dialect, body)
        return self._sent[key]
