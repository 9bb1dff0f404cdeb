"""Names of Envoy's configuration types, and parts that several sections share."""

from typing import Any

Config = dict[str, Any]

_PREFIX = "type.googleapis.com/envoy"
# Names of clusters.
FACADES = "facades"
SERVICES = "services"
ADMIN = "admin"

# Bytes that are buffered per connection if one side is slower.
CONNECTION_BUFFER = 256 << 10
# HTTP/2 flow control windows in bytes, of a stream and of a connection.
HTTP2_WINDOWS: Config = {
    "initial_stream_window_size": 256 << 10,
    "initial_connection_window_size": 1 << 20,
}


def typed(name: str, **fields: Any) -> Config:
    """Return a message of the type `envoy.<name>` for a field `typed_config`."""
    return {"@type": f"{_PREFIX}.{name}", **fields}


def address(host: str, port: int) -> Config:
    """Return an address to listen on or to connect to."""
    return {"socket_address": {"address": host, "port_value": port}}


def seconds(value: float) -> str:
    """Return a duration as text, such as `2.5s`."""
    return f"{value:g}s"
