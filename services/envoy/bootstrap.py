"""The complete configuration of an Envoy in front of the gateway.

Envoy only routes requests; the facade translates JSON to protobuf. The configuration is JSON, which
Envoy accepts in place of YAML. https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/api documents
each field.
"""

import orjson

from services.common.settings import Settings
from services.envoy import listeners
from services.envoy.clusters import clusters, grpc_hosts
from services.envoy.types import Config, address, typed

_CONNECTIONS = "global_downstream_max_connections"


def bootstrap(settings: Settings) -> Config:
    """Return the configuration for the settings.

    Raises:
        SettingsError: `[envoy]` lacks a certificate that the facades or services need.
    """
    envoy = settings.envoy
    found = [listeners.callers(settings, has_services=bool(grpc_hosts(settings)))]
    if envoy.metrics_port:
        found.append(listeners.metrics(settings))
    return {
        "admin": {"address": address("127.0.0.1", envoy.admin_port)},
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": f"envoy.resource_monitors.{_CONNECTIONS}",
                    "typed_config": typed(
                        "extensions.resource_monitors.downstream_connections.v3"
                        ".DownstreamConnectionsConfig",
                        max_active_downstream_connections=envoy.max_connections,
                    ),
                }
            ]
        },
        "static_resources": {"listeners": found, "clusters": clusters(settings)},
    }


def encode(config: Config) -> str:
    """Return the text of a configuration file."""
    return orjson.dumps(config, option=orjson.OPT_INDENT_2).decode() + "\n"
