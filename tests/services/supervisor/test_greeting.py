import shlex
import subprocess

import pytest

from services.supervisor.greeting import base_url, greeting

KEY = "gw-" + "k" * 43
METRICS = "http://127.0.0.1:8081"
BODY = '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}'


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
    *_, line = greeting("http://127.0.0.1:8080", METRICS, KEY, "var/dev.key").splitlines()
    command = shlex.split(line)
    assert command[:2] == ["curl", "http://127.0.0.1:8080/beta/v1/chat/completions"]
    assert f"Authorization: Bearer {KEY}" in command
    assert "Content-Type: application/json" in command
    assert command[-2:] == ["-d", BODY]


def test_without_a_key_the_lines_make_one_and_use_it() -> None:
    *_, make, line = greeting("http://10.0.0.1:80", METRICS, "", "var/dev.key").splitlines()
    script = f'gateway() {{ echo "{KEY}"; }}; curl() {{ printf "%s\\n" "$@"; }}\n{make}\n{line}'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert f"Authorization: Bearer {KEY}" in shown.splitlines()


def test_the_link_signs_in_with_a_code() -> None:
    lines = greeting("http://127.0.0.1:8080", METRICS, KEY, "var/dev.key", code="abc").splitlines()
    (line,) = [line for line in lines if line.startswith("Console: ")]
    assert line.startswith("Console: http://127.0.0.1:8080/console#code=abc ")
    assert "10 minutes" in line
