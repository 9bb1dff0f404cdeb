"""JSON texts that match the schemas of one request."""

import json

import orjson

from services.sandbox.model.models import SandboxError
from services.sandbox.model.schema_budget import Budget, NoExampleError
from services.sandbox.model.schema_examples import schema_example

_MAX_TEXT = 200


def dump(value: object) -> str:
    """Serialize a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class ExampleTexts:
    """Makes the texts of one answer, which share a budget: it may have many choices and calls."""

    def __init__(self, text: str) -> None:
        """Create texts in which strings without constraints become `text`, truncated."""
        self._text = text[:_MAX_TEXT]
        self._budget = Budget()
        self._made: dict[str, str] = {}

    def match(self, schema: bytes, name: str) -> str:
        """Return a text that matches a schema.

        Args:
            schema: the schema, a JSON object.
            name: identifies the schema in the request; for the same name it is read once.

        Raises:
            SandboxError: there is none, or the answer's texts take more than the budget.
        """
        try:
            if name in self._made:
                self._budget.produce(len(self._made[name]))
            else:
                parsed = orjson.loads(schema or b"{}")
                example = schema_example(
                    parsed if isinstance(parsed, dict) else {}, self._text, self._budget
                )
                self._made[name] = dump(example)
        except NoExampleError as error:
            raise SandboxError(
                "invalid", 400, f"The sandbox cannot fill the schema: {error}"
            ) from error
        return self._made[name]
