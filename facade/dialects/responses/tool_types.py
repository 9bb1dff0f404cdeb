"""Wire types of a response's tools and tool choice; see `item_types`."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.field_types import MAX_TOOLS
from facade.dialects.responses.item_types import OPEN, Other, Text
from facade.dialects.validation import UNTYPED

Object = dict[str, Any]


@with_config(OPEN)
class Function(TypedDict):
    """A function that the model may call."""

    type: Literal["function"]
    name: Annotated[Text, Field(description="1 to 128 letters, digits, `_` and `-`.")]
    description: NotRequired[
        Annotated[str | None, Field(description="Description of the function, for the model.")]
    ]
    parameters: NotRequired[
        Annotated[Object | None, Field(description="JSON Schema of the arguments.")]
    ]
    strict: NotRequired[
        Annotated[
            bool | None, Field(description="Whether the arguments must match the schema exactly.")
        ]
    ]


@with_config(OPEN)
class CustomTool(TypedDict):
    """A tool that takes free text."""

    type: Literal["custom"]
    name: Annotated[Text, Field(description="1 to 128 letters, digits, `_` and `-`.")]


@with_config(OPEN)
class NamespaceTool(TypedDict):
    """Tools with a name in common, which calls of them repeat; an MCP server's, for example."""

    type: Literal["namespace"]
    name: Annotated[Text, Field(description="Name of the namespace.")]
    description: NotRequired[
        Annotated[str | None, Field(description="Description of the tools, for the model.")]
    ]
    tools: Annotated[
        list[Object],
        Field(
            fail_fast=True,
            max_length=MAX_TOOLS,
            description="The tools: functions and custom tools.",
        ),
    ]


@with_config(OPEN)
class ToolSearch(TypedDict):
    """A search for tools that are offered once they are found."""

    type: Literal["tool_search"]
    execution: NotRequired[
        Annotated[
            str | None,
            Field(description="`client`: the caller runs the search. `server`: OpenAI does."),
        ]
    ]
    description: NotRequired[
        Annotated[str | None, Field(description="With `client`: description, for the model.")]
    ]
    parameters: NotRequired[
        Annotated[Object | None, Field(description="With `client`: JSON Schema of the arguments.")]
    ]


@with_config(OPEN)
class WebSearch(TypedDict):
    """A web search; the gateway searches for models that cannot do it themselves."""

    type: Literal[
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    ]
    search_context_size: NotRequired[
        Annotated[str | None, Field(description="low, medium or high.")]
    ]
    user_location: NotRequired[
        Annotated[Object | None, Field(description="city, region, country and timezone.")]
    ]
    filters: NotRequired[
        Annotated[Object | None, Field(description="`allowed_domains`: a list of hosts.")]
    ]


@with_config(OPEN)
class FileSearch(TypedDict):
    """A search of files in vector stores; the gateway runs it if they are its own."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[
        list[Text],
        Field(fail_fast=True, max_length=MAX_TOOLS, description="The vector stores, up to 10."),
    ]
    filters: NotRequired[
        Annotated[Object | None, Field(description="A filter on attributes of files.")]
    ]
    max_num_results: NotRequired[
        Annotated[int | None, Field(description="1 to 50; 10 when absent.")]
    ]
    ranking_options: NotRequired[
        Annotated[Object | None, Field(description="`score_threshold` and `hybrid_search`.")]
    ]


_TOOLS = {
    "function": "#function",
    "custom": "#custom",
    "namespace": "#namespace",
    "tool_search": "#tool_search",
    "file_search": "#file_search",
    **dict.fromkeys(
        (
            *("web_search", "web_search_2025_08_26"),
            *("web_search_preview", "web_search_preview_2025_03_11"),
        ),
        "#web_search",
    ),
}


def _tool_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    return _TOOLS.get(kind, "#other") if isinstance(kind, str) else UNTYPED


Tool = Annotated[
    Annotated[Function, Tag("#function")]
    | Annotated[CustomTool, Tag("#custom")]
    | Annotated[NamespaceTool, Tag("#namespace")]
    | Annotated[ToolSearch, Tag("#tool_search")]
    | Annotated[WebSearch, Tag("#web_search")]
    | Annotated[FileSearch, Tag("#file_search")]
    | Annotated[Other, Tag("#other")],
    Discriminator(_tool_tag),
]


@with_config(OPEN)
class NamedToolChoice(TypedDict):
    """The choice of a certain tool, or of some tools."""

    type: Annotated[
        Text,
        Field(
            description="function, custom, web_search, file_search or allowed_tools. Other types "
            "are passed unchanged to providers of this dialect."
        ),
    ]
    name: NotRequired[
        Annotated[Text, Field(description="With `function` and `custom`: name of the tool.")]
    ]
    mode: NotRequired[
        Annotated[
            Literal["auto", "required"],
            Field(
                description="With `allowed_tools`. `required`: the model must call one of the "
                "tools. `auto`: the model decides."
            ),
        ]
    ]
    tools: NotRequired[
        Annotated[
            list[Object],
            Field(
                fail_fast=True,
                max_length=MAX_TOOLS,
                description="With `allowed_tools`: the tools, each given by its type and name.",
            ),
        ]
    ]
