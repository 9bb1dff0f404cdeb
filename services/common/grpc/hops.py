"""Loop detection: a header that counts the gateways that a request has passed.

A gateway can be configured as its own provider, or two gateways as providers of each other. Each
request to a provider has the number of gateways it has passed in a header; between processes the
number is in the call's metadata. A request above the limit is in a loop, and is rejected.
"""

from contextvars import ContextVar

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

# Header of requests and key of call metadata.
HOPS_KEY = "x-gateway-hops"
# An intended chain of gateways has two or three.
MAX_HOPS = 5

# Number of gateways that the request of the current task has passed.
hops: ContextVar[int] = ContextVar("hops", default=0)


def parse_hops(text: str) -> int:
    """Parse the value of the header or metadata entry; return 0 if it is not a number."""
    return int(text[:4]) if text.isascii() and text.isdecimal() else 0


def loop_detected() -> GatewayError:
    """Return the error for a request that has passed too many gateways: 508."""
    return GatewayError(
        errors_pb2.REASON_LOOP_DETECTED,
        f"the request has passed more than {MAX_HOPS} gateways: the base_url of a provider leads "
        "back to a gateway; the operator must correct it",
    )
