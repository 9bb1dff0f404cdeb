"""All endpoints of a facade, in the order of the OpenAPI document."""

from typing import Final

from facade.endpoint import EndpointSpec
from facade.routes import (
    admin,
    articles,
    batches,
    chat,
    compact,
    completions,
    console,
    console_invitations,
    console_oidc,
    console_sessions,
    conversations,
    embeddings,
    file_pages,
    files,
    forwarding,
    gemini,
    gemini_files,
    input_tokens,
    interactions,
    memory,
    message_batches,
    messages,
    models,
    operations,
    response_socket,
    responses,
    stored_chats,
    stored_responses,
    tus,
    uploads,
    usage,
    vector_stores,
)
from facade.routes.description import with_description

ENDPOINTS: Final[tuple[EndpointSpec, ...]] = with_description(
    [
        *chat.ENDPOINTS,
        *stored_chats.ENDPOINTS,
        *completions.ENDPOINTS,
        *embeddings.ENDPOINTS,
        *forwarding.ENDPOINTS,
        *responses.ENDPOINTS,
        *response_socket.ENDPOINTS,
        *input_tokens.ENDPOINTS,
        *compact.ENDPOINTS,
        *stored_responses.ENDPOINTS,
        *conversations.ENDPOINTS,
        *messages.ENDPOINTS,
        *batches.ENDPOINTS,
        *message_batches.ENDPOINTS,
        *gemini.ENDPOINTS,
        *interactions.ENDPOINTS,
        *models.ENDPOINTS,
        *files.ENDPOINTS,
        *file_pages.ENDPOINTS,
        *uploads.ENDPOINTS,
        *tus.ENDPOINTS,
        *gemini_files.ENDPOINTS,
        *vector_stores.ENDPOINTS,
        *usage.ENDPOINTS,
        *memory.ENDPOINTS,
        *articles.ENDPOINTS,
        *admin.ENDPOINTS,
        *console_sessions.ENDPOINTS,
        *console_invitations.ENDPOINTS,
        *console_oidc.ENDPOINTS,
        *console.ENDPOINTS,
        *operations.ENDPOINTS,
    ]
)
# Of the operators' own listener.
OPERATORS_ENDPOINTS: Final = operations.OPERATORS_ENDPOINTS
