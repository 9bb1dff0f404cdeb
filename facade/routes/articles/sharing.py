"""The endpoints that share documents."""

from facade.dialects.articles import answer_types, sharing
from facade.routes.articles.call import rpc_endpoint

ENDPOINTS = (
    rpc_endpoint(
        "doc/rename",
        "renameArticle",
        "RenameArticle",
        "Rename a document",
        sharing.RenameArticle,
        sharing.rename_article,
        sharing.Changed,
        sharing.changed,
    ),
    rpc_endpoint(
        "doc/share",
        "shareArticle",
        "ShareArticle",
        "Change who may read and edit a document, or move it to another group",
        sharing.ShareArticle,
        sharing.share_article,
        sharing.Changed,
        sharing.changed,
    ),
    rpc_endpoint(
        "group/create",
        "createGroup",
        "CreateGroup",
        "Create a group, whose members share documents",
        sharing.CreateGroup,
        sharing.create_group,
        sharing.GroupCreated,
        sharing.group_created,
    ),
    rpc_endpoint(
        "group/list",
        "listGroups",
        "ListGroups",
        "List the caller's groups with their members",
        sharing.ListGroups,
        sharing.list_groups,
        sharing.Groups,
        sharing.groups,
    ),
    rpc_endpoint(
        "group/add",
        "addGroupMember",
        "AddGroupMember",
        "Add a user to a group that the caller manages",
        sharing.AddMember,
        sharing.add_member,
        answer_types.Done,
        sharing.member_changed,
    ),
    rpc_endpoint(
        "group/remove",
        "removeGroupMember",
        "RemoveGroupMember",
        "Remove a member from a group, or leave it",
        sharing.RemoveMember,
        sharing.remove_member,
        answer_types.Done,
        sharing.member_changed,
    ),
)
