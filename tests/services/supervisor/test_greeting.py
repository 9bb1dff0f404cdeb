import shlex
import subprocess

import pytest

from services.supervisor.greeting import base_url, greeting

KEY = "gw-" + "k" * 43
METRICS = "http://127.0.0.1:8081"
BODY = '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}'


def last_line(key: str, *, has_sandbox: bool) -> str:
    text = greeting("http://127.0.0.1:8080", METRICS, key, "var/dev.key", has_sandbox=has_sandbox)
    return text.splitlines()[-1]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("fe80::1", "http://[fe80::1]:80"),
        ("gateway.example", "http://gateway.example:80"),
    ],
)
def test_the_url_is_one_that_this_machine_reaches(host: str, url: str) -> None:
    assert base_url(host, 80) == url


def test_the_curl_line_works_as_pasted() -> None:
    command = shlex.split(last_line(KEY, has_sandbox=True))
    assert command[:2] == ["curl", "http://127.0.0.1:8080/v1/chat/completions"]
    assert f"Authorization: Bearer {KEY}" in command
    assert "Content-Type: application/json" in command
    assert command[-2:] == ["-d", BODY]


def test_without_the_sandbox_the_curl_line_lists_models() -> None:
    command = shlex.split(last_line(KEY, has_sandbox=False))
    url = "http://127.0.0.1:8080/v1/models"
    assert command == ["curl", url, "-H", f"Authorization: Bearer {KEY}"]


@pytest.mark.parametrize("has_sandbox", [True, False])
def test_without_a_key_the_lines_make_one_and_use_it(has_sandbox: bool) -> None:
    text = greeting("http://10.0.0.1:80", METRICS, "", "var/dev.key", has_sandbox=has_sandbox)
    *_, make, line = text.splitlines()
    script = f'gateway() {{ echo "{KEY}"; }}; curl() {{ printf "%s\\n" "$@"; }}\n{make}\n{line}'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert f"Authorization: Bearer {KEY}" in shown.splitlines()


def test_the_link_signs_in_with_a_code() -> None:
    text = greeting(
        "http://127.0.0.1:8080", METRICS, KEY, "var/dev.key", code="abc", has_sandbox=False
    )
    (line,) = [line for line in text.splitlines() if line.startswith("Console: ")]
    assert line.startswith("Console: http://127.0.0.1:8080/console#code=abc ")
    assert "10 minutes" in line
