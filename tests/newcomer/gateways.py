"""The gateways that the documents speak of: their settings, with imitations as providers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.common.settings.presets import PRESETS
from tests.e2e.gateway import Gateway, environ_of, without_notice
from tests.e2e.processes import Running, command
from tests.newcomer.blocks import Block

_ADDRESS = r"https?://127\.0\.0\.1:(\d+)"
_PROVIDER = re.compile(r"^\[providers\.([\w-]+)\]\n((?:(?!\[).*\n?)*)", re.M)
_REPLACED = re.compile(r"^(?:kind|base_url|api_key\w*) = .*\n", re.M)
_NAMED_MODEL = re.compile(r"\"?model\"?(?:=|: )\"(\w+)/([^\"]+)\"")
_BASE = "[discovery]\nenabled = false\n\n[sandbox]\nenabled = true\n\n"
_PATHS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta", "bedrock": ""}


@contextmanager
def gateway_with(
    folder: Path, settings: str, environ: Mapping[str, str] | None = None
) -> Iterator[Gateway]:
    """Run `gateway up` in an empty folder with settings in TOML, and further variables."""
    (folder / "gateway.toml").write_text(without_notice(_BASE + settings))
    started = Running(
        [command("gateway"), "up", "--workers", "1"],
        environ={**environ_of(folder), **(environ or {})},
        folder=folder,
        is_forked=True,
    )
    with started as process:
        port = int(process.wait_for(f"listens on {_ADDRESS}")[1])
        metrics_port = int(process.wait_for(f"Metrics are on {_ADDRESS}")[1])
        data_dir = folder / "var"
        yield Gateway(
            port, metrics_port, (data_dir / "dev.key").read_text().strip(), process, data_dir
        )


def settings_of(blocks: Sequence[Block], upstream_port: int) -> str:
    """Return the settings that a document shows, with the upstream in place of its providers.

    The upstream has none of the providers' models: its model `echo` answers to their names.
    """
    shown = "\n".join(
        block.text for block in blocks if block.language == "toml" and not block.reason
    )
    settings = _PROVIDER.sub(lambda match: _section(match, upstream_port), shown)
    settings = re.sub(r'^upstream = ".*"', 'upstream = "echo"', settings, flags=re.M)
    fallbacks = re.findall(r'^fallbacks = \["(\w+)/([^"]+)"', shown, re.M)
    named = {*fallbacks, *(pair for block in blocks for pair in _NAMED_MODEL.findall(block.text))}
    for provider, model in sorted(named):
        if f"[providers.{provider}]" in settings:
            settings += f'\n[[models]]\nname = "{provider}/{model}"\nprovider = "{provider}"\n'
            settings += 'upstream = "echo"\n'
    return settings


def _section(match: re.Match[str], upstream_port: int) -> str:
    name, fields = match.groups()
    kind = PRESETS[name].kind if name in PRESETS else "openai"
    address = f"http://127.0.0.1:{upstream_port}{_PATHS[kind]}"
    return (
        f'[providers.{name}]\nkind = "{kind}"\nbase_url = "{address}"\napi_key = "upstream-key"\n'
        + _REPLACED.sub("", fields)
    )
