"""Sharing over gRPC: names and permissions of documents, and groups."""

from collections.abc import Sequence
from typing import Any

import grpc

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1 import groups_pb2
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles.callers import Callers, UserNames
from services.articles.errors import FIELDS, MEMBER, failure
from services.articles.groups import GroupRepository, MemberGroup
from services.articles.repository import ArticleRepository
from services.articles.tables import GROUP_ONLY, PRIVATE

Context = grpc.aio.ServicerContext

_PERMISSIONS = {wire.PERMISSION_PRIVATE: PRIVATE, wire.PERMISSION_GROUP_ONLY: GROUP_ONLY}
# Characters of the id of a user.
_MAX_USER_ID = 64


class SharingCalls(ArticleEditorServiceServicer):
    """The RPCs that share documents."""

    _callers: Callers
    _articles: ArticleRepository
    _groups: GroupRepository
    _names_of: UserNames

    async def RenameArticle(
        self, request: wire.RenameArticleRequest, context: "Context[Any, Any]"
    ) -> wire.RenameArticleResponse:
        """Rename a document."""
        user_id = await self._callers.user_id()
        article = await self._articles.rename(user_id, request.article_id, request.name)
        return wire.RenameArticleResponse(article=article)

    async def ShareArticle(
        self, request: wire.ShareArticleRequest, context: "Context[Any, Any]"
    ) -> wire.ShareArticleResponse:
        """Change who may read and edit a document."""
        user_id = await self._callers.user_id()
        permission = None
        if request.HasField("permission"):
            permission = _PERMISSIONS.get(request.permission)
            if permission is None:
                raise failure(FIELDS, "/permission", "must be private or group-only")
        group_id = request.group_id if request.HasField("group_id") else None
        article = await self._articles.share(request.article_id, permission, group_id, user_id)
        return wire.ShareArticleResponse(article=article)

    async def CreateGroup(
        self, request: groups_pb2.CreateGroupRequest, context: "Context[Any, Any]"
    ) -> groups_pb2.CreateGroupResponse:
        """Create a group."""
        user_id = await self._callers.user_id()
        group_id = await self._groups.create(request.name, user_id, is_operator=False)
        created = [group for group in await self._groups.list_of(user_id) if group.id == group_id]
        [group] = await self._to_messages(created, user_id)
        return groups_pb2.CreateGroupResponse(group=group)

    async def ListGroups(
        self, request: groups_pb2.ListGroupsRequest, context: "Context[Any, Any]"
    ) -> groups_pb2.ListGroupsResponse:
        """List the caller's groups."""
        user_id = await self._callers.user_id()
        groups = await self._to_messages(await self._groups.list_of(user_id), user_id)
        return groups_pb2.ListGroupsResponse(groups=groups, user_id=user_id)

    async def AddGroupMember(
        self, request: groups_pb2.AddGroupMemberRequest, context: "Context[Any, Any]"
    ) -> groups_pb2.AddGroupMemberResponse:
        """Add a user to a group."""
        user_id = await self._callers.user_id()
        added_id = request.user_id
        # Whoever may not add members learns nothing of users.
        await self._groups.check_manager(request.group_id, user_id)
        if not 0 < len(added_id) <= _MAX_USER_ID or not await self._names_of([added_id]):
            problem = "no user has this id; `group/list` shows users their own id as `user`"
            raise failure(MEMBER, "/user", problem)
        await self._groups.add(request.group_id, added_id, user_id)
        return groups_pb2.AddGroupMemberResponse()

    async def RemoveGroupMember(
        self, request: groups_pb2.RemoveGroupMemberRequest, context: "Context[Any, Any]"
    ) -> groups_pb2.RemoveGroupMemberResponse:
        """Remove a member from a group."""
        user_id = await self._callers.user_id()
        await self._groups.remove(request.group_id, request.user_id or user_id, user_id)
        return groups_pb2.RemoveGroupMemberResponse()

    async def _to_messages(
        self, groups: Sequence[MemberGroup], user_id: str
    ) -> list[groups_pb2.Group]:
        ids = {member.user_id for group in groups for member in group.members}
        names = await self._names_of(ids)
        return [
            groups_pb2.Group(
                id=group.id,
                name=group.name,
                is_creator=group.creator_id == user_id,
                created_at=group.created_at_ms // 1000,
                members=[
                    groups_pb2.GroupMember(
                        user_id=member.user_id,
                        name=names.get(member.user_id, ""),
                        is_creator=member.user_id == group.creator_id,
                        joined_at=member.added_at_ms // 1000,
                    )
                    for member in group.members
                ],
            )
            for group in groups
        ]
