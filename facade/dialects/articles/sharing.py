"""Names and permissions of documents, and groups: requests, responses, and their translation."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from facade.dialects.articles import answers
from facade.dialects.articles.answer_types import ArticleNode, UnixSeconds
from facade.dialects.articles.bodies import INT64, ArticleBody
from gateway.articles.v1 import articles_pb2, groups_pb2

_GroupId = Annotated[int, Field(ge=-INT64, lt=INT64)]
_UserId = Annotated[
    str, Field(min_length=1, max_length=64, description="Id of a user, as in group/list.")
]
_PERMISSIONS = {
    "private": articles_pb2.PERMISSION_PRIVATE,
    "group-only": articles_pb2.PERMISSION_GROUP_ONLY,
}


class RenameArticle(ArticleBody):
    """The new name of a document."""

    docId: str
    name: Annotated[str, Field(min_length=1, description="At most 200 characters.")]


class ShareArticle(ArticleBody):
    """Who may read and edit a document; at least one of `permission` and `group`."""

    docId: str
    permission: Literal["private", "group-only"] | None = Field(
        None, description="Its creator alone, or every member of its group."
    )
    group: _GroupId | None = Field(
        None,
        description="Id of one of the caller's groups, to which the document moves; 0 takes it "
        "back to the private group.",
    )


class CreateGroup(ArticleBody):
    """The name of a group."""

    name: Annotated[str, Field(min_length=1, description="At most 200 printable characters.")]


class ListGroups(ArticleBody):
    """A request without fields."""


class AddMember(ArticleBody):
    """Names a user to add to a group."""

    group: _GroupId
    user: _UserId


class RemoveMember(ArticleBody):
    """Names a member to remove from a group."""

    group: _GroupId
    user: _UserId | None = Field(None, description="The caller, who leaves it, if omitted.")


class _Answer(BaseModel):
    model_config = ConfigDict(defer_build=True)


class Changed(_Answer):
    """The changed document."""

    article: ArticleNode


class Member(_Answer):
    """A member of a group."""

    user: Annotated[str, Field(description="Id of the user.")]
    name: Annotated[str, Field(description="Name of the user; empty for one who was deleted.")]
    isCreator: Annotated[bool, Field(description="Whether this member manages the group.")]
    time_join: UnixSeconds


class Group(_Answer):
    """A group and its members."""

    group_id: int
    name: str
    isCreator: Annotated[bool, Field(description="Whether the caller manages the group.")]
    time_create: UnixSeconds
    members: Annotated[list[Member], Field(description="In the order in which they joined.")]


class GroupCreated(_Answer):
    """The created group."""

    group: Group


class Groups(_Answer):
    """The groups that the caller is in, without the private one."""

    user: Annotated[
        str, Field(description="The caller's id, by which others add the caller to their groups.")
    ]
    groups: list[Group]


def rename_article(body: RenameArticle) -> articles_pb2.RenameArticleRequest:
    """Return the request to rename a document."""
    return articles_pb2.RenameArticleRequest(article_id=body.docId, name=body.name)


def share_article(body: ShareArticle) -> articles_pb2.ShareArticleRequest:
    """Return the request to share a document."""
    return articles_pb2.ShareArticleRequest(
        article_id=body.docId,
        permission=None if body.permission is None else _PERMISSIONS[body.permission],
        group_id=body.group,
    )


def create_group(body: CreateGroup) -> groups_pb2.CreateGroupRequest:
    """Return the request to create a group."""
    return groups_pb2.CreateGroupRequest(name=body.name)


def list_groups(body: ListGroups) -> groups_pb2.ListGroupsRequest:
    """Return the request to list groups."""
    return groups_pb2.ListGroupsRequest()


def add_member(body: AddMember) -> groups_pb2.AddGroupMemberRequest:
    """Return the request to add a user to a group."""
    return groups_pb2.AddGroupMemberRequest(group_id=body.group, user_id=body.user)


def remove_member(body: RemoveMember) -> groups_pb2.RemoveGroupMemberRequest:
    """Return the request to remove a member from a group."""
    return groups_pb2.RemoveGroupMemberRequest(group_id=body.group, user_id=body.user or "")


def changed(
    _: ArticleBody, answer: articles_pb2.RenameArticleResponse | articles_pb2.ShareArticleResponse
) -> answers.Data:
    """Return the data of doc/rename and doc/share."""
    return {"article": answers.node(answer.article)}


def group_created(_: CreateGroup, answer: groups_pb2.CreateGroupResponse) -> answers.Data:
    """Return the data of group/create."""
    return {"group": _group(answer.group)}


def groups(_: ListGroups, answer: groups_pb2.ListGroupsResponse) -> answers.Data:
    """Return the data of group/list."""
    return {"user": answer.user_id, "groups": [_group(group) for group in answer.groups]}


def member_changed(
    _: ArticleBody,
    answer: groups_pb2.AddGroupMemberResponse | groups_pb2.RemoveGroupMemberResponse,
) -> answers.Data:
    """Return the data of group/add and group/remove."""
    return {"ok": True}


def _group(group: groups_pb2.Group) -> answers.Data:
    return {
        "group_id": group.id,
        "name": group.name,
        "isCreator": group.is_creator,
        "time_create": group.created_at,
        "members": [
            {
                "user": member.user_id,
                "name": member.name,
                "isCreator": member.is_creator,
                "time_join": member.joined_at,
            }
            for member in group.members
        ],
    }
