"""The endpoints of keys, users and teams."""

from facade.dialects.admin import answers, bodies, requests
from facade.routes.admin.call import rpc_endpoint
from gateway.accounts.v1 import admin_pb2

_KEYS = (
    rpc_endpoint(
        "POST",
        "/keys",
        "createKey",
        "Create an API key, and its user and team if they do not exist",
        rpc="CreateKey",
        request=requests.create_key,
        render=answers.render_created_key,
        answer=answers.CREATED_KEY,
        body=bodies.CreateKey,
    ),
    rpc_endpoint(
        "GET",
        "/keys",
        "listKeys",
        "List API keys, oldest first",
        rpc="ListKeys",
        request=requests.list_keys,
        render=lambda found: answers.render_list(
            found.api_keys, found.next_page_token, answers.render_key
        ),
        answer=answers.list_schema(answers.KEY),
        query=bodies.KeysQuery,
    ),
    rpc_endpoint(
        "GET",
        "/keys/{key_id}",
        "getKey",
        "Get an API key, without the key itself",
        rpc="GetKey",
        request=lambda given: admin_pb2.GetKeyRequest(**given.ids),
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
    ),
    rpc_endpoint(
        "PATCH",
        "/keys/{key_id}",
        "updateKey",
        "Rename, disable or enable an API key, or change its expiration time",
        rpc="UpdateKey",
        request=requests.update_key,
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
        body=bodies.UpdateKey,
    ),
    rpc_endpoint(
        "POST",
        "/keys/{key_id}/revoke",
        "revokeKey",
        "Revoke an API key permanently",
        rpc="RevokeKey",
        request=lambda given: admin_pb2.RevokeKeyRequest(**given.ids),
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
        body=bodies.NoFields,
        body_may_be_empty=True,
    ),
    rpc_endpoint(
        "POST",
        "/keys/{key_id}/rotate",
        "rotateKey",
        "Rotate an API key; the old key stays valid for a grace period",
        rpc="RotateKey",
        request=lambda given: admin_pb2.RotateKeyRequest(
            **given.ids, grace_s=given.body.grace_seconds
        ),
        render=answers.render_rotated_key,
        answer=answers.ROTATED_KEY,
        body=bodies.RotateKey,
        body_may_be_empty=True,
    ),
)
_USERS = (
    rpc_endpoint(
        "POST",
        "/users",
        "createUser",
        "Create a user without a key",
        rpc="CreateUser",
        request=lambda given: admin_pb2.CreateUserRequest(
            name=given.body.name, team=given.body.team, plan=requests.plan(given.body.plan)
        ),
        render=lambda created: answers.render_user(created.user),
        answer=answers.USER,
        body=bodies.CreateUser,
    ),
    rpc_endpoint(
        "GET",
        "/users",
        "listUsers",
        "List users, oldest first",
        rpc="ListUsers",
        request=lambda given: admin_pb2.ListUsersRequest(
            **requests.page(given), name=given.query.name, team=given.query.team
        ),
        render=lambda found: answers.render_list(
            found.users, found.next_page_token, answers.render_user
        ),
        answer=answers.list_schema(answers.USER),
        query=bodies.UsersQuery,
    ),
    rpc_endpoint(
        "GET",
        "/users/{user_id}",
        "getUser",
        "One user",
        rpc="GetUser",
        request=lambda given: admin_pb2.GetUserRequest(**given.ids),
        render=lambda found: answers.render_user(found.user),
        answer=answers.USER,
    ),
    rpc_endpoint(
        "PATCH",
        "/users/{user_id}",
        "updateUser",
        "Change the team or the role of a user, or the plan of a user without a team",
        rpc="UpdateUser",
        request=requests.update_user,
        render=lambda found: answers.render_user(found.user),
        answer=answers.USER,
        body=bodies.UpdateUser,
    ),
    rpc_endpoint(
        "DELETE",
        "/users/{user_id}",
        "deleteUser",
        "Delete a user and all its keys; stored data remains but is inaccessible",
        rpc="DeleteUser",
        request=lambda given: admin_pb2.DeleteUserRequest(**given.ids),
        render=answers.render_deleted_user,
        answer=answers.DELETED_USER,
    ),
    rpc_endpoint(
        "POST",
        "/users/{user_id}/erase",
        "eraseUser",
        "Delete a user and all its keys, and erase its stored data in the background",
        rpc="EraseUser",
        request=lambda given: admin_pb2.EraseUserRequest(**given.ids),
        render=lambda begun: answers.render_erasure(begun.erasure),
        answer=answers.ERASURE,
        body=bodies.NoFields,
        body_may_be_empty=True,
    ),
    rpc_endpoint(
        "GET",
        "/users/{user_id}/erasure",
        "getErasure",
        "What the erasure of a user has removed",
        rpc="GetErasure",
        request=lambda given: admin_pb2.GetErasureRequest(**given.ids),
        render=lambda found: answers.render_erasure(found.erasure),
        answer=answers.ERASURE,
    ),
)
_TEAMS = (
    rpc_endpoint(
        "POST",
        "/teams",
        "createTeam",
        "Create a team",
        rpc="CreateTeam",
        request=lambda given: admin_pb2.CreateTeamRequest(
            name=given.body.name, plan=requests.plan(given.body.plan)
        ),
        render=lambda created: answers.render_team(created.team),
        answer=answers.TEAM,
        body=bodies.CreateTeam,
    ),
    rpc_endpoint(
        "GET",
        "/teams",
        "listTeams",
        "List teams, oldest first",
        rpc="ListTeams",
        request=lambda given: admin_pb2.ListTeamsRequest(
            **requests.page(given), name=given.query.name
        ),
        render=lambda found: answers.render_list(
            found.teams, found.next_page_token, answers.render_team
        ),
        answer=answers.list_schema(answers.TEAM),
        query=bodies.TeamsQuery,
    ),
    rpc_endpoint(
        "GET",
        "/teams/{team_id}",
        "getTeam",
        "One team",
        rpc="GetTeam",
        request=lambda given: admin_pb2.GetTeamRequest(**given.ids),
        render=lambda found: answers.render_team(found.team),
        answer=answers.TEAM,
    ),
    rpc_endpoint(
        "PATCH",
        "/teams/{team_id}",
        "updateTeam",
        "Set the plan of a team",
        rpc="UpdateTeam",
        request=lambda given: admin_pb2.UpdateTeamRequest(
            **given.ids, plan=requests.plan(given.body.plan)
        ),
        render=lambda found: answers.render_team(found.team),
        answer=answers.TEAM,
        body=bodies.UpdateTeam,
    ),
    rpc_endpoint(
        "DELETE",
        "/teams/{team_id}",
        "deleteTeam",
        "Delete a team that has no users",
        rpc="DeleteTeam",
        request=lambda given: admin_pb2.DeleteTeamRequest(**given.ids),
        render=lambda deleted: answers.render_deleted("team", deleted.team),
        answer=answers.DELETED_TEAM,
    ),
)
ENDPOINTS = (*_KEYS, *_USERS, *_TEAMS)
