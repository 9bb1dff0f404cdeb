"""The endpoints of model groups."""

from facade.dialects.admin import answers, bodies, model_groups
from facade.routes.admin.call import rpc_endpoint
from gateway.accounts.v1 import admin_pb2

ENDPOINTS = (
    rpc_endpoint(
        "GET",
        "/model-groups",
        "listModelGroups",
        "List all model groups by name",
        rpc="ListModelGroups",
        request=lambda _: admin_pb2.ListModelGroupsRequest(),
        render=lambda found: answers.render_list(found.model_groups, "", model_groups.render),
        answer=answers.list_schema(model_groups.GROUP),
    ),
    rpc_endpoint(
        "PUT",
        "/model-groups/{name}",
        "setModelGroup",
        "Create or replace a model group",
        rpc="SetModelGroup",
        request=model_groups.set_request,
        render=lambda changed: model_groups.render(changed.model_group),
        answer=model_groups.GROUP,
        body=bodies.SetModelGroup,
    ),
    rpc_endpoint(
        "DELETE",
        "/model-groups/{name}",
        "deleteModelGroup",
        "Delete a model group",
        rpc="DeleteModelGroup",
        request=model_groups.delete_request,
        render=model_groups.render_deleted,
        answer=model_groups.DELETED,
    ),
)
