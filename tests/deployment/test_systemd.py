"""The systemd units: their commands exist, and nothing is granted that is not needed."""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services import cli
from services.common.settings import Limits, Server

FOLDER = Path(__file__).parents[2] / "deploy/systemd"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
HARDENING = {
    "DynamicUser": "yes",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "RestrictNamespaces": "yes",
    "LockPersonality": "yes",
    "SystemCallArchitectures": "native",
}


def unit(name: str) -> dict[str, list[str]]:
    """Return the values of each key, whatever its section."""
    values: dict[str, list[str]] = defaultdict(list)
    for line in (FOLDER / name).read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            values[match[1]].append(match[2])
    return values


@pytest.mark.parametrize("name", SERVICES)
def test_units_are_hardened(name: str) -> None:
    options = unit(name)
    for key, value in HARDENING.items():
        assert options[key] == [value], key
    assert "@system-service" in options["SystemCallFilter"]


@pytest.mark.parametrize("name", SERVICES)
def test_commands_of_units_exist(name: str) -> None:
    (line,) = unit(name)["ExecStart"]
    words = re.search(r"/opt/gateway/bin/gateway ([a-z ]+)", line)
    assert words is not None
    shown = CliRunner().invoke(cli.app, [*words[1].split(), "--help"])
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize("name", ["gateway.service", "gateway-envoy.service"])
def test_services_have_longer_than_their_streams(name: str) -> None:
    options = unit(name)
    leaving_s = Server().drain_notice_s + Limits().drain_s
    assert int(options["TimeoutStopSec"][0]) >= leaving_s + 10
    assert options["KillMode"] == ["mixed"]
    assert int(options["LimitNOFILE"][0]) >= 25_000


def test_a_timer_starts_the_backup() -> None:
    assert unit("gateway-backup.timer")["OnCalendar"]
    assert (FOLDER / "gateway-backup.service").exists()


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_systemd_takes_the_units(path: Path) -> None:
    # On a machine with systemd it says what it would pass over; the others' tests hold anywhere.
    systemd = shutil.which("systemd-analyze")
    if systemd:
        checked = subprocess.run([systemd, "verify", str(path)], capture_output=True, text=True)
        lines = checked.stderr.splitlines()
        # The programs are not installed where the units look for them.
        assert [line for line in lines if "/opt/gateway" not in line] == []
