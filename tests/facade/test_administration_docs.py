"""The examples of docs/administration.md, run as they are written."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.documents import DOCUMENTS, code_blocks, endpoints, read
from tests.gateway_in_process import running_gateway
from tests.services.test_cli import Command

TEXT = read("docs/administration.md")
BY_HTTP, BY_COMMAND = code_blocks(TEXT, "sh")
KEY = make_admin_key(bytes(32))


async def curl(http: aiohttp.ClientSession, url: str, line: str) -> Any:
    """Send the request of a line of curl; return the JSON of the answer, which is 200."""
    words = shlex.split(line)[1:]
    options: dict[str, list[str]] = {"-X": [], "-H": [], "-d": []}
    rest = []
    while words:
        word = words.pop(0)
        options[word].append(words.pop(0)) if word in options else rest.append(word)
    (address,) = rest
    data = options["-d"][0] if options["-d"] else None
    method = options["-X"][0] if options["-X"] else "POST" if data else "GET"
    headers = dict(header.split(": ", 1) for header in options["-H"])
    address = address.replace("http://127.0.0.1:8080", url)
    async with http.request(method, address, data=data, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_the_requests_of_the_example_work(tmp_path: Path) -> None:
    names = {"ADMIN_KEY": KEY}
    settings = {"key_sha256": hash_admin_key(KEY).hex()}
    answers = []
    async with running_gateway(tmp_path, admin=settings) as gateway:
        for line in BY_HTTP.splitlines():
            for name, value in names.items():
                line = line.replace(name, value)
            answers.append(await curl(gateway.http, gateway.url, line))
            if answers[-1]["object"] == "api_key" and "KEY_ID" not in names:
                key = answers[-1]
                names |= {"KEY_ID": key["id"], "USER_ID": key["user_id"], "TEAM_ID": key["team_id"]}
            elif answers[-1]["object"] == "team":
                names["TEAM_ID"] = answers[-1]["id"]
    shown = json.loads(code_blocks(TEXT, "json")[0])
    assert shown.keys() == answers[1].keys()
    assert answers[2]["spend_per_month"] == "250"
    assert answers[3]["replaced"]["id"] == names["KEY_ID"]
    assert (answers[4]["team"], answers[4]["plan"]) == (None, "personal_pro")
    assert answers[5]["state"] == "revoked"
    assert [entry["action"] for entry in answers[6]["data"]] == [
        *("key.revoke", "key.rotate", "key.create")
    ]


def test_the_commands_of_the_example_do_the_same(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    key_id = ""
    for line in BY_COMMAND.splitlines():
        output, _ = gateway(line.removeprefix("gateway ").replace("KEY_ID", key_id))
        if " keys create " in f" {line}":
            key_id = gateway("keys list")[0].splitlines()[1].split()[0]
    assert [re.split(r"  +", row)[4] for row in output.splitlines()[1:]] == [
        *("key.revoke", "key.rotate", "key.create")
    ]
    shown = gateway("limits show --team lab")[0]
    assert "$250" in shown and "gpt-*, fast" in shown
    assert "personal_pro" in gateway("users show ada")[0]


def test_the_documents_name_every_endpoint_of_administration() -> None:
    named = {
        (method.lower(), re.sub(r"{[^}]*}", "{}", path))
        for document in DOCUMENTS
        for method, path in re.findall(r"`([A-Z]+) (/admin/[^`\s?]*)", read(document))
    }
    described = {
        (method, path)
        for path, methods in endpoints().items()
        if path.startswith("/admin/")
        for method in methods
    }
    assert named == described


@pytest.mark.parametrize("setting", ["key_env", "key_file", "key_sha256", "audit_retention_s"])
def test_the_page_names_every_setting(setting: str) -> None:
    assert f"`admin.{setting}`" in TEXT
