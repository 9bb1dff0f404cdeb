"""The audit log: each change has its entry, in the same transaction."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2, admin_pb2, limits_pb2
from services.accounts import tables
from services.accounts.admin.admin_keys import AdminKeyRepository
from services.accounts.admin.audit import AuditFilter, AuditLog, audit_sweeper
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limited_subjects import LimitedSubjects
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.model_groups import ModelGroupAdministration
from services.accounts.admin.servicer import AdminServicer
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.erasure.repository import ErasureRepository
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.limits.tables import model_groups
from services.accounts.repository import AccountRepository
from services.common.client_address import TrustedProxies
from services.common.errors import GatewayError
from services.common.grpc.authentication import ADMINISTRATOR, Caller, caller
from services.common.grpc.inprocess.context import CallContext
from services.common.ids import IdGenerator
from services.common.process import logs
from services.common.storage.database import reading, writing
from services.common.storage.leases import Lease
from tests.manual_clock import ManualClock
from tests.services.accounts.expected_errors import invalid

SERVICE = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]
READING = ("Check", "Get", "List")
EMPTY_TEAM = "team_empty"
# The context of a call within the process, without metadata.
CONTEXT = CallContext(())


@pytest.fixture(autouse=True)
async def empty_team(engine: AsyncEngine) -> None:
    """Add a team without users and a group of models, without entries."""
    async with writing(engine) as connection:
        row = {"id": EMPTY_TEAM, "name": "empty", "plan": "enterprise", "created_at_ms": 1}
        await connection.execute(insert(tables.teams).values(**row))
        group = {"name": "old-models", "models": '["gpt-*"]', "updated_at_ms": 1}
        await connection.execute(insert(model_groups).values(**group))


@pytest.fixture
def service(
    keys: KeyAdministration,
    people: UserAdministration,
    teams: TeamAdministration,
    limits: LimitAdministration,
    engine: AsyncEngine,
    clock: ManualClock,
    log: AuditLog,
) -> AdminServicer:
    caller.set(Caller(ADMINISTRATOR, "", accounts_pb2.PLAN_UNSPECIFIED, "admin_7"))
    logs.request_id.set("req_1")
    groups = ModelGroupAdministration(engine, clock)
    erasures = ErasureRepository(engine, clock)
    proxies = TrustedProxies([])
    limited = LimitedSubjects(engine, clock)
    others = (limits, limited, groups, log, erasures, proxies)
    return AdminServicer(keys, people, teams, *others, lambda kind, subject_id: None)


class Subjects:
    """A key, its user and team."""

    def __init__(self, key: admin_pb2.ApiKey) -> None:
        self.key_id, self.user_id, self.team_id = key.id, key.user_id, key.team_id


# For each RPC that changes something: its request, and the kind and the action of its entry.
Change = tuple[Callable[[Subjects], Any], str, str]
CHANGES: dict[str, Change] = {
    "CreateKey": (lambda _: admin_pb2.CreateKeyRequest(user="eve"), "key", "key.create"),
    "UpdateKey": (
        lambda on: admin_pb2.UpdateKeyRequest(key_id=on.key_id, name="x"),
        "key",
        "key.update",
    ),
    "RevokeKey": (lambda on: admin_pb2.RevokeKeyRequest(key_id=on.key_id), "key", "key.revoke"),
    "RotateKey": (lambda on: admin_pb2.RotateKeyRequest(key_id=on.key_id), "key", "key.rotate"),
    "CreateUser": (lambda _: admin_pb2.CreateUserRequest(name="eve"), "user", "user.create"),
    "UpdateUser": (
        lambda on: admin_pb2.UpdateUserRequest(user_id=on.user_id, team=""),
        "user",
        "user.update",
    ),
    "DeleteUser": (
        lambda on: admin_pb2.DeleteUserRequest(user_id=on.user_id),
        "user",
        "user.delete",
    ),
    "EraseUser": (
        lambda on: admin_pb2.EraseUserRequest(user_id=on.user_id),
        "user",
        "user.erase",
    ),
    "DeleteTeam": (
        lambda _: admin_pb2.DeleteTeamRequest(team_id=EMPTY_TEAM),
        "team",
        "team.delete",
    ),
    "CreateTeam": (lambda _: admin_pb2.CreateTeamRequest(name="club"), "team", "team.create"),
    "UpdateTeam": (
        lambda on: admin_pb2.UpdateTeamRequest(
            team_id=on.team_id, plan=accounts_pb2.PLAN_ENTERPRISE
        ),
        "team",
        "team.update",
    ),
    "SetLimits": (
        lambda on: admin_pb2.SetLimitsRequest(
            limits=limits_pb2.SubjectLimits(
                kind=limits_pb2.SUBJECT_KIND_TEAM, id=on.team_id, requests_per_minute=5
            )
        ),
        "team",
        "limits.set",
    ),
    "ClearLimits": (
        lambda on: admin_pb2.ClearLimitsRequest(kind=limits_pb2.SUBJECT_KIND_USER, id=on.user_id),
        "user",
        "limits.clear",
    ),
    "SetModelGroup": (
        lambda _: admin_pb2.SetModelGroupRequest(
            model_group=admin_pb2.ModelGroup(name="new-models", models=["gpt-*"])
        ),
        "model_group",
        "model_group.set",
    ),
    "DeleteModelGroup": (
        lambda _: admin_pb2.DeleteModelGroupRequest(name="old-models"),
        "model_group",
        "model_group.delete",
    ),
    "ResetBudget": (
        lambda on: admin_pb2.ResetBudgetRequest(
            kind=limits_pb2.SUBJECT_KIND_KEY,
            id=on.key_id,
            measure=limits_pb2.MEASURE_SPEND_PER_DAY,
        ),
        "key",
        "budget.reset",
    ),
    "TopUpBudget": (
        lambda on: admin_pb2.TopUpBudgetRequest(
            kind=limits_pb2.SUBJECT_KIND_KEY,
            id=on.key_id,
            measure=limits_pb2.MEASURE_SPEND_PER_DAY,
            amount_pusd=5,
        ),
        "key",
        "budget.top_up",
    ),
}


def test_every_call_that_changes_something_is_known_here() -> None:
    changing = {method.name for method in SERVICE.methods if not method.name.startswith(READING)}
    assert changing == set(CHANGES)


async def entries(log: AuditLog, **filters: Any) -> list[admin_pb2.AuditEntry]:
    """Return the newest entries that are wanted, all of them by default."""
    return [*(await log.page(AuditFilter(**filters), 9)).entries]


async def contents(engine: AsyncEngine) -> dict[str, list[Any]]:
    """Return all rows of the tables that administration changes."""
    rows_by_table = {}
    async with reading(engine) as connection:
        for table in (
            *("api_keys", "users", "teams", "limits", "allowances"),
            *("model_groups", "erasures", "erased_items"),
        ):
            rows = await connection.execute(text(f"SELECT * FROM {table} ORDER BY 1, 2"))
            rows_by_table[table] = [tuple(row) for row in rows]
    return rows_by_table


@pytest.mark.parametrize("rpc", CHANGES)
async def test_a_change_writes_one_entry_that_names_it(
    service: AdminServicer,
    keys: KeyAdministration,
    log: AuditLog,
    engine: AsyncEngine,
    clock: ManualClock,
    rpc: str,
) -> None:
    subjects = Subjects((await keys.create(NewKey("ada", "lab"))).info)
    budget = UsageLimits(spend_per_day_pusd=9)
    await LimitRepository(engine, clock).set(SubjectKind.KEY, subjects.key_id, budget)
    (made,) = await entries(log)
    build, kind, action = CHANGES[rpc]
    clock.now_s += 1
    await getattr(service, rpc)(build(subjects), CONTEXT)
    entry, *others = await entries(log)
    assert others == [made]
    assert (entry.actor, entry.action, entry.subject_kind) == ("admin_7", action, kind)
    assert (entry.at_ms, entry.request_id) == (made.at_ms + 1000, "req_1")
    assert bool(entry.before) == (not action.endswith((".create", ".set", ".clear")))
    assert bool(entry.after) == (not action.endswith((".clear", ".delete", ".erase")))
    assert (await entries(log, subject_id=entry.subject_id))[0] == entry


@pytest.mark.parametrize("rpc", CHANGES)
async def test_a_change_without_its_entry_is_not_made(
    service: AdminServicer,
    keys: KeyAdministration,
    limits: LimitAdministration,
    engine: AsyncEngine,
    rpc: str,
) -> None:
    subjects = Subjects((await keys.create(NewKey("ada", "lab"))).info)
    await limits.set(SubjectKind.USER, subjects.user_id, UsageLimits(requests_per_minute=1))
    await limits.set(SubjectKind.KEY, subjects.key_id, UsageLimits(spend_per_day_pusd=9))
    before = await contents(engine)
    async with writing(engine) as connection:
        await connection.execute(text("ALTER TABLE audit_log RENAME TO elsewhere"))
    try:
        with pytest.raises((GatewayError, ProgrammingError)):
            await getattr(service, rpc)(CHANGES[rpc][0](subjects), CONTEXT)
    finally:
        async with writing(engine) as connection:
            await connection.execute(text("ALTER TABLE elsewhere RENAME TO audit_log"))
    assert await contents(engine) == before


async def test_a_refused_change_writes_no_entry(
    service: AdminServicer, keys: KeyAdministration, log: AuditLog
) -> None:
    made = await keys.create(NewKey("ada"))
    refused = [
        service.CreateKey(admin_pb2.CreateKeyRequest(user="ada", team="lab"), CONTEXT),
        service.UpdateKey(admin_pb2.UpdateKeyRequest(key_id="key_9", name="x"), CONTEXT),
        service.UpdateKey(admin_pb2.UpdateKeyRequest(key_id=made.info.id), CONTEXT),
        service.UpdateKey(
            admin_pb2.UpdateKeyRequest(key_id=made.info.id, expires_at_ms=0), CONTEXT
        ),
        service.UpdateKey(
            admin_pb2.UpdateKeyRequest(key_id=made.info.id, never_expires=False), CONTEXT
        ),
        service.RotateKey(
            admin_pb2.RotateKeyRequest(key_id=made.info.id, grace_s=1 << 31), CONTEXT
        ),
        service.CreateUser(admin_pb2.CreateUserRequest(name="ada"), CONTEXT),
        service.CreateUser(admin_pb2.CreateUserRequest(name="eve", plan=99), CONTEXT),
        service.UpdateTeam(admin_pb2.UpdateTeamRequest(team_id="team_9"), CONTEXT),
        service.SetLimits(admin_pb2.SetLimitsRequest(), CONTEXT),
        service.ListKeys(admin_pb2.ListKeysRequest(page_size=1001), CONTEXT),
        service.ListKeys(admin_pb2.ListKeysRequest(page_token="a\0"), CONTEXT),
        service.ListKeys(admin_pb2.ListKeysRequest(user="a\0"), CONTEXT),
    ]
    for call in refused:
        with pytest.raises(GatewayError):
            await call
    assert len(await entries(log)) == 1


async def test_an_entry_tells_what_changed_without_secrets(
    keys: KeyAdministration, log: AuditLog
) -> None:
    made = await keys.create(NewKey("ada", "lab", "team_pro", name="ci"))
    rotated = await keys.rotate(made.info.id, 60)
    rotation, creation = await entries(log)
    before, after = json.loads(rotation.before), json.loads(rotation.after)
    assert before == json.loads(creation.after)
    assert (before["user"], before["plan"], before["state"]) == ("ada", "team_pro", "active")
    assert after["replaced_by"] == rotated.info.id
    assert after["expires_at_ms"] == before["created_at_ms"] + 60_000
    written = f"{rotation}{creation}"
    for key in (made.key, rotated.key):
        assert key[9:] not in written
    assert "hash" not in written


async def test_entries_are_found_by_time_and_subject(
    keys: KeyAdministration, log: AuditLog, clock: ManualClock
) -> None:
    ids = []
    start_ms = int(1000 * clock.now_s)
    for user in ("ada", "bob", "eve"):
        ids.append((await keys.create(NewKey(user))).info.id)
        clock.now_s += 1

    async def found(**filters: Any) -> list[str]:
        return [entry.subject_id for entry in await entries(log, **filters)]

    assert await found() == ids[::-1]
    assert await found(since_ms=start_ms + 1000) == [ids[2], ids[1]]
    assert await found(until_ms=start_ms + 1000) == [ids[0]]
    assert await found(subject_id=ids[1]) == [ids[1]]
    assert await found(subject_kind="key") == ids[::-1]
    assert await found(subject_kind="user") == await found(subject_id="a\0") == []
    with invalid("subject_kind", "admin_key"):
        await found(subject_kind="file")


async def test_entries_are_listed_page_by_page(
    keys: KeyAdministration, log: AuditLog, clock: ManualClock
) -> None:
    # Several of one moment, and a clock that goes back.
    for step_s in (0, 0, 0, 5, -3, 0):
        clock.now_s += step_s
        await keys.create(NewKey("ada"))
    whole = await entries(log)
    assert [entry.at_ms for entry in whole] == sorted((e.at_ms for e in whole), reverse=True)
    listed, token = [], ""
    while True:
        page = await log.page(AuditFilter(), 2, token)
        listed += page.entries
        token = page.next_token
        if not token:
            break
        assert len(page.entries) == 2
    assert listed == whole
    for wrong in ("1", "_", "x_audit_1", "1_a\0", f"{10**20}_a"):
        with invalid("page_token", "next_page_token"):
            await log.page(AuditFilter(), 2, wrong)


async def test_commands_and_the_first_start_are_actors(
    repository: AccountRepository,
    engine: AsyncEngine,
    clock: ManualClock,
    new_id: IdGenerator,
    log: AuditLog,
) -> None:
    async def keep(key: str) -> None:
        return None

    await repository.create_first_key("dev", "enterprise", keep)
    admin_keys = AdminKeyRepository(engine, clock, new_id=new_id)
    key = await admin_keys.create("ops")
    (info,) = await admin_keys.list_all()
    revoked = await admin_keys.revoke(info.id)
    assert await admin_keys.revoke(info.id) == revoked
    written = await entries(log)
    assert [(entry.actor, entry.action) for entry in written[::-1]] == [
        ("first start", "key.create"),
        ("command line", "admin_key.create"),
        ("command line", "admin_key.revoke"),
        ("command line", "admin_key.revoke"),
    ]
    assert key[14:] not in f"{written}"


async def test_entries_are_swept_when_their_time_is_over(
    keys: KeyAdministration, engine: AsyncEngine, clock: ManualClock, log: AuditLog
) -> None:
    sweeper = audit_sweeper(log, Lease(engine, "audit", 9, clock), 60, retention_s=100)
    await keys.create(NewKey("ada"))
    clock.now_s += 60
    made = await keys.create(NewKey("bob"))
    await sweeper.sweep()
    assert len(await entries(log)) == 2
    clock.now_s += 41
    await sweeper.sweep()
    assert [entry.subject_id for entry in await entries(log)] == [made.info.id]
