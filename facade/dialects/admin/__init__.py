"""Translation between protobuf and JSON of administration, in OpenAI's format.

`endpoints` is the table of all endpoints, from which the routes and the OpenAPI document come.
Unknown fields and parameters are rejected by name.
"""

from facade.dialects.admin.endpoints import ENDPOINTS, PREFIX
from facade.dialects.admin.errors import to_caller_error
from facade.dialects.admin.openapi import paths, schemas
from facade.dialects.admin.parsing import parse
from facade.dialects.admin.table import Endpoint

__all__ = ["ENDPOINTS", "PREFIX", "Endpoint", "parse", "paths", "schemas", "to_caller_error"]
