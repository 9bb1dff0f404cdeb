"""Authentication by admin keys."""

import hmac
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest
from pydantic import ValidationError

from gateway.errors.v1 import errors_pb2
from services.accounts.admin.admin_keys import (
    AdminCredential,
    configured_keys,
    hash_admin_key,
    make_admin_key,
)
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.keys import make_key
from services.common.errors import GatewayError
from services.common.grpc.authentication import ADMINISTRATOR, is_admin_key
from services.common.key_format import is_key
from services.common.settings import Admin, SettingsError

KEY, OTHER = make_admin_key(bytes(32)), make_admin_key(b"\xff" * 32)


class Keys:
    """The keys in the database, and a clock."""

    def __init__(self, **known: str) -> None:
        self.known = known
        self.now_s = 0.0
        self.reads = 0

    async def valid_keys(self) -> Mapping[str, AdminCredential]:
        self.reads += 1
        return {key_id: credential(key) for key_id, key in self.known.items()}

    def monotonic(self) -> float:
        return self.now_s

    def authenticator(self, **configured: str) -> AdminAuthenticator:
        credentials = {name: credential(key) for name, key in configured.items()}
        return AdminAuthenticator(credentials, self.valid_keys, ttl_s=30, monotonic=self.monotonic)


def credential(key: str, name: str = "", *scopes: str) -> AdminCredential:
    return AdminCredential(hash_admin_key(key), name, frozenset(scopes or {"all"}))


async def refusal(authenticator: AdminAuthenticator, authorization: str) -> int:
    """Return the reason why a value is refused."""
    with pytest.raises(GatewayError) as raised:
        await authenticator(authorization)
    assert not authorization[15:] or authorization[15:] not in raised.value.message
    return raised.value.reason


def test_an_admin_key_is_told_from_other_keys() -> None:
    assert len(KEY) == len("gwadmin-") + 43
    assert is_admin_key(KEY) and not is_key(KEY)
    assert not is_admin_key(make_key(bytes(32)))


async def test_keys_of_the_database_and_the_settings_are_known() -> None:
    authenticator = Keys(admin_1=KEY).authenticator(setting=OTHER)
    for key, key_id in ((KEY, "admin_1"), (OTHER, "setting")):
        caller = await authenticator(f"bearer {key}")
        assert (caller.user_id, caller.key_id) == (ADMINISTRATOR, key_id)


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer ", KEY, f"Basic {KEY}", f"Bearer {KEY[:-1]}", f"Bearer {KEY}A", f"Bearer {OTHER}"],
)
async def test_anything_else_is_refused(authorization: str) -> None:
    authenticator = Keys(admin_1=KEY).authenticator()
    assert await refusal(authenticator, authorization) == errors_pb2.REASON_INVALID_API_KEY


@pytest.mark.parametrize("authorization", ["", f"Bearer {KEY}", "Bearer x"])
async def test_without_a_key_there_is_no_such_service(authorization: str) -> None:
    keys = Keys()
    authenticator = keys.authenticator()
    for _ in range(3):
        reason = await refusal(authenticator, authorization)
        assert reason == errors_pb2.REASON_NOT_IMPLEMENTED
    assert keys.reads == 1


async def test_a_revocation_counts_within_the_caching_time() -> None:
    keys = Keys(admin_1=KEY, admin_2=OTHER)
    authenticator = keys.authenticator()
    await authenticator(f"Bearer {KEY}")
    del keys.known["admin_1"]
    keys.now_s = 29.9
    await authenticator(f"Bearer {KEY}")
    keys.now_s = 30
    assert await refusal(authenticator, f"Bearer {KEY}") == errors_pb2.REASON_INVALID_API_KEY


async def test_a_new_key_counts_within_a_second() -> None:
    keys = Keys(admin_1=KEY)
    authenticator = keys.authenticator()
    await authenticator(f"Bearer {KEY}")
    keys.known["admin_2"] = OTHER
    assert await refusal(authenticator, f"Bearer {OTHER}") == errors_pb2.REASON_INVALID_API_KEY
    keys.now_s = 1
    assert (await authenticator(f"Bearer {OTHER}")).key_id == "admin_2"


async def test_guesses_do_not_reach_the_database_each() -> None:
    keys = Keys(admin_1=KEY)
    authenticator = keys.authenticator()
    for _ in range(100):
        await refusal(authenticator, f"Bearer {OTHER}")
    assert keys.reads == 1


@pytest.mark.parametrize("key", [KEY, OTHER, make_admin_key(b"x" * 32)])
async def test_every_key_is_compared_in_constant_time(key: str) -> None:
    authenticator = Keys(admin_1=KEY, admin_2=OTHER).authenticator()
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    with patch.object(hmac, "compare_digest", compare):
        try:
            await authenticator(f"Bearer {key}")
        except GatewayError:
            assert key not in (KEY, OTHER)
    hashes = {hash_admin_key(KEY), hash_admin_key(OTHER)}
    assert {one for one, _ in compared} == hashes
    assert {other for _, other in compared} == {hash_admin_key(key)}


async def test_keys_of_settings_that_were_read_again_replace_the_old() -> None:
    authenticator = Keys().authenticator(setting=KEY)
    await authenticator(f"Bearer {KEY}")
    authenticator.configure({"setting": credential(OTHER)})
    await authenticator(f"Bearer {OTHER}")
    assert await refusal(authenticator, f"Bearer {KEY}") == errors_pb2.REASON_INVALID_API_KEY


def test_settings_name_keys_in_three_ways(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    sources = {"key_file": str(file), "key_env": "K", "key_sha256": hash_admin_key(KEY).hex()}
    for name, value in sources.items():
        of_setting = configured_keys(Admin.model_validate({name: value}), {"K": KEY})
        assert of_setting == {f"admin.{name}": credential(KEY)}
        named = {"name": "ops", "scopes": ["read", "money"], name: value}
        of_list = configured_keys(Admin.model_validate({"keys": [named]}), {"K": KEY})
        assert of_list == {"admin.keys.ops": credential(KEY, "ops", "read", "money")}
    assert configured_keys(Admin()) == {}


def test_one_key_has_one_name() -> None:
    hashed = hash_admin_key(KEY).hex()
    again = {"name": "ops", "scopes": ["read"], "key_sha256": hashed}
    with pytest.raises(SettingsError, match=r"admin\.keys\[0\]: the key 'ops' is also another"):
        configured_keys(Admin.model_validate({"key_sha256": hashed, "keys": [again]}))


def test_keys_with_names_are_complete() -> None:
    whole = {"name": "ops", "scopes": ["read"], "key_env": "K"}
    for changes, message in (
        ({"name": ""}, "name"),
        ({"scopes": []}, "at least 1 item"),
        ({"scopes": ["write"]}, "'read', 'users', 'money' or 'all'"),
        ({"key_env": ""}, "exactly one of key_env, key_file and key_sha256"),
        ({"key_file": "/key"}, "exactly one of key_env, key_file and key_sha256"),
    ):
        with pytest.raises(ValidationError, match=message):
            Admin.model_validate({"keys": [{**whole, **changes}]})
    with pytest.raises(ValidationError, match="another name"):
        Admin.model_validate({"keys": [whole, {**whole, "key_env": "L"}]})


def test_settings_without_an_admin_key_behind_them_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    for content in ("", KEY[:-1], f"{KEY} {KEY}", make_key(bytes(32)), "\xff" * 99_999):
        file.write_text(content)
        with pytest.raises(SettingsError, match=r"admin\.key_file: .*admin-key make") as raised:
            configured_keys(Admin(key_file=str(file)))
        assert len(str(raised.value)) < 500 and KEY[:20] not in str(raised.value)
        with pytest.raises(SettingsError, match=r"admin\.key_env: the variable K "):
            configured_keys(Admin(key_env="K"), {"K": content})
    with pytest.raises(SettingsError, match=r"admin\.key_file: .*No such file"):
        configured_keys(Admin(key_file=str(tmp_path / "none")))
