"""The first settings file of a gateway, as `gateway init` writes it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.config_files import toml


@dataclass(frozen=True)
class Choices:
    """What a new settings file is to contain.

    Attributes:
        providers: sections of providers by name, without keys themselves.
        remarks: a remark about each provider, by name.
        port: the port, or None for the default.
        has_sandbox: whether the sandbox's models are present beside those of providers.
        local_models: models of local servers, as `provider/model`.
    """

    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    has_sandbox: bool = False
    local_models: Sequence[str] = ()


def starter(choices: Choices) -> str:
    """Return the text of a settings file, with comments about the next steps."""
    parts: list[Iterable[str]] = [
        toml.comment(
            "Settings of the gateway, written by `gateway init`. Every key is optional:\n"
            "`gateway config example` shows them all, `gateway config check` checks this file,\n"
            "and `gateway reload` makes a running gateway read its providers and models again."
        )
    ]
    if choices.port is not None:
        parts.append(toml.table("[server]", {"port": choices.port}))
    else:
        parts.append(
            toml.comment('[server]\nport = 8080\nhost = "127.0.0.1"  # "0.0.0.0": for others')
        )
    if choices.has_sandbox:
        parts.append(
            [
                *toml.comment("Models without a provider, such as sandbox/echo, for development."),
                *toml.table("[sandbox]", {"enabled": True}),
            ]
        )
    for name, section in choices.providers.items():
        remark = choices.remarks.get(name, "")
        parts.append(
            [*toml.comment(remark), *toml.table(toml.header_of("providers", name), section)]
        )
    if not choices.providers:
        parts.append(
            toml.comment(
                "A provider: `gateway providers` lists those that need only a key.\n"
                '[providers.openai]\napi_key_env = "OPENAI_API_KEY"'
            )
        )
    parts.append(toml.comment("\n".join(_example_of_model(choices))))
    return toml.join(parts)


def _example_of_model(choices: Choices) -> Iterable[str]:
    """Yield the lines of a model under a name of one's own, with a fallback."""
    first = next(iter(choices.providers), "openai")
    yield "Every model of a provider has the name PROVIDER/MODEL. A name of your own, with models"
    yield "that are tried if it fails:"
    yield "[[models]]"
    yield 'name = "fast"'
    yield f"provider = {toml.toml_value(first)}"
    yield 'upstream = "the provider\'s name for it"'
    others = list(choices.local_models[:1]) or [
        f"{name}/MODEL" for name in list(choices.providers)[1:2]
    ]
    yield f"fallbacks = {toml.toml_value(others)}"
