"""Wire types of Google's `generateContent` and `countTokens`, for validation and documentation.

Fields have Google's names in `camelCase`; `spelling` renames those in `snake_case`, which Google
accepts too. Unknown fields are accepted and passed on to providers of this dialect.

Source: ai.google.dev/api/generate-content, /caching and /tokens.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, model_validator, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import ExtensionFields
from facade.dialects.field_types import (
    MAX_BLOCKS,
    MAX_MESSAGES,
    MAX_STOP_SEQUENCES,
    MAX_TOOLS,
    UINT32_MAX,
)
from facade.dialects.gemini.spelling import camel_case
from facade.dialects.validation import FewFields

# Types are built on first use: a process uses few of them.
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

_Text = Annotated[str, Field(min_length=1)]
_Object = dict[str, Any]
_Count = Annotated[int, Field(ge=0, le=UINT32_MAX)]
_Positive = Annotated[int, Field(ge=1, le=UINT32_MAX)]


@with_config(_OPEN)
class Blob(TypedDict):
    """A medium by value."""

    mimeType: Annotated[_Text, Field(description="MIME type, such as `image/png`.")]
    data: Annotated[_Text, Field(description="The content in base64.")]
    displayName: NotRequired[Annotated[str | None, Field(description="Name of the file.")]]


@with_config(_OPEN)
class FileData(TypedDict):
    """A medium by address."""

    fileUri: Annotated[
        _Text, Field(description="The `uri` of an uploaded file, or an http(s) URL.")
    ]
    mimeType: NotRequired[Annotated[str | None, Field(description="MIME type.")]]
    displayName: NotRequired[Annotated[str | None, Field(description="Name of the file.")]]


@with_config(_OPEN)
class FunctionCall(TypedDict):
    """A call of a function."""

    name: Annotated[_Text, Field(description="Name of the function.")]
    id: NotRequired[Annotated[str | None, Field(description="Id of the call.")]]
    args: NotRequired[Annotated[_Object | None, Field(description="The arguments.")]]


@with_config(_OPEN)
class FunctionResponse(TypedDict):
    """The result of a function."""

    name: Annotated[_Text, Field(description="Name of the function.")]
    id: NotRequired[
        Annotated[
            str | None,
            Field(description="Id of the call; the first call of the name without a result."),
        ]
    ]
    response: NotRequired[
        Annotated[
            _Object | None,
            Field(description="The result; `output` and `error` are its usual fields."),
        ]
    ]
    parts: NotRequired[
        Annotated[
            list["Part"] | None,
            Field(max_length=MAX_BLOCKS, description="Media of the result."),
        ]
    ]


@with_config(_OPEN)
class Part(TypedDict):
    """A part of a content, with one of the fields below.

    Parts with other fields, such as `executableCode`, are passed to providers of this dialect.
    """

    text: NotRequired[Annotated[str | None, Field(description="Text.")]]
    thought: NotRequired[
        Annotated[bool | None, Field(description="Whether the text is the model's thinking.")]
    ]
    thoughtSignature: NotRequired[
        Annotated[
            str | None,
            Field(description="State of the model's thinking, to be sent back unchanged."),
        ]
    ]
    inlineData: NotRequired[Annotated[Blob | None, Field(description="A medium by value.")]]
    fileData: NotRequired[Annotated[FileData | None, Field(description="A medium by address.")]]
    functionCall: NotRequired[
        Annotated[FunctionCall | None, Field(description="A call of a function by the model.")]
    ]
    functionResponse: NotRequired[
        Annotated[FunctionResponse | None, Field(description="The result of a function.")]
    ]


@with_config(_OPEN)
class Content(TypedDict):
    """A message."""

    role: NotRequired[
        Annotated[
            Literal["user", "model", "function"] | None,
            Field(description="`user` (default) or `model`; `function` is the same as `user`."),
        ]
    ]
    parts: NotRequired[
        Annotated[
            list[Part] | None,
            Field(fail_fast=True, max_length=MAX_BLOCKS, description="The parts, in order."),
        ]
    ]


@with_config(_OPEN)
class SystemInstruction(TypedDict):
    """Instructions that take precedence over the contents."""

    parts: NotRequired[
        Annotated[
            list[Part] | None,
            Field(fail_fast=True, max_length=MAX_BLOCKS, description="Texts."),
        ]
    ]


@with_config(_OPEN)
class FunctionDeclaration(TypedDict):
    """A function that the caller runs."""

    name: Annotated[_Text, Field(max_length=256, description="Name of the function.")]
    description: NotRequired[Annotated[str | None, Field(description="What it does.")]]
    parameters: NotRequired[
        Annotated[_Object | None, Field(description="The parameters, as a schema of OpenAPI 3.0.")]
    ]
    parametersJsonSchema: NotRequired[
        Annotated[
            _Object | None,
            Field(description="The parameters, as a JSON schema; not with `parameters`."),
        ]
    ]


@with_config(_OPEN)
class Tool(TypedDict):
    """Functions, or tools that the provider runs, such as `googleSearch`."""

    functionDeclarations: NotRequired[
        Annotated[
            list[FunctionDeclaration] | None,
            Field(fail_fast=True, max_length=MAX_TOOLS, description="Functions."),
        ]
    ]


@with_config(_OPEN)
class FunctionCallingConfig(TypedDict):
    """Whether and which functions the model calls."""

    mode: NotRequired[
        Annotated[
            str | None,
            Field(description="`AUTO`, `ANY`, `NONE` or `VALIDATED`."),
        ]
    ]
    allowedFunctionNames: NotRequired[
        Annotated[
            list[_Text] | None,
            Field(max_length=MAX_TOOLS, description="The functions that may be called."),
        ]
    ]


@with_config(_OPEN)
class ToolConfig(TypedDict):
    """Options of the tools."""

    functionCallingConfig: NotRequired[
        Annotated[FunctionCallingConfig | None, Field(description="Choice of functions.")]
    ]


@with_config(_OPEN)
class ThinkingConfig(TypedDict):
    """How much the model thinks."""

    includeThoughts: NotRequired[
        Annotated[bool | None, Field(description="Whether the answer has the thoughts.")]
    ]
    thinkingBudget: NotRequired[
        Annotated[
            Annotated[int, Field(ge=-1, le=UINT32_MAX)] | None,
            Field(description="Tokens to think with; 0: none, -1: as many as needed."),
        ]
    ]
    thinkingLevel: NotRequired[
        Annotated[str | None, Field(description="`MINIMAL`, `LOW`, `MEDIUM` or `HIGH`.")]
    ]


@with_config(_OPEN)
class GenerationConfig(TypedDict):
    """Options of the answer."""

    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    topP: NotRequired[Annotated[float, Field(ge=0, le=1)] | None]
    topK: NotRequired[Annotated[float, Field(ge=0, le=UINT32_MAX)] | None]
    maxOutputTokens: NotRequired[_Positive | None]
    stopSequences: NotRequired[
        Annotated[list[_Text], Field(fail_fast=True, max_length=MAX_STOP_SEQUENCES)] | None
    ]
    candidateCount: NotRequired[_Positive | None]
    seed: NotRequired[Annotated[int, Field(ge=-(2**63), lt=2**63)] | None]
    presencePenalty: NotRequired[Annotated[float, Field(ge=-2, le=2)] | None]
    frequencyPenalty: NotRequired[Annotated[float, Field(ge=-2, le=2)] | None]
    responseLogprobs: NotRequired[bool | None]
    logprobs: NotRequired[_Count | None]
    responseMimeType: NotRequired[
        Annotated[
            str | None,
            Field(description="`text/plain` (default), `application/json` or `text/x.enum`."),
        ]
    ]
    responseSchema: NotRequired[
        Annotated[_Object | None, Field(description="Schema of the answer, of OpenAPI 3.0.")]
    ]
    responseJsonSchema: NotRequired[
        Annotated[
            _Object | None,
            Field(description="JSON schema of the answer; not with `responseSchema`."),
        ]
    ]
    responseModalities: NotRequired[Annotated[list[str], Field(max_length=16)] | None]
    thinkingConfig: NotRequired[ThinkingConfig | None]


class Parameters(BaseModel):
    """Fields of a request, which a fallback step may override."""

    model_config = _OPEN

    contents: Annotated[list[Content] | None, Field(fail_fast=True, max_length=MAX_MESSAGES)] = (
        Field(None, description="The conversation, with the latest message last.")
    )
    systemInstruction: SystemInstruction | None = Field(None, description="Instructions.")
    tools: Annotated[list[Tool] | None, Field(fail_fast=True, max_length=MAX_TOOLS)] = Field(
        None, description="Tools that the model may call."
    )
    toolConfig: ToolConfig | None = Field(None, description="Options of the tools.")
    generationConfig: GenerationConfig | None = Field(None, description="Options of the answer.")

    _spelling = model_validator(mode="before")(camel_case)


class GenerateContentBody(ExtensionFields, Parameters):
    """The body of `generateContent` and `streamGenerateContent`."""

    model_config = _OPEN

    labels: Annotated[dict[str, Any] | None, FewFields] = Field(
        None, description="Labels of the request; `x-gateway-tags` are recorded with its usage."
    )


class CountTokensBody(BaseModel):
    """The body of `countTokens`: contents, or a whole request."""

    model_config = _OPEN

    contents: Annotated[list[Content] | None, Field(fail_fast=True, max_length=MAX_MESSAGES)] = (
        Field(None, description="The conversation.")
    )
    generateContentRequest: GenerateContentBody | None = Field(
        None, description="A whole request, in place of `contents`."
    )

    _spelling = model_validator(mode="before")(camel_case)
