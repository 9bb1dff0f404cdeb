"""The header that counts the gateways which a request has passed.

A gateway can be configured as its own provider, or two as each other's. Each request to a
provider says how many gateways it has passed, in a header and between processes in the call's
metadata; one that has passed more than a few goes round, and is refused.
"""

from contextvars import ContextVar

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

# Of a request, and of a call's metadata.
HOPS_KEY = "x-gateway-hops"
# A chain of gateways that somebody wants has two or three.
MAX_HOPS = 5

# Of the call that the current task serves.
hops: ContextVar[int] = ContextVar("hops", default=0)


def parse_hops(text: str) -> int:
    """Return the number that a header or metadata entry holds, 0 where it holds none."""
    return int(text[:4]) if text.isascii() and text.isdigit() else 0


def loop_detected() -> GatewayError:
    """Return the failure of a request that has passed too many gateways: 508."""
    return GatewayError(
        errors_pb2.REASON_LOOP_DETECTED,
        f"the request has passed more than {MAX_HOPS} gateways: a provider's address leads back "
        "to a gateway that it came from; the gateway's operator has to mend that provider's "
        "base_url",
    )
