"""The report of the files and settings that `gateway up` has read."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from services.commands import startup_report as report
from services.common import extras
from services.common.settings import Settings, local_servers, parse

KEYS = {"OPENAI_API_KEY": "sk-secret"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working directory on a machine without local servers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local_servers, "LOCAL_SERVERS", {})
    return tmp_path


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            names = [f"model-{number}" for number in range(7)]
            body = json.dumps({"data": [{"id": name} for name in names]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        monkeypatch.setattr(local_servers, "LOCAL_SERVERS", {"ollama": url})
        yield url
        server.shutdown()
        thread.join()


def row(text: str, label: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"  {label}")]
    return line.removeprefix(f"  {label}").strip()


def test_an_empty_folder_is_served_by_defaults(folder: Path) -> None:
    text = report.startup_report(Settings(), {})
    assert row(text, "Settings").startswith("defaults: there is no gateway.toml here")
    assert row(text, "Providers") == "sandbox (built in, for trying: sandbox/echo)"
    assert row(text, "Storage") == f"SQLite, files in a folder; data folder {folder / 'var'}"
    assert row(text, "Missing").startswith("a provider: set a key, such as OPENAI_API_KEY")


def test_the_file_and_the_variables_are_named(folder: Path) -> None:
    (folder / "gateway.toml").touch()
    text = report.startup_report(Settings(), {"GATEWAY_PORT": "1"})
    assert row(text, "Settings") == f"{folder / 'gateway.toml'}, GATEWAY_PORT"
    text = report.startup_report(Settings(), {"GATEWAY_CONFIG": "/etc/other.toml"})
    assert row(text, "Settings") == "/etc/other.toml"


def test_a_provider_is_shown_with_what_found_it_and_no_key() -> None:
    text = report.startup_report(Settings(), KEYS)
    assert row(text, "Providers") == "openai (by OPENAI_API_KEY, https://api.openai.com/v1)"
    assert "sk-secret" not in text and "a provider: " not in text


def test_the_models_of_a_local_server_are_shown(ollama: str) -> None:
    text = report.startup_report(Settings(), {})
    shown = "model-0, model-1, model-2, model-3, model-4 and 2 more"
    assert f"ollama (found by its port): {shown}" in text
    assert "a provider: " not in text


def test_no_local_server_is_asked_without_discovery(ollama: str) -> None:
    settings = parse({"discovery": {"enabled": False}}, "test")
    assert "ollama" not in report.startup_report(settings, {})


def test_models_and_absent_keys_of_the_settings_are_shown() -> None:
    content = {
        "providers": {"openai": {"api_key_env": "ABSENT_KEY"}},
        "models": [{"name": "fast", "provider": "openai", "upstream": "m"}],
    }
    text = report.startup_report(parse(content, "test"), {})
    assert row(text, "Providers") == "openai (from the settings, but ABSENT_KEY is not set)"
    assert row(text, "Models").startswith("fast; and every model")


def test_a_missing_extra_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = extras.Extra("no_such_module", "videos are rejected")
    monkeypatch.setattr(extras, "EXTRAS", {"video": absent})
    text = report.startup_report(Settings(), KEYS)
    assert row(text, "Missing") == "extra video: videos are rejected; make run EXTRAS=video"


def test_outside_of_a_clone_extras_are_installed_by_pip(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "_LOCKS", folder)
    assert extras.how_to_add("video") == "pip install 'sluicegate[video]'"


@pytest.mark.parametrize("is_built", [True, False])
def test_whether_the_console_is_built_is_shown(
    is_built: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = folder / "index.html"
    if is_built:
        page.touch()
    monkeypatch.setattr(report, "_CONSOLE", page)
    shown = row(report.startup_report(Settings(), {}), "Console")
    assert shown == ("built" if is_built else "not built yet: `make console` builds it")
