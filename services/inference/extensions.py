"""Which of a request's extensions this gateway does not have yet.

A request that needs one is refused with the field and a way around, and never
answered as though the field had not been there.
"""

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import not_implemented


def check_request(request: GenerateRequest) -> None:
    """Refuse a request that needs an extension which is not there, whatever its target.

    Raises:
        GatewayError: not_implemented, naming the field and what to do instead.
    """
    if request.use_built_in_tools:
        raise not_implemented(
            "use_built_in_tools",
            "use_built_in_tools: this gateway has no tools of its own yet; send false, and"
            " tools of your own in `tools`",
        )
