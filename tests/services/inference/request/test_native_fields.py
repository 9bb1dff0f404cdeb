"""The classification of fields, held against the parameter types of the newest SDKs.

If a test fails after an update of an SDK, the printed fields are new. Each is added to a table of
`services.inference.request.native_fields` by what it may hold; an object or a list whose own
members are classified is added to `OBJECTS`. A field that names a model that is called is added to
the places in `services.inference.request.further_models`.
"""

from typing import Any

from anthropic.types.beta.message_count_tokens_params import (
    MessageCountTokensParams as BetaCountTokens,
)
from anthropic.types.beta.message_create_params import (
    MessageCreateParamsNonStreaming as BetaMessages,
)
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Messages
from openai.types.audio.speech_create_params import SpeechCreateParams
from openai.types.audio.transcription_create_params import TranscriptionCreateParamsStreaming
from openai.types.audio.translation_create_params import TranslationCreateParams
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.completion_create_params import (
    CompletionCreateParamsStreaming as LegacyCompletion,
)
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.image_create_variation_params import ImageCreateVariationParams
from openai.types.image_edit_params import ImageEditParamsStreaming
from openai.types.image_generate_params import ImageGenerateParamsStreaming
from openai.types.moderation_create_params import ModerationCreateParams
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from services.inference.request.further_models import HISTORY, FurtherModel, is_model_field
from services.inference.request.native_fields import (
    ADDRESS_FIELDS,
    BY_VALUE_FIELDS,
    CONTENT_FIELDS,
    STORED_BY_NAME_FIELDS,
    STORED_FIELDS,
    TEXT_FIELDS,
    FieldClass,
    classify,
)
from tests.grid import each_row
from tests.surface.sdk_types import fields_of, is_scalar

# Parameters of the endpoints that the gateway serves.
ENDPOINTS = (
    *(CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming, EmbeddingCreateParams),
    *(ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming),
    *(Messages, MessageCountTokensParams, BetaMessages, BetaCountTokens),
    *(SpeechCreateParams, TranscriptionCreateParamsStreaming, TranslationCreateParams),
    *(ImageGenerateParamsStreaming, ImageEditParamsStreaming, ImageCreateVariationParams),
    *(ModerationCreateParams, LegacyCompletion),
)
TABLES = (
    *(CONTENT_FIELDS, TEXT_FIELDS, ADDRESS_FIELDS, BY_VALUE_FIELDS),
    *(STORED_FIELDS, STORED_BY_NAME_FIELDS, {"id"}),
)
# Objects and lists of the caller's request, whose members are classified.
OBJECTS = frozenset(
    {
        *("access_programs", "acknowledged_safety_checks", "action", "actions", "always"),
        *(
            "approximate",
            "audio",
            "background_options",
            "block_binding",
            "cache_control",
            "caching",
            "caller",
        ),
        *("clear_at_least", "client_tool_results", "compaction", "configs", "context_management"),
        *("cursor_position", "custom", "default_config", "diagnostics", "domain_secrets", "edits"),
        *("environment", "fallbacks", "function", "function_call", "functions", "hybrid_search"),
        *("image", "input_audio", "input_image_mask", "json_schema", "keep", "messages"),
        *("moderation", "moderation_details", "network_policy", "never", "operation", "outcome"),
        *("output_config", "outputs", "pending_safety_checks", "policy", "prediction"),
        *("ranking_options", "require_approval", "response_format", "results"),
        *("server_tool_results", "skills", "sources", "state_changes", "stream_options", "summary"),
        *("svg", "svg_usage", "tabs", "task_budget", "tool", "tool_calls", "tool_changes"),
        *("tool_choice", "tools", "transformations", "url_sources", "user_input"),
        *("user_location", "web_search_options"),
    }
)
# Objects with one member for each tool of a toolset, which has switches and numbers.
TOOLSET_CONFIGS = "ToolsetConfigsParam"


def is_searched(name: str) -> bool:
    return classify(name) not in (FieldClass.CONTENT, FieldClass.STORED)


@each_row("endpoint", ENDPOINTS)
def test_every_field_of_the_sdks_is_classified(endpoint: Any) -> None:
    unknown = {
        f"{field.names} ({field.holder.__name__})"
        for field in fields_of(endpoint, enters=is_searched)
        if not any(field.name in table for table in TABLES)
        and field.name != "metadata"
        and not all(map(is_scalar, field.values))
        and field.name not in OBJECTS
        and not field.holder.__name__.endswith(TOOLSET_CONFIGS)
    }
    assert unknown == set()


@each_row("endpoint", ENDPOINTS)
def test_every_place_of_a_model_in_the_sdks_is_known(endpoint: Any) -> None:
    def enters(name: str) -> bool:
        return name not in HISTORY and classify(name) is not FieldClass.CONTENT

    unknown = {
        field.names
        for field in fields_of(endpoint, enters=enters)
        if is_model_field(field.name) and not all(map(is_scalar, field.values))
        # The request's own model, and the record of a fallback.
        if field.names != "model" and field.holder.__name__ != "BetaFallbackInfoParam"
        # A list of objects that name models, by the rule for these.
        if not field.members
        if not FurtherModel(path_in_request(field.names), "m").is_known
    }
    assert unknown == set()


def path_in_request(path: str) -> str:
    """Return the canonical path of a path of names, of which lists have no index."""
    return path if path.startswith("tools.") else f"extra.{path}".replace("backs.", "backs[0].")


def test_the_tables_do_not_overlap() -> None:
    names = [name for table in TABLES for name in table]
    assert len(names) == len(set(names))


@each_row(
    ("name", "expected"),
    [
        ("brand_new_id", FieldClass.STORED),
        ("brandNewIds", FieldClass.STORED),
        ("Previous-Answer", FieldClass.STORED),
        ("file_search_store_names", FieldClass.STORED),
        ("memoryStore", FieldClass.STORED),
        ("FILE_ID", FieldClass.STORED),
        ("toolUseId", FieldClass.TEXT),
        ("client_metadata", FieldClass.CONTENT),
        ("stop_token_ids", FieldClass.BY_VALUE),
        ("identity", FieldClass.BY_VALUE),
        ("brand_new", FieldClass.BY_VALUE),
        ("brand_new_id" * 100, FieldClass.BY_VALUE),
    ],
)
def test_new_fields_are_classified_by_their_words(name: str, expected: FieldClass) -> None:
    assert classify(name) is expected
