"""The endpoints of providers: their health, tests, and the stored ones."""

from facade.dialects.admin import providers, stored_providers
from facade.routes.admin.call import rpc_endpoint
from gateway.accounts.v1 import stored_providers_pb2
from gateway.inference.v1.providers_pb2 import ListProvidersRequest

_STORED = "stored_providers"

ENDPOINTS = (
    rpc_endpoint(
        "GET",
        "/providers",
        "listProviders",
        "List the providers and their health, as seen by the workers of this host",
        stub="providers",
        rpc="ListProviders",
        request=lambda given: ListProvidersRequest(),
        render=providers.render_providers,
        answer=providers.PROVIDERS,
    ),
    rpc_endpoint(
        "POST",
        "/providers/{name}/test",
        "testProvider",
        "Test a provider and its key, by a request for its list of models",
        stub="providers",
        rpc="TestProvider",
        request=stored_providers.test_request,
        render=stored_providers.render_test,
        answer=stored_providers.TEST,
        body=stored_providers.TestProvider,
        body_may_be_empty=True,
    ),
    rpc_endpoint(
        "GET",
        "/stored-providers",
        "listStoredProviders",
        "List the providers that administrators have stored, by name, and the presets",
        stub=_STORED,
        rpc="ListStoredProviders",
        request=lambda _: stored_providers_pb2.ListStoredProvidersRequest(),
        render=stored_providers.render_list,
        answer=stored_providers.PROVIDERS,
    ),
    rpc_endpoint(
        "PUT",
        "/stored-providers/{name}",
        "setStoredProvider",
        "Add a provider, or change its address or its key",
        stub=_STORED,
        rpc="SetStoredProvider",
        request=stored_providers.set_request,
        render=lambda changed: stored_providers.render(changed.provider),
        answer=stored_providers.PROVIDER,
        body=stored_providers.SetStoredProvider,
    ),
    rpc_endpoint(
        "DELETE",
        "/stored-providers/{name}",
        "deleteStoredProvider",
        "Remove a stored provider and its key",
        stub=_STORED,
        rpc="DeleteStoredProvider",
        request=lambda given: stored_providers_pb2.DeleteStoredProviderRequest(**given.ids),
        render=stored_providers.render_deleted,
        answer=stored_providers.DELETED,
    ),
)
