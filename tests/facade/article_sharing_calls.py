"""Calls that share documents; see `article_calls`."""

from gateway.articles.v1 import articles_pb2 as pb
from gateway.articles.v1 import groups_pb2

ARTICLE = pb.Article(id="17", name="n", may_edit=True, permission=pb.PERMISSION_PRIVATE)
NODE = {
    "outer_id": "17",
    "name": "n",
    "group": 0,
    "sharePermission": {"operation": True, "permission": "private"},
    "children": [],
    "fileholderDeep": 0,
    "time_create": 0,
}
GROUP = groups_pb2.Group(
    id=5,
    name="g",
    created_at=3,
    members=[
        groups_pb2.GroupMember(user_id="u", name="ada", is_creator=True, joined_at=4),
        groups_pb2.GroupMember(user_id="v", joined_at=5),
    ],
)
GROUP_DATA = {
    "group_id": 5,
    "name": "g",
    "isCreator": False,
    "time_create": 3,
    "members": [
        {"user": "u", "name": "ada", "isCreator": True, "time_join": 4},
        {"user": "v", "name": "", "isCreator": False, "time_join": 5},
    ],
}

SHARING_ROWS = [
    (
        "doc/create",
        {"from": "18"},
        pb.CreateArticleRequest(source_id="18"),
        pb.CreateArticleResponse(article=ARTICLE),
        {"article": NODE, "group": 0},
    ),
    (
        "doc/create",
        {"from": "18", "content": "all", "group": 5},
        pb.CreateArticleRequest(source_id="18", copies_all=True, group_id=5),
        pb.CreateArticleResponse(article=ARTICLE),
        {"article": NODE, "group": 0},
    ),
    (
        "doc/rename",
        {"docId": "17", "name": "n"},
        pb.RenameArticleRequest(article_id="17", name="n"),
        pb.RenameArticleResponse(article=ARTICLE),
        {"article": NODE},
    ),
    (
        "doc/share",
        {"docId": "17", "permission": "private"},
        pb.ShareArticleRequest(article_id="17", permission=pb.PERMISSION_PRIVATE),
        pb.ShareArticleResponse(article=ARTICLE),
        {"article": NODE},
    ),
    (
        "doc/share",
        {"docId": "17", "permission": "group-only", "group": 0},
        pb.ShareArticleRequest(article_id="17", permission=pb.PERMISSION_GROUP_ONLY, group_id=0),
        pb.ShareArticleResponse(article=ARTICLE),
        {"article": NODE},
    ),
    (
        "group/create",
        {"name": "g"},
        groups_pb2.CreateGroupRequest(name="g"),
        groups_pb2.CreateGroupResponse(group=GROUP),
        {"group": GROUP_DATA},
    ),
    (
        "group/list",
        {},
        groups_pb2.ListGroupsRequest(),
        groups_pb2.ListGroupsResponse(groups=[GROUP], user_id="v"),
        {"user": "v", "groups": [GROUP_DATA]},
    ),
    (
        "group/add",
        {"group": 5, "user": "v"},
        groups_pb2.AddGroupMemberRequest(group_id=5, user_id="v"),
        groups_pb2.AddGroupMemberResponse(),
        {"ok": True},
    ),
    (
        "group/remove",
        {"group": 5},
        groups_pb2.RemoveGroupMemberRequest(group_id=5),
        groups_pb2.RemoveGroupMemberResponse(),
        {"ok": True},
    ),
    (
        "group/remove",
        {"group": 5, "user": "v"},
        groups_pb2.RemoveGroupMemberRequest(group_id=5, user_id="v"),
        groups_pb2.RemoveGroupMemberResponse(),
        {"ok": True},
    ),
]
