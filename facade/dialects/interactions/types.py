"""Wire type of `POST /v1beta/interactions`, for validation and documentation.

Steps, contents and tools are checked by the translation, as they are unions that Google extends.

Source: ai.google.dev/gemini-api/docs/interactions, and the types of google-genai.
"""

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import ExtensionFields
from facade.dialects.field_types import MAX_MESSAGES, MAX_STOP_SEQUENCES, MAX_TOOLS, Name, Positive
from facade.dialects.validation import FewFields

_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

_Object = dict[str, Any]
_Text = Annotated[str, Field(min_length=1)]


@with_config(_OPEN)
class GenerationConfig(TypedDict):
    """Options of the answer."""

    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[Annotated[float, Field(ge=0, le=1)] | None]
    seed: NotRequired[Annotated[int, Field(ge=-(2**63), lt=2**63)] | None]
    max_output_tokens: NotRequired[Positive | None]
    stop_sequences: NotRequired[Annotated[list[_Text], Field(max_length=MAX_STOP_SEQUENCES)] | None]
    thinking_level: NotRequired[
        Annotated[str | None, Field(description="`minimal`, `low`, `medium`, `high` or `xhigh`.")]
    ]
    thinking_summaries: NotRequired[Annotated[str | None, Field(description="`auto` or `none`.")]]
    tool_choice: NotRequired[
        Annotated[
            str | _Object | None,
            Field(description="`auto`, `any`, `none` or `validated`; or `allowed_tools`."),
        ]
    ]


@with_config(_OPEN)
class SafetySetting(TypedDict):
    """What a model of Google's refuses to write."""

    type: Annotated[str, Field(description="The category, such as `hate_speech`.")]
    threshold: Annotated[str, Field(description="Such as `block_none`.")]


class InteractionBody(ExtensionFields):
    """The body of `POST /v1beta/interactions`."""

    model_config = _OPEN

    model: Name | None = Field(None, description="Model name, as listed by `GET /v1beta/models`.")
    input: (
        str
        | _Object
        | Annotated[list[_Object], Field(fail_fast=True, max_length=MAX_MESSAGES)]
        | None
    ) = Field(None, description="A text, a content, a list of contents, or a list of steps.")
    system_instruction: str | None = Field(None, description="Instructions.")
    previous_interaction_id: _Text | None = Field(
        None, description="Id of the stored interaction that this one continues."
    )
    store: bool | None = Field(
        None, description="Whether the interaction is stored, for its user (default: true)."
    )
    stream: bool | None = Field(None, description="Whether to stream the answer.")
    background: bool | None = Field(
        None, description="Whether to return at once and generate the answer in the background."
    )
    tools: Annotated[list[_Object], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None,
        description="`function`, `google_search`, `url_context`, `code_execution` or `mcp_server`.",
    )
    generation_config: GenerationConfig | None = Field(None, description="Options of the answer.")
    response_format: _Object | list[_Object] | None = Field(
        None, description='`{"type": "text", "mime_type": "application/json", "schema": …}`.'
    )
    response_mime_type: str | None = Field(
        None, description="`application/json`, if `response_format` is a JSON schema."
    )
    response_modalities: Annotated[list[str], Field(max_length=16)] | None = Field(
        None, description="`text` alone."
    )
    safety_settings: Annotated[list[SafetySetting], Field(max_length=64)] | None = Field(
        None, description="Passed on to Google's models."
    )
    cached_content: str | None = Field(
        None, description="A cache of the operator's account, where `pass_stateful` is set."
    )
    service_tier: str | None = Field(None, description="The provider's service tier.")
    labels: Annotated[dict[str, str], FewFields] | None = Field(
        None, description="Up to 16 notes, returned with the interaction."
    )
