import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from services.accounts.plans import DEFAULT, PLANS
from services.commands import shared
from services.common.key_format import is_key
from services.common.storage.sign_in_codes import redeem
from services.common.version import VERSION
from services.supervisor import running
from services.supervisor.resources import locked
from tests.services.gateway_command import Command


@pytest.fixture
def gateway(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_a_new_key_is_alone_on_standard_output(gateway: Command) -> None:
    output, errors = gateway("keys create --user ada")
    assert is_key(output.removesuffix("\n"))
    assert "Store it now" in errors
    assert output.strip() not in errors


def test_keys_are_listed_with_whose_they_are_and_not_shown(gateway: Command) -> None:
    key = gateway("keys create --user ada --team math --plan team_pro")[0].strip()
    gateway("keys create --user bob")
    output, _ = gateway("keys list")
    head, adas, bobs = output.splitlines()
    assert head.split() == ["ID", "PREFIX", "USER", "TEAM", "PLAN", "CREATED", "REVOKED"]
    key_id, prefix, *columns, created, revoked = adas.split()
    assert re.fullmatch("key_[0-9A-Z]{26}", key_id)
    assert key.startswith(prefix)
    assert columns == ["ada", "math", "team_pro"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created)
    assert revoked == "-"
    assert bobs.split()[2:5] == ["bob", "-", "personal_free"]
    assert key not in output


def test_a_key_is_revoked_by_its_prefix_and_listed_so(gateway: Command) -> None:
    prefix = gateway("keys create --user ada")[0][:9]
    output, errors = gateway(f"keys revoke {prefix}")
    assert output == ""
    assert prefix in errors
    assert gateway("keys list")[0].split()[-1].endswith("Z")


def test_a_user_is_set_to_a_team_and_a_plan(gateway: Command) -> None:
    gateway("keys create --user ada")
    assert gateway("users set --user ada --team math --plan enterprise") == ("", "")
    assert gateway("keys list")[0].splitlines()[1].split()[2:5] == ["ada", "math", "enterprise"]


def test_what_cannot_be_done_is_one_line_that_says_what_to_do(gateway: Command) -> None:
    gateway("keys create --user ada --team math")
    assert "'ada' is in team 'math'; `users set`" in gateway.refused(
        "keys create --user ada --team chess"
    )
    assert "`keys list`" in gateway.refused("keys revoke gw-nobody")
    assert "`keys create`" in gateway.refused("users set --user bob --plan enterprise")
    assert "at least one" in gateway.refused("users set --user ada")
    assert "1 to 64" in gateway.refused("keys create --user a/b")


def test_a_wrong_command_line_has_its_own_exit_status(gateway: Command) -> None:
    for line in ("keys create", "keys create --user a --plan gold", "up --workers 0", "sandbox"):
        gateway(line, status=2)
    assert "personal_free" in gateway("keys create --user a --plan gold", status=2)[1]


def test_wrong_settings_are_named_with_their_exit_status(gateway: Command) -> None:
    gateway.config.write_text("[server]\nprot = 1\n")
    for line in ("config check", "keys list", "up"):
        assert "server.prot" in gateway.refused(line, status=2)
    gateway.config.write_text("")
    gateway.environ["GATEWAY_DATABASE_URL"] = "mysql://root:hunter2@db/x"
    message = gateway.refused("keys list", status=2)
    assert "storage.database_url: must be postgresql://" in message
    assert "hunter2" not in message


def test_an_unreachable_database_shows_the_driver_s_error(gateway: Command) -> None:
    gateway.environ["GATEWAY_DATABASE_URL"] = "postgresql://gateway:hunter2@127.0.0.1:1/x"
    message = gateway.refused("keys list")
    assert "the database does not answer" in message
    assert "Connect call failed" in message
    assert "hunter2" not in message


def test_right_settings_are_summed_up(gateway: Command) -> None:
    gateway.config.write_text(
        '[providers.local]\nkind = "openai"\nbase_url = "http://127.0.0.1:1"\napi_key = "hush"\n'
        '[[models]]\nname = "fast"\nprovider = "local"\n'
    )
    output, _ = gateway("config check")
    assert "127.0.0.1:8080, SQLite" in output
    assert "configured providers: local, configured models: fast, sandbox: absent." in output
    assert "hush" not in output


def test_circles_unused_providers_and_variables_are_mentioned(gateway: Command) -> None:
    gateway.environ["GATEWAY_DATADIR"] = "x"
    gateway.config.write_text(
        '[providers.east]\nkind = "openai"\nbase_url = "http://127.0.0.1:1"\n'
        '[[models]]\nname = "a"\nprovider = "sandbox"\nupstream = "echo"\nfallbacks = ["b"]\n'
        '[[models]]\nname = "b"\nprovider = "sandbox"\nupstream = "echo"\nfallbacks = ["a"]\n'
        "[sandbox]\nenabled = true\n"
    )
    _, errors = gateway("config check")
    assert "warning: GATEWAY_DATADIR: unknown variable" in errors
    assert "did you mean GATEWAY_DATA_DIR?" in errors
    assert "note: providers.east: no [[models]] uses it" in errors
    assert "note: models.a.fallbacks: a circle (a -> b -> a)" in errors


def test_deployments_are_counted_and_checked(gateway: Command) -> None:
    gateway.config.write_text(
        '[providers.east]\nkind = "openai"\nbase_url = "http://127.0.0.1:1"\n'
        '[[models]]\nname = "fast"\ndeployments = [{provider = "east"}, {provider = "west"}]\n'
        '[providers.west]\nkind = "openai"\nbase_url = "http://127.0.0.1:2"\n'
    )
    output, _ = gateway("config check")
    assert "configured models: fast (2 deployments)" in output
    gateway.config.write_text('[[models]]\nname = "fast"\ndeployments = [{provider = "west"}]\n')
    message = gateway.refused("config check", status=2)
    assert "models[0].deployments[0].provider: no section [providers.west]" in message


def test_a_key_that_is_not_in_the_environment_is_named(gateway: Command) -> None:
    gateway.environ["NO_SUCH_KEY"] = None
    gateway.config.write_text(
        '[providers.p]\nkind = "openai"\nbase_url = "http://p"\napi_key_env = "NO_SUCH_KEY"\n'
    )
    assert "providers.p.api_key_env: the variable NO_SUCH_KEY" in gateway.refused(
        "config check", status=2
    )
    gateway.environ["NO_SUCH_KEY"] = "sk-1"
    gateway("config check")


def test_credentials_in_a_header_need_no_key(gateway: Command) -> None:
    gateway.config.write_text('[providers.openai]\nheaders = {authorization = "Bearer sk-1"}\n')
    gateway("config check")


def test_fallbacks_and_roles_without_a_model_are_named(gateway: Command) -> None:
    gateway.config.write_text(
        '[[models]]\nname = "a"\nprovider = "sandbox"\nupstream = "echo"\n'
        'fallbacks = ["sandbox/echo", "b", "ollama/x"]\n[roles]\nsummarise = "c"\n'
        'describe_image = "embedded"\ntranscribe_audio = "embedded"\n'
    )
    _, errors = gateway("config check", status=2)
    assert errors.splitlines() == [
        "gateway: models.a.fallbacks[1]: unknown model 'b'",
        "roles.summarise: unknown model 'c'",
    ]


def test_names_of_an_absent_sandbox_come_with_the_remedy(gateway: Command) -> None:
    real = '[providers.east]\nkind = "openai"\nbase_url = "http://127.0.0.1:1"\n'
    named = (
        '[[models]]\nname = "a"\nprovider = "east"\nfallbacks = ["sandbox/echo"]\n'
        '[roles]\nsummarise = "sandbox/echo"\n'
    )
    gateway.config.write_text(real + named)
    _, errors = gateway("config check", status=2)
    remedy = (
        "unknown model 'sandbox/echo': the sandbox is absent because of a real provider (east); "
        "set `enabled = true` in [sandbox], or use a model of another provider"
    )
    assert errors.splitlines() == [
        f"gateway: models.a.fallbacks[0]: {remedy}",
        f"roles.summarise: {remedy}",
    ]
    gateway.config.write_text(f"{real}{named}[sandbox]\nenabled = true\n")
    assert "sandbox: present." in gateway("config check")[0]

    gateway.config.write_text(f'{real}[[models]]\nname = "a"\nprovider = "sandbox"\n')
    for command in ("config check", "up"):
        message = gateway.refused(command, status=2)
        assert "models[0].provider: the sandbox is absent because of a real provider" in message


def test_the_sandbox_is_listed_while_it_is_present(gateway: Command) -> None:
    assert re.search(r"^sandbox +joined", gateway("providers")[0], re.M)
    gateway.environ["GROQ_API_KEY"] = "gsk-secret"
    assert "sandbox" not in gateway("providers")[0]
    gateway.config.write_text("[sandbox]\nenabled = true\n")
    assert re.search(r"^sandbox +joined", gateway("providers")[0], re.M)
    gateway.environ["GROQ_API_KEY"] = None
    gateway.config.write_text("[sandbox]\nenabled = false\n")
    assert "sandbox" not in gateway("providers")[0]


def test_a_gateway_s_key_as_a_provider_s_is_a_warning(gateway: Command) -> None:
    key = f"gw-{'a' * 43}"
    gateway.environ["NEXT_KEY"] = key
    gateway.config.write_text(
        f'[providers.a]\nkind = "openai"\nbase_url = "http://a"\napi_key = "{key}"\n'
        '[providers.b]\nkind = "anthropic"\nbase_url = "http://b"\napi_key_env = "NEXT_KEY"\n'
        '[providers.c]\nkind = "openai"\nbase_url = "http://c"\napi_key = "gw-live-1"\n'
    )
    output, errors = gateway("config check")
    assert "The settings are valid" in output
    assert [line.partition(":")[2].partition(" this is")[0] for line in errors.splitlines()] == [
        " warning: providers.a.api_key:",
        " warning: providers.b.api_key_env:",
    ]
    assert "unless http://a is another gateway" in errors and key not in errors


def test_misspelt_names_of_fields_and_efforts_are_warnings(gateway: Command) -> None:
    gateway.config.write_text(
        '[[models]]\nname = "a"\nprovider = "sandbox"\nupstream = "echo"\n'
        'refuses = ["temprature", "top_p", "prefil", "guided_json"]\n'
        'efforts = ["low", "hihg", "default"]\n'
    )
    output, errors = gateway("config check")
    assert "The settings are valid" in output
    warnings = [line.removeprefix("gateway: warning: models.a.") for line in errors.splitlines()]
    assert [line.partition(":")[0] for line in warnings] == [
        "refuses[0]",
        "refuses[2]",
        "efforts[1]",
    ]
    assert [line.rpartition("; ")[2] for line in warnings] == [
        f"did you mean {name}?" for name in ("temperature", "prefill", "high")
    ]


def test_names_that_a_wildcard_takes_are_models(gateway: Command) -> None:
    gateway.config.write_text(
        '[[models]]\nname = "claude-*"\nprovider = "sandbox"\nupstream = "echo"\n'
        '[[models]]\nname = "a"\nprovider = "sandbox"\nupstream = "echo"\n'
        'fallbacks = ["claude-opus-4-5", "claude-*"]\n'
    )
    _, errors = gateway("config check", status=2)
    assert errors == "gateway: models.a.fallbacks[1]: unknown model 'claude-*'\n"


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("[server]\nprot = 1\n", "server.prot: unknown key; did you mean port?"),
        ("[[models]]\nname='a'\nprovider='sandbox'\nfallback=[]\n", "did you mean fallbacks?"),
        (
            '[providers.p]\nkind="openai"\nbase_url="http://p"\napi_key="${KEY}"\n',
            "providers.p.api_key: variables are not expanded in settings",
        ),
        (
            '[providers.p]\nkind="openai"\nbase_url="http://localhost:8080/v1"\n',
            "providers.p.base_url: http://localhost:8080/v1 is the gateway's own address",
        ),
    ],
)
def test_a_mistake_in_the_settings_comes_with_its_mend(
    gateway: Command, written: str, hint: str
) -> None:
    gateway.config.write_text(written)
    assert hint in gateway.refused("config check", status=2)


def test_no_database_is_made_in_a_folder_without_a_gateway(
    gateway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gateway.environ["GATEWAY_DATA_DIR"] = None
    assert "no gateway has run here" in gateway.refused("keys create --user ada", status=2)
    assert not (tmp_path / "var").exists()


def test_providers_are_listed_with_what_is_missing(gateway: Command) -> None:
    gateway.environ["AZURE_OPENAI_ENDPOINT"] = None
    gateway.environ["GROQ_API_KEY"] = "gsk-secret"
    gateway.config.write_text("[providers.mistral]\n[providers.acme]\nbase_url = 'http://a'\n")
    assert "acme.kind" in gateway.refused("providers", status=2)
    gateway.config.write_text("[providers.mistral]\n")
    output, _ = gateway("providers")
    states = {line.split()[0]: " ".join(line.split()[1:]) for line in output.splitlines()[1:]}
    assert states["groq"] == "joined https://api.groq.com/openai/v1"
    assert states["mistral"] == "needs MISTRAL_API_KEY https://api.mistral.ai/v1"
    assert states["azure"] == "needs AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT -"
    assert "gsk-secret" not in output


def test_up_says_why_it_cannot_start(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    (tmp_path / "var").touch()
    # In a process of its own, for the command gives way to another program.
    shown = subprocess.run(
        [Path(sys.executable).with_name("gateway"), "up"],
        env={**os.environ, **{name: value or "" for name, value in gateway.environ.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 1
    # What it has read, and no address.
    assert "Settings" in shown.stdout and "listens" not in shown.stdout
    (message,) = shown.stderr.splitlines()
    assert message.startswith("gateway: ")
    assert "storage.data_dir" in message


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["services", "--help"], 0, "--listen"),
        (["facade", "--help"], 0, "--services"),
        (["--help"], 0, "facade|services"),
        ([], 2, "facade|services"),
        (["everything"], 2, "facade|services"),
    ],
)
def test_serve_runs_a_part_with_its_arguments(words: list[str], status: int, told: str) -> None:
    shown = subprocess.run(
        [Path(sys.executable).with_name("gateway"), "serve", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == status
    assert told in (shown.stderr if status else shown.stdout)


def test_the_version_is_printed(gateway: Command) -> None:
    assert gateway("--version") == (f"gateway {VERSION}\n", "")


def test_the_plans_to_choose_from_are_those_there_are() -> None:
    assert get_args(shared.PlanName) == tuple(PLANS)
    assert DEFAULT in PLANS


def test_help_loads_nothing_heavy() -> None:
    heavy = {"pydantic", "sqlalchemy", "grpc", "aiohttp", "asyncio", "services.common.settings"}
    code = "import services.cli, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(shown.stdout.split())


@pytest.mark.parametrize(
    "line",
    [
        *("", "up", "sandbox", "keys", "keys create", "keys list", "keys show", "keys set"),
        *("keys rotate", "keys revoke", "users", "users create", "users list", "users show"),
        *("users set", "teams", "teams create", "teams list", "teams show", "teams set"),
        *("users delete", "teams delete"),
        *("limits", "limits show", "limits set", "limits clear"),
        *("admin-key", "admin-key create", "admin-key make", "admin-key list"),
        *("admin-key revoke", "audit", "audit list", "init", "import", "import litellm"),
        *("models", "chat", "reload", "console"),
    ],
)
def test_every_command_explains_itself(gateway: Command, line: str) -> None:
    output, _ = gateway(f"{line} --help")
    assert f"Usage: gateway {line}".rstrip() in output
    assert "--help" in output


def test_a_link_to_the_console_is_of_the_gateway_that_runs(
    gateway: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = Path(str(gateway.environ["GATEWAY_DATA_DIR"]))
    (data_dir / "dev.key").write_text(gateway("keys create --user dev")[0])
    monkeypatch.setattr(running, "running_gateways", list)
    assert "gateway up" in gateway.refused("console")
    with locked(str(data_dir)) as publish:
        assert "is still starting; try again" in gateway.refused("console")
        publish("http://127.0.0.1:8081")
        # The port of the settings is not that of a gateway with other ones.
        gateway.environ["GATEWAY_PORT"] = "9999"
        link = gateway("console")[0].strip()
    address, _, code = link.partition("#code=")
    assert address == "http://127.0.0.1:8081/console"
    assert redeem(str(data_dir), code, time.time())


def test_a_gateway_elsewhere_is_found_by_its_lock(
    gateway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = gateway.environ["GATEWAY_DATA_DIR"]
    key = gateway("keys create --user dev")[0]
    (Path(str(data_dir)) / "dev.key").write_text(key)
    # Only this process is looked at: others may run gateways on this machine.
    own = running.glob.glob(f"/proc/{os.getpid()}/fd")
    monkeypatch.setattr(running.glob, "glob", lambda pattern: own)
    with locked(str(data_dir)) as publish:
        publish("http://127.0.0.1:8081")
        gateway.environ["GATEWAY_DATA_DIR"] = str(tmp_path / "other")
        output, errors = gateway("console")
        assert output.startswith("http://127.0.0.1:8081/console#code=")
        assert f"the one on {data_dir} is used" in errors
        with locked(str(tmp_path / "third")) as publish_third:
            publish_third("http://127.0.0.1:8082")
            assert "several elsewhere; set GATEWAY_DATA_DIR" in gateway.refused("console")
