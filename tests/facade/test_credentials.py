import pytest
from multidict import CIMultiDict

from facade import credentials
from facade.credentials import ApiFormat
from services.common.errors import GatewayError
from tests.grid import each_row

KEY = "gw-" + "k" * 43


def headers(**given: str) -> CIMultiDict[str]:
    return CIMultiDict({name.replace("_", "-"): value for name, value in given.items()})


@each_row(
    ("path", "given", "api_format"),
    [
        ("/beta/v1/chat/completions", {"x_api_key": KEY}, ApiFormat.OPENAI),
        ("/beta/v1/messages", {"authorization": f"Bearer {KEY}"}, ApiFormat.ANTHROPIC),
        ("/beta/v1/messages/count_tokens", {}, ApiFormat.ANTHROPIC),
        ("/coding/v1/messages", {}, ApiFormat.ANTHROPIC),
        ("/beta/v1/models", {}, ApiFormat.OPENAI),
        ("/beta/v1/models", {"x_api_key": KEY}, ApiFormat.ANTHROPIC),
        ("/beta/v1/models", {"authorization": f"Bearer {KEY}"}, ApiFormat.OPENAI),
        (
            "/beta/v1/models",
            {"authorization": f"Bearer {KEY}", "anthropic_version": "2026-10-21"},
            ApiFormat.ANTHROPIC,
        ),
        ("/beta/v1/models", {"authorization": f"Bearer {KEY}", "x_api_key": KEY}, ApiFormat.OPENAI),
        (
            "/beta/v1/models",
            {"authorization": f"Bearer {KEY}", "x_api_key": KEY, "anthropic_version": "2023-06-01"},
            ApiFormat.OPENAI,
        ),
        (
            "/coding/v1/models",
            {"authorization": f"Bearer {KEY}", "x_api_key": KEY},
            ApiFormat.OPENAI,
        ),
        (
            "/coding/v1/models",
            {"authorization": f"Bearer {KEY}", "x_api_key": KEY, "anthropic_version": "2023-06-01"},
            ApiFormat.ANTHROPIC,
        ),
        ("/nowhere", {"x_api_key": KEY}, ApiFormat.ANTHROPIC),
        ("/nowhere", {}, ApiFormat.OPENAI),
    ],
)
def test_the_path_and_the_credential_decide_the_format(path, given, api_format):
    assert credentials.api_format_of(headers(**given), credentials.rules_for(path)) is api_format


@pytest.mark.parametrize(
    "given",
    [{"authorization": f"Bearer {KEY}"}, {"authorization": f"bearer {KEY}"}, {"x_api_key": KEY}],
)
def test_either_header_carries_the_key(given):
    assert credentials.key_of(headers(**given), credentials.CHAT) == KEY


@each_row(
    "given",
    [
        {},
        {"authorization": KEY},
        {"authorization": "Basic Z3c="},
        {"authorization": "Bearer sk-something"},
        {"authorization": f"Bearer {KEY}x"},
        {"x_api_key": KEY[:-1]},
        {"x_api_key": ""},
        {"x_api_key": f"Bearer {KEY}"},
    ],
)
def test_what_cannot_be_a_key_is_refused_as_one(given):
    with pytest.raises(GatewayError) as refused:
        credentials.key_of(headers(**given), credentials.CHAT)
    assert (refused.value.http_status, refused.value.code) == (401, "invalid_api_key")
    assert KEY[3:] not in refused.value.message


@pytest.mark.parametrize(
    "path", ["/beta/v1/chat/completions", "/beta/v1/messages", "/beta/v1/models", "/beta/v1/files"]
)
def test_both_headers_at_once_are_a_bad_request(path):
    with pytest.raises(GatewayError) as refused:
        credentials.key_of(
            headers(authorization=f"Bearer {KEY}", x_api_key=KEY), credentials.rules_for(path)
        )
    assert refused.value.http_status == 400
    assert "x-api-key" in refused.value.message


CODING_PATHS = ("/coding/v1/messages", "/coding/v1/messages/count_tokens", "/coding/v1/models")


@pytest.mark.parametrize("path", CODING_PATHS)
def test_coding_agents_send_one_key_in_both_headers(path):
    request_headers = headers(authorization=f"Bearer {KEY}", x_api_key=KEY)
    assert credentials.key_of(request_headers, credentials.rules_for(path)) == KEY


@each_row(
    ("authorization", "api_key", "status"),
    [
        (f"Bearer {KEY}", "gw-" + "l" * 43, 400),
        (f"Bearer {KEY}", "", 400),
        (KEY, KEY, 400),
        (f"Basic {KEY}", KEY, 401),
        ("Bearer sk-something", "sk-something", 401),
    ],
)
@each_row("path", CODING_PATHS)
def test_two_keys_of_a_coding_agent_are_refused(path, authorization, api_key, status):
    request_headers = headers(authorization=authorization, x_api_key=api_key)
    with pytest.raises(GatewayError) as refused:
        credentials.key_of(request_headers, credentials.rules_for(path))
    assert refused.value.http_status == status


@each_row(
    ("path", "given", "accepted"),
    [
        ("/beta/v1/messages", {"authorization": "…"}, False),
        ("/beta/v1/messages", {"x_api_key": "…"}, False),
        ("/beta/v1/messages", {"compat_version": "2023-06-01"}, True),
        ("/beta/v1/messages", {"anthropic_version": "2026-10-21"}, True),
        (
            "/beta/v1/messages",
            {"compat_version": "2023-06-02", "anthropic_version": "2023-06-01"},
            False,
        ),
        ("/beta/v1/chat/completions", {"authorization": "…"}, True),
        ("/beta/v1/chat/completions", {"x_api_key": "…"}, False),
        ("/beta/v1/chat/completions", {"authorization": "…", "compat_version": "1"}, False),
        ("/beta/v1/models", {"authorization": "…"}, True),
        ("/beta/v1/models", {"x_api_key": "…"}, False),
        ("/beta/v1/models", {"x_api_key": "…", "anthropic_version": "x"}, True),
        ("/coding/v1/messages", {"x_api_key": "…"}, True),
        ("/coding/v1/messages", {"x_api_key": "…", "compat_version": "2024-01-01"}, False),
    ],
)
def test_versions_are_needed_where_the_contract_says(path, given, accepted):
    rules = credentials.rules_for(path)
    if accepted:
        credentials.check_version(headers(**given), rules)
    else:
        with pytest.raises(GatewayError) as refused:
            credentials.check_version(headers(**given), rules)
        assert (refused.value.http_status, refused.value.param) == (400, "compat-version")
