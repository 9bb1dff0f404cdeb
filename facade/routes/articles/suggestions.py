"""The endpoints of suggested edits."""

from facade.dialects.articles import answer_types, suggestions
from facade.routes.articles.call import rpc_endpoint

ENDPOINTS = (
    rpc_endpoint(
        "suggestion/list",
        "listSuggestions",
        "ListSuggestions",
        "List the suggested edits of a document, which any edit with `suggest` makes",
        suggestions.ListSuggestions,
        suggestions.list_suggestions,
        suggestions.Suggestions,
        suggestions.suggestions,
    ),
    rpc_endpoint(
        "suggestion/accept",
        "acceptSuggestion",
        "AcceptSuggestion",
        "Make a suggested edit",
        suggestions.AcceptSuggestion,
        suggestions.accept_suggestion,
        answer_types.Edited,
        suggestions.accepted,
    ),
    rpc_endpoint(
        "suggestion/reject",
        "rejectSuggestion",
        "RejectSuggestion",
        "Reject, or withdraw, a suggested edit",
        suggestions.RejectSuggestion,
        suggestions.reject_suggestion,
        answer_types.Done,
        suggestions.rejected,
    ),
)
