"""Classification of the fields of the providers' own dialects, by name. Pure.

All callers share the operator's account at a provider. A field that may refer to something stored
there is refused, unless the provider has `pass_stateful`; see `stored_references`. The fields of
the newest SDKs are classified here by tables. A field that no table has is classified by the words
of its name, so that a provider's newest fields are refused before anybody has heard of them.

A test holds the tables against the parameter types of the SDKs, so that an update of these cannot
add a field that nobody has classified (`tests/services/inference/request/test_native_fields.py`).
"""

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final


class FieldClass(Enum):
    """What a field may hold.

    Attributes:
        CONTENT: the caller's own content, in any form; it is not searched.
        TEXT: a text that is the caller's own or has no meaning to the provider. In place of the
            text there may be an object or a list, which is searched.
        ITEM_ID: an id that refers to something stored if nothing else does; see
            `stored_references`.
        ADDRESS: the address of a medium or server, which may be one of the provider's own.
        STORED: it refers to something that is stored at the provider.
        STORED_BY_NAME: a text in it does; an object is searched.
        BY_VALUE: a text in it does if it looks like an id of a provider. Fields that no table has
            are of this class, unless the words of their names say more.
    """

    CONTENT = auto()
    TEXT = auto()
    ITEM_ID = auto()
    ADDRESS = auto()
    STORED = auto()
    STORED_BY_NAME = auto()
    BY_VALUE = auto()


# Texts, arguments and results of the caller's tools, schemas, and records of the caller.
CONTENT_FIELDS: Final = frozenset(
    {
        *("arguments", "parameters", "input_schema", "output_schema", "input_examples", "schema"),
        *("guided_json", "env", "headers", "attributes", "logit_bias", "filters"),
        *("response_schema", "response_json_schema", "parameters_json_schema", "response"),
        *("args", "labels"),
        "chat_template_kwargs",
        # A citation names its source, and gives no access to it.
        *("annotations", "citations", "logprobs"),
    }
)
TEXT_FIELDS: Final = frozenset(
    {
        *("text", "content", "input", "output", "result", "thinking", "reasoning", "refusal"),
        *("reasoning_content", "reasoning_text", "instructions", "system", "system_prompt"),
        *("description", "title", "document_title", "context", "code", "diff", "logs", "stdout"),
        *("stderr", "lines", "error", "error_message", "message", "reason", "stop_reason", "value"),
        *("query", "queries", "pattern", "keys", "key", "command", "commands", "path", "param"),
        *("working_directory", "definition", "grammar", "server_description", "cited_text"),
        *("revised_prompt", "page_age", "retrieved_at", "categories", "filename", "name", "names"),
        *("type", "role", "status", "object", "format", "mode", "size", "version", "namespace"),
        *("tool_name", "tool_names", "toolset_name", "server_name", "server_label", "user"),
        *("mcp_server_name", "allowed_tools", "exclude_tools", "clear_tool_inputs", "betas"),
        *("city", "region", "country", "timezone", "domain", "allowed_domains", "blocked_domains"),
        *("inference_geo", "trigger", "token", "stop", "stop_sequences", "prompt_mode"),
        # Names of models, which `named_models` checks.
        *("model", "models", "to", "from"),
        # Media and encrypted content, by value. An encrypted text can be read by its provider
        # alone, which wrote it for the request that the caller continues.
        *("data", "file_data", "encrypted_content", "encrypted_index", "encrypted_stdout"),
        *("signature", "fingerprint", "thought_signature"),
        # The caller's own credentials at somebody else's server.
        *("authorization", "authorization_token"),
        # Names that the caller chose, for the provider's prompt cache and abuse detection.
        *("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user_id"),
        *("end_user_id", "request_id", "trace_id", "continuation_id"),
        # Ids that are unique in one request, or of one of its clients.
        *("call_id", "caller_id", "tool_call_id", "tool_use_id", "tool_id", "tab_id"),
        *("download_id", "approval_request_id", "connector_id", "tool_reference"),
        *("tool_references", "prompt_cache_options", "prompt_cache_breakpoint"),
        # Of completions, images and recordings.
        *("suffix", "language", "languages", "keywords", "known_speaker_names"),
        "chunking_strategy",
    }
)
ADDRESS_FIELDS: Final = frozenset(
    {"url", "image_url", "file_url", "video_url", "audio_url", "server_url", "file_uri"}
)
STORED_FIELDS: Final = frozenset(
    {
        *("conversation", "prompt", "thread", "session", "store"),
        *("data_sources", "mcp_servers", "cached_content"),
        *("fallback_credit_token", "billing_policy"),
        *("file_id", "file_ids", "container_id", "vector_store_ids", "skill_id", "tunnel_id"),
        *("memory_store_id", "assistant_id", "thread_id", "user_profile_id", "workspace_id"),
        *("previous_response_id", "previous_message_id", "comparison_response_id"),
    }
)
STORED_BY_NAME_FIELDS: Final = frozenset({"container"})
BY_VALUE_FIELDS: Final = frozenset(
    {"voice", "file", "source", "mask", "markup", "known_speaker_references"}
)
# Words of a name that make a field of no table one that refers to something stored.
_IDENTIFYING_WORDS: Final = frozenset(
    (
        *("id", "ids", "uuid", "uuids", "guid", "guids", "ref", "refs", "arn", "arns"),
        *("reference", "references", "handle", "handles"),
    )
)
_STORED_WORDS: Final = frozenset(
    (
        *("previous", "store", "stores", "stored", "container", "containers", "thread", "threads"),
        *("conversation", "conversations", "session", "sessions", "prompt", "prompts"),
        *("workspace", "workspaces", "profile", "profiles", "organization", "project", "account"),
        *("tenant", "credential", "credentials", "vault", "vaults", "tunnel", "cached", "billing"),
        *("assistant", "assistants"),
    )
)
_ITEM_ID: Final = "id"
_TOKEN: Final = "token"
_METADATA: Final = "metadata"
_MAX_NAME: Final = 64
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(name: str) -> str:
    """Return a name in lower case with underscores: servers take `fileId` for `file_id`."""
    return _CAMEL.sub("_", name).replace("-", "_").strip("_").casefold()


def classify(name: str) -> FieldClass:
    """Return the class of a field by its name, in any case."""
    # No provider knows longer names, and the cache is to be small.
    return FieldClass.BY_VALUE if len(name) > _MAX_NAME else _classify(name)


@lru_cache(maxsize=2_048)
def _classify(name: str) -> FieldClass:
    name = snake_case(name)
    if name == _ITEM_ID:
        return FieldClass.ITEM_ID
    words = set(name.split("_"))
    if name in CONTENT_FIELDS or _METADATA in words:
        return FieldClass.CONTENT
    if name in TEXT_FIELDS:
        return FieldClass.TEXT
    if name in ADDRESS_FIELDS:
        return FieldClass.ADDRESS
    if name in BY_VALUE_FIELDS:
        return FieldClass.BY_VALUE
    if name in STORED_FIELDS:
        return FieldClass.STORED
    if name in STORED_BY_NAME_FIELDS:
        return FieldClass.STORED_BY_NAME
    if not words.isdisjoint(_STORED_WORDS) or identifies(name):
        return FieldClass.STORED
    return FieldClass.BY_VALUE


def identifies(name: str) -> bool:
    """Return whether a name is one of ids, other than those of tokens."""
    words = set(snake_case(name).split("_"))
    return not words.isdisjoint(_IDENTIFYING_WORDS) and _TOKEN not in words
