"""Every method of the installed clients is served, or its error says what to do instead."""

from tests.tools.sdk_methods import methods, tables


def test_every_method_of_the_sdks_has_a_verdict() -> None:
    rows = list(tables())
    assert "| `POST /v1/chat/completions` | served |" in rows
    assert "| `GET /v1/messages/batches` |" in "".join(row[:30] for row in rows)
    assert "| `POST /v1beta/models/{model}:generateContent` | served |" in rows
    google = {method.path for method in methods("google.genai")}
    assert {"/v1beta/cachedContents", "/v1beta/interactions", "/upload/v1beta/files"} <= google
