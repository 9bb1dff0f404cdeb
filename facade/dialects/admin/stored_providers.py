"""Requests about stored providers and tests of providers, and the JSON of the answers."""

from typing import Annotated, Final

from pydantic import Field

from facade.dialects.admin import answers
from facade.dialects.admin.arguments import Arguments
from facade.dialects.admin.bodies import Body
from facade.dialects.json_schemas import BOOLEAN, STRING, JsonObject, array
from gateway.accounts.v1 import stored_providers_pb2 as pb2
from gateway.inference.v1 import providers_pb2
from gateway.inference.v1.providers_pb2 import TestOutcome

_KIND: Final = "stored_provider"
_PRESET: Final = "provider.preset"
_TEST: Final = "provider.test"
_TIME: JsonObject = {"type": "integer", "description": "Unix seconds."}
_APIS: Final = ("openai", "anthropic", "gemini")

PROVIDER = answers.object_schema(
    _KIND,
    {
        "id": {"type": "string", "description": "Name of the provider, before `/` in models."},
        "kind": {"enum": [*_APIS]},
        "base_url": STRING,
        "has_key": BOOLEAN,
        "state": {
            "enum": ["active", "hidden", "locked"],
            "description": "`hidden`: the settings or the environment have a provider of this "
            "name, which is used instead. `locked`: the settings lack the key that encrypted the "
            "provider's.",
        },
        "created_at": _TIME,
        "key_set_at": {**_TIME, "description": "When the key was set, in Unix seconds."},
    },
)
PRESET = answers.object_schema(
    _PRESET,
    {
        "id": STRING,
        "kind": {"enum": [*_APIS]},
        "base_url": STRING,
        "key_variable": {"type": "string", "description": "Environment variable with its key."},
    },
)
PROVIDERS = answers.list_schema(PROVIDER)
PROVIDERS["properties"] |= {
    "can_store": {
        "type": "boolean",
        "description": "Whether the settings have an encryption key.",
    },
    "presets": array(PRESET),
}
PROVIDERS["required"] += ["can_store", "presets"]
DELETED = answers.object_schema(_KIND, {"deleted": {"const": True}})
TEST = answers.object_schema(
    _TEST,
    {
        "id": STRING,
        "outcome": {
            "enum": [
                *("valid", "key_rejected", "no_list", "unreachable", "not_allowed", "failed"),
            ],
            "description": "`no_list`: the server has no list of models there, so the key was not "
            "checked. `not_allowed`: the address is internal.",
        },
        "status": {"type": ["integer", "null"], "description": "The provider's HTTP status."},
        "models": array(STRING),
        "duration_ms": {"type": "integer", "minimum": 0},
    },
)

_Api = Annotated[
    str | None,
    Field(
        max_length=16,
        description="`openai`, `anthropic` or `gemini`; for a new provider that is no preset, "
        "required.",
    ),
]
_BaseUrl = Annotated[
    str | None,
    Field(max_length=2048, description="Address of the API, with `/v1` for most of OpenAI's kind."),
]


class SetStoredProvider(Body):
    """A provider to store."""

    kind: _Api = None
    base_url: _BaseUrl = None
    api_key: Annotated[
        str | None,
        Field(
            max_length=4096,
            description="The key; empty for none. Without the field, an existing provider keeps "
            "its key. No answer contains it.",
        ),
    ] = None


class TestProvider(Body):
    """The provider to test; without fields, the provider of this name as it is in use."""

    __test__ = False

    kind: _Api = None
    base_url: _BaseUrl = None
    api_key: Annotated[
        str | None, Field(max_length=4096, description="The key to test; not stored.")
    ] = None


def set_request(arguments: Arguments) -> pb2.SetStoredProviderRequest:
    """Return the request that stores a provider."""
    body: SetStoredProvider = arguments.body
    return pb2.SetStoredProviderRequest(
        name=arguments.ids["name"],
        kind=body.kind or "",
        base_url=body.base_url or "",
        api_key=body.api_key,
    )


def test_request(arguments: Arguments) -> providers_pb2.TestProviderRequest:
    """Return the request that tests a provider."""
    body: TestProvider = arguments.body
    return providers_pb2.TestProviderRequest(
        name=arguments.ids["name"],
        kind=body.kind or "",
        base_url=body.base_url or "",
        api_key=body.api_key,
    )


def render_list(response: pb2.ListStoredProvidersResponse) -> JsonObject:
    """Return the JSON object of the list of stored providers."""
    return {
        **answers.render_list(response.providers, "", render),
        "can_store": response.can_store,
        "presets": [
            {
                "object": _PRESET,
                "id": preset.name,
                "kind": preset.kind,
                "base_url": preset.base_url,
                "key_variable": preset.key_variable,
            }
            for preset in response.presets
        ],
    }


def render(provider: pb2.StoredProvider) -> JsonObject:
    """Return the JSON object of a stored provider."""
    state = pb2.StoredProviderState.Name(provider.state)
    return {
        "object": _KIND,
        "id": provider.name,
        "kind": provider.kind,
        "base_url": provider.base_url,
        "has_key": provider.has_key,
        "state": state.removeprefix("STORED_PROVIDER_STATE_").lower(),
        "created_at": provider.created_at_ms // 1000,
        "key_set_at": provider.key_set_at_ms // 1000,
    }


def render_deleted(_: pb2.DeleteStoredProviderResponse) -> JsonObject:
    """Return the JSON object of a deleted provider."""
    return {"object": _KIND, "deleted": True}


def render_test(response: providers_pb2.TestProviderResponse) -> JsonObject:
    """Return the JSON object of the result of a test."""
    return {
        "object": _TEST,
        "id": response.name,
        "outcome": TestOutcome.Name(response.outcome).removeprefix("TEST_OUTCOME_").lower(),
        "status": response.status if response.HasField("status") else None,
        "models": [*response.models],
        "duration_ms": response.duration_ms,
    }
