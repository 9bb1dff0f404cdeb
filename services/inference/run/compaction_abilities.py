"""Whether a provider can do what a request says of compaction. Pure."""

from gateway.inference.v1.inference_pb2 import Compaction, GenerateRequest
from services.inference.providers.base import Provider, compacts


def may_compact(request: GenerateRequest, provider: Provider) -> bool:
    """Return whether a provider understands the compaction of a request, or may ignore it."""
    match request.compaction.mode:
        case Compaction.MODE_ENDPOINT:
            return compacts(provider)
        case Compaction.MODE_ONLY:
            return provider.dialect == request.dialect
    return True
