"""Requests about model groups, and the JSON of the answers."""

from typing import Final

from facade.dialects.admin import answers
from facade.dialects.admin.arguments import Arguments
from facade.dialects.json_schemas import STRING, JsonObject, array
from gateway.accounts.v1 import admin_pb2
from gateway.accounts.v1.admin_pb2 import ModelGroup

_KIND: Final = "model_group"
GROUP: Final = answers.object_schema(_KIND, {"id": STRING, "models": array(STRING)})
DELETED: Final = answers.object_schema(_KIND, {"deleted": {"const": True}})


def set_request(arguments: Arguments) -> admin_pb2.SetModelGroupRequest:
    """Return the request that creates or replaces a group."""
    group = ModelGroup(name=arguments.ids["name"], models=arguments.body.models)
    return admin_pb2.SetModelGroupRequest(model_group=group)


def delete_request(arguments: Arguments) -> admin_pb2.DeleteModelGroupRequest:
    """Return the request that deletes a group."""
    return admin_pb2.DeleteModelGroupRequest(name=arguments.ids["name"])


def render(group: ModelGroup) -> JsonObject:
    """Return the JSON object of a group."""
    return {"object": _KIND, "id": group.name, "models": [*group.models]}


def render_deleted(_: admin_pb2.DeleteModelGroupResponse) -> JsonObject:
    """Return the JSON object of a deleted group."""
    return {"object": _KIND, "deleted": True}
