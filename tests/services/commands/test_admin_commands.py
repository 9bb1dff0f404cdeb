"""`gateway keys`, `users`, `teams`, `limits`, `admin-key` and `audit` on a real database."""

import re
from pathlib import Path
from typing import get_args

import pytest

from facade.dialects.admin.bodies import RoleName as WireRole
from facade.dialects.memory.requests import MAX_VALUE as WIRE_VALUE
from services.accounts.admin.admin_keys import hash_admin_key
from services.commands.admin import Scope
from services.commands.invitations import RoleName
from services.commands.users import RoleOption
from services.common.grpc.admin_scopes import SCOPES
from services.common.grpc.authentication import is_admin_key
from services.common.grpc.roles import ROLES
from services.common.key_format import is_key
from services.memory.profile.facts import MAX_VALUE
from tests.services.test_cli import Command


@pytest.fixture
def gateway(tmp_path: Path) -> Command:
    return Command(tmp_path)


def fields(shown: str) -> dict[str, str]:
    """Return the values that a command shows below each other, by name."""
    return {name: value for name, value in (line.split(None, 1) for line in shown.splitlines())}


def table(shown: str) -> list[list[str]]:
    """Return the cells of a table, without its heading."""
    return [re.split(r"  +", line) for line in shown.splitlines()[1:]]


def test_a_key_is_shown_with_its_name_and_expiry(gateway: Command) -> None:
    key = gateway("keys create --user ada --name ci --expires-in 90d")[0].strip()
    shown = fields(gateway(f"keys show {key}")[0])
    assert (shown["NAME"], shown["USER"], shown["STATE"]) == ("ci", "ada", "active")
    assert shown["EXPIRES"].endswith("Z") and shown["REVOKED"] == "-"
    assert key.startswith(shown["PREFIX"]) and key not in str(shown)
    assert fields(gateway(f"keys show {shown['PREFIX']}")[0]) == shown
    (listed,) = table(gateway("keys list --long")[0])
    assert listed[7:] == ["active", shown["EXPIRES"], "ci"]
    assert gateway("keys list --user bob")[0].count("\n") == 1


def test_a_key_is_changed(gateway: Command) -> None:
    key = gateway("keys create --user ada --expires-in 5m")[0].strip()
    shown = fields(gateway(f"keys set {key} --disable --name cd")[0])
    assert (shown["STATE"], shown["NAME"]) == ("disabled", "cd")
    shown = fields(gateway(f"keys set {key} --enable --expires-in never")[0])
    assert (shown["STATE"], shown["EXPIRES"], shown["NAME"]) == ("active", "-", "cd")
    assert "at least one" in gateway.refused(f"keys set {key}")
    assert "for example 90d" in gateway.refused(f"keys set {key} --expires-in soon", status=2)
    assert "future" in gateway.refused(f"keys set {key} --expires-in 0s")


def test_a_rotated_key_has_the_limits_of_the_old_one(gateway: Command) -> None:
    old = gateway("keys create --user ada --name ci")[0].strip()
    gateway(f"limits set --key {old} --concurrent-requests 3")
    output, errors = gateway(f"keys rotate {old} --grace 2h")
    new = output.removesuffix("\n")
    assert is_key(new) and new != old
    expires = fields(gateway(f"keys show {old}")[0])["EXPIRES"]
    assert expires in errors and new not in errors
    shown = fields(gateway(f"keys show {new}")[0])
    assert (shown["NAME"], shown["EXPIRES"]) == ("ci", "-")
    assert shown["REPLACES"] == fields(gateway(f"keys show {old}")[0])["ID"]
    assert fields(gateway(f"limits show --key {new}")[0])["CONCURRENT_REQUESTS"].startswith("3 (")
    assert "already rotated" in gateway.refused(f"keys rotate {old}")
    assert "seconds" in gateway.refused(f"keys rotate {new} --grace 31d")


def test_users_and_teams_are_made_listed_and_moved(gateway: Command) -> None:
    team = gateway("teams create lab --plan team_pro")[0].strip()
    user = gateway("users create ada --team lab")[0].strip()
    gateway("users create bob")
    assert [row[:4] for row in table(gateway("users list")[0])] == [
        [user, "ada", "lab", "team_pro"],
        [table(gateway("users list")[0])[1][0], "bob", "-", "personal_free"],
    ]
    assert len(table(gateway("users list --team lab")[0])) == 1
    gateway("teams set lab --plan enterprise")
    assert fields(gateway("users show ada")[0])["PLAN"] == "enterprise"
    assert fields(gateway("teams show lab")[0])["USERS"] == "1"
    assert [row[:4] for row in table(gateway("teams list")[0])] == [
        [team, "lab", "enterprise", "1"]
    ]
    assert "already" in gateway.refused("teams create lab")
    assert "already" in gateway.refused("users create ada")
    assert "'chess'" in gateway.refused("teams show chess")
    assert "'eve'" in gateway.refused("users show eve")


def test_users_and_teams_are_deleted(gateway: Command) -> None:
    user = gateway("users create ada --team lab")[0].strip()
    gateway("keys create --user ada")
    assert "the team has users (1)" in gateway.refused("teams delete lab")
    assert gateway("users delete ada")[1] == f"Deleted {user} (ada) with 1 key.\n"
    assert table(gateway("users list")[0]) == table(gateway("keys list")[0]) == []
    gateway("teams delete lab")
    assert table(gateway("teams list")[0]) == []
    assert "'ada'" in gateway.refused("users delete ada")
    assert "'lab'" in gateway.refused("teams delete lab")


def test_a_user_is_erased_and_the_report_is_shown(gateway: Command) -> None:
    for name in ("ada", "bob"):
        gateway(f"keys create --user {name}")
    ids = dict(row[1::-1] for row in table(gateway("users list")[0]))
    gateway("groups create shared --user ada")
    output, errors = gateway("users erase ada")
    assert errors == f"Erasing {ids['ada']}.\n"
    assert table(output) == [["keys", "1", "-"], ["memberships", "1", "-"]]
    # Again, and a user who was deleted before.
    assert gateway(f"users erase --id {ids['ada']}")[0] == output
    gateway("users delete bob")
    assert table(gateway(f"users erase --id {ids['bob']}")[0]) == []
    actions = [row[4] for row in table(gateway(f"audit list --subject {ids['bob']}")[0])]
    assert actions == ["user.erased", "user.erase", "user.delete"]
    assert "no such user" in gateway.refused("users erase --id user_none")
    assert "'ada'" in gateway.refused("users erase ada")
    for arguments in ("", "ada --id x"):
        assert "either" in gateway.refused(f"users erase {arguments}", 2)


def test_limits_are_set_shown_and_cleared(gateway: Command) -> None:
    gateway("users create ada --team lab")
    assert "no model group" in gateway.refused("limits set --user ada --model-group cheap")
    gateway("model-groups set cheap --model gpt-4o --model fast")
    gateway("model-groups set cheap --model gpt-5-* --model fast")
    assert table(gateway("model-groups list")[0]) == [["cheap", "gpt-5-*, fast"]]
    for subject in ("--user ada", "--team lab", "--tag project=a", "--user ada --end-user x"):
        gateway(
            f"limits set {subject} --requests-per-minute 1000 --spend-per-day 12.50 "
            "--spend-per-period 40 --since 2026-01-31 --period-days 30 --soft-limit-percent 80 "
            "--model gpt-* --model claude --model-group cheap"
        )
        assert fields(gateway(f"limits show {subject}")[0]) == {
            "REQUESTS_PER_MINUTE": "1,000 (0 used, 0 reserved)",
            "TOKENS_PER_MINUTE": "-",
            "CONCURRENT_REQUESTS": "-",
            "SPEND_PER_DAY": "$12.5 ($0 used, $0 reserved)",
            "SPEND_PER_WEEK": "-",
            "SPEND_PER_MONTH": "-",
            "SPEND_PER_PERIOD": "$40 ($0 used, $0 reserved)",
            "PERIOD": "30 days from 2026-01-31 on",
            "SOFT_LIMIT": "80%",
            "ALLOWED_MODELS": "gpt-*, claude",
            "ALLOWED_MODEL_GROUPS": "cheap",
        }
        assert "limits name the group" in gateway.refused("model-groups delete cheap")
        topped_up = gateway(f"limits top-up {subject} --per day --amount 2.5")[0]
        assert fields(topped_up)["BUDGET"] == "$15"
        assert fields(gateway(f"limits reset {subject} --per day")[0])["ADDED"] == "$2.5"
        assert "spend_per_period" in gateway.refused(f"limits reset {subject} --per month")
        gateway(f"limits set {subject} --tokens-per-minute 5")
        shown = fields(gateway(f"limits show {subject}")[0])
        assert (shown["TOKENS_PER_MINUTE"], shown["ALLOWED_MODELS"]) == (
            "5 (0 used, 0 reserved)",
            "-",
        )
        assert gateway(f"limits clear {subject}") == ("", "")
        assert set(fields(gateway(f"limits show {subject}")[0]).values()) == {"-"}


def test_limits_that_cannot_be_set_are_told(gateway: Command) -> None:
    gateway("users create ada")
    for line in ("limits show", "limits clear --user ada --team lab"):
        assert "exactly one of --key, --user, --team and --tag is required" in gateway.refused(
            line, status=2
        )
    for line in ("limits show --team lab --end-user x", "limits set --tag a=b --end-users"):
        assert "--end-user or --end-users requires --user" in gateway.refused(line, status=2)
    assert "at least one" in gateway.refused("limits set --user ada", status=2)
    for amount in ("1e3", "ten", "12.5.1", "99999999"):
        message = gateway.refused(f"limits set --user ada --spend-per-day {amount}", status=2)
        assert f"{amount}: must be US dollars" in message
    message = gateway.refused("limits set --user ada --spend-per-month 4000001", status=2)
    assert "at most 4,000,000" in message
    gateway("limits set --user ada --spend-per-month 4000000")
    assert "allowed_models[0]" in gateway.refused("limits set --user ada --model a*b")
    assert "no user 'bob'" in gateway.refused("limits set --user bob --model a")


def test_an_admin_key_is_made_listed_and_revoked(gateway: Command) -> None:
    output, errors = gateway("admin-key create --name ops")
    key = output.removesuffix("\n")
    assert is_admin_key(key) and "Store it now" in errors
    ((key_id, prefix, name, scopes, _, revoked),) = table(gateway("admin-key list")[0])
    assert (name, scopes, revoked) == ("ops", "all", "-") and key.startswith(prefix)
    gateway(f"admin-key revoke {key_id}")
    assert table(gateway("admin-key list")[0])[0][-1].endswith("Z")
    assert "no admin key" in gateway.refused("admin-key revoke admin_1")


def test_an_admin_key_has_scopes(gateway: Command) -> None:
    assert tuple(Scope) == SCOPES
    gateway("admin-key create --scope users --scope read")
    assert table(gateway("admin-key list")[0])[0][3] == "read,users"
    assert "write" in gateway("admin-key create --scope write", 2)[1]


def test_an_admin_key_is_made_for_the_settings(gateway: Command, tmp_path: Path) -> None:
    output, errors = gateway("admin-key make")
    key = output.strip()
    assert errors == f'key_sha256 = "{hash_admin_key(key).hex()}"\n'
    assert not (tmp_path / "var").exists()
    gateway.config.write_text(f"[admin]\n{errors}")
    gateway("config check")
    gateway.config.write_text('[admin]\nkey_env = "OUR_ADMIN_KEY"\n')
    gateway.environ["OUR_ADMIN_KEY"] = None
    assert "admin.key_env: the variable OUR_ADMIN_KEY" in gateway.refused("config check", status=2)
    gateway.environ["OUR_ADMIN_KEY"] = key
    gateway("config check")


def test_changes_by_command_are_in_the_audit_log(gateway: Command) -> None:
    key = gateway("keys create --user ada --team lab")[0].strip()
    changes = {
        f"keys set {key} --name x": "key.update",
        f"keys rotate {key}": "key.rotate",
        f"keys revoke {key}": "key.revoke",
        "users create eve": "user.create",
        "users set --user ada --team lab": "user.update",
        "teams create club": "team.create",
        "teams set lab --plan enterprise": "team.update",
        "limits set --user ada --model a": "limits.set",
        "limits clear --user ada": "limits.clear",
        "admin-key create": "admin_key.create",
    }
    for line in (*changes, "keys list", f"keys show {key}", "limits show --team lab"):
        gateway(line)
    rows = table(gateway("audit list")[0])
    assert [row[4] for row in rows][::-1] == ["key.create", *changes.values()]
    assert {row[1] for row in rows} == {"command line"}
    assert {(row[2], row[3]) for row in rows} == {("-", "-")}
    first = rows[-1][5]
    of_key = table(gateway(f"audit list --subject {first} --limit 2")[0])
    assert [(row[4], row[5]) for row in of_key] == [("key.revoke", first), ("key.rotate", first)]


def test_roles_and_bounds_are_the_same_everywhere() -> None:
    assert tuple(RoleName) == get_args(WireRole) == ROLES
    assert tuple(RoleOption) == (*ROLES, "none")
    assert WIRE_VALUE == MAX_VALUE


def test_people_are_invited_and_have_roles(gateway: Command) -> None:
    [link] = gateway("invitations create --role viewer --user ada --team lab")[0].split()
    assert link.startswith("/console#invitation=gwinvite-")
    (invitation,) = table(gateway("invitations list")[0])
    assert invitation[1:6] == ["viewer", "ada", "lab", "open", "command line"]
    gateway(f"invitations revoke {invitation[0]}")
    assert table(gateway("invitations list")[0]) == []
    gateway("users create grace")
    gateway("users set --user grace --role admin")
    assert "admin" in table(gateway("users list")[0])[-1]
    gateway("users set --user grace --role none")
    assert "admin" not in table(gateway("users list")[0])[-1]
