"""Translation between protobuf and JSON of administration, in OpenAI's format.

Unknown fields and parameters are rejected by name. The endpoints are in `facade.routes.admin`.
"""

from facade.dialects.admin.arguments import Arguments
from facade.dialects.admin.errors import to_caller_error
from facade.dialects.admin.parsing import parse

__all__ = ["Arguments", "parse", "to_caller_error"]
