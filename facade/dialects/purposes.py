"""Purposes of files, as named in both formats."""

from gateway.files.v1 import files_pb2
from gateway.files.v1.files_pb2 import Purpose
from services.common.errors import invalid

PURPOSES: dict[str, Purpose.ValueType] = {
    "assistants": files_pb2.PURPOSE_ASSISTANTS,
    "batch": files_pb2.PURPOSE_BATCH,
    "fine-tune": files_pb2.PURPOSE_FINE_TUNE,
    "vision": files_pb2.PURPOSE_VISION,
    "user_data": files_pb2.PURPOSE_USER_DATA,
    "evals": files_pb2.PURPOSE_EVALS,
    "batch_output": files_pb2.PURPOSE_BATCH_OUTPUT,
}
NAMES = {purpose: name for name, purpose in PURPOSES.items()}
TAKES = f"must be one of {', '.join(PURPOSES)}"


def parse_purpose(text: str) -> Purpose.ValueType:
    """Parse a purpose.

    Raises:
        GatewayError: invalid.
    """
    purpose = PURPOSES.get(text)
    if purpose is None:
        raise invalid("purpose", f"purpose: {TAKES}")
    return purpose
