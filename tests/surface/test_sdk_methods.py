"""Every method of the installed clients is served, or its error says what to do instead."""

from tests.tools.sdk_methods import tables


def test_every_method_of_the_sdks_has_a_verdict() -> None:
    rows = list(tables())
    assert "| `POST /v1/chat/completions` | served |" in rows
    assert "| `GET /v1/messages/batches` |" in "".join(row[:30] for row in rows)
