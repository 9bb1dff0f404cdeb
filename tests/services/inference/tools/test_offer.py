from dataclasses import replace

import pytest

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque, ToolUse
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice, WebTool
from services.common.errors import GatewayError
from services.inference.providers.base import Target
from services.inference.tools.offer import (
    NOTHING,
    Available,
    close_tools,
    may_run_tools,
    offer_tools,
    release_choice,
)

ALL = Available(searches=True, fetches=True)
PAGES = Available(searches=False, fetches=True)
ANTHROPIC, OPENAI = c.DIALECT_ANTHROPIC, c.DIALECT_OPENAI
SEARCH, FETCH = WebTool.KIND_SEARCH, WebTool.KIND_FETCH


def target(upstream: str = "m", window: int = 0) -> Target:
    return Target("fast", "p", upstream, context_window=window)


def typed(kind: WebTool.Kind.ValueType = SEARCH, **fields) -> Tool:
    name = "web_search" if kind == SEARCH else "web_fetch"
    extra = Opaque(dialect=ANTHROPIC, json=b"{}")
    return Tool(name=name, opaque=True, extra=extra, web=WebTool(kind=kind, **fields))


def names(request: GenerateRequest) -> list[str]:
    return [tool.name for tool in request.tools]


def called() -> Message:
    call = ToolUse(id="srvtoolu_gw1", name="web_search", input="{}")
    return Message(role=c.ROLE_ASSISTANT, blocks=[Block(server_tool_use=call)])


@pytest.mark.parametrize(
    ("available", "offered"),
    [(ALL, ["web_search", "web_fetch"]), (PAGES, ["web_fetch"]), (NOTHING, [])],
)
def test_what_is_there_is_offered(available, offered):
    request = GenerateRequest(use_built_in_tools=True)
    offer = offer_tools(request, OPENAI, target(), available)
    assert names(request) == list(offer.tools) == offered
    lacking = [name for name in ("web_search", "web_fetch") if name not in offered]
    assert offer.dropped == [f"use_built_in_tools.{name}" for name in lacking]
    assert not any(tool.opaque for tool in request.tools)


def test_a_tool_of_the_callers_keeps_its_name():
    request = GenerateRequest(use_built_in_tools=True, tools=[Tool(name="web_search")])
    offer = offer_tools(request, OPENAI, target(), ALL)
    assert names(request) == ["web_search", "web_fetch"]
    assert list(offer.tools) == ["web_fetch"]
    assert offer.dropped == ["use_built_in_tools.web_search"]
    assert not request.tools[0].description


def test_nothing_is_offered_where_no_tool_is_to_be_called():
    choice = ToolChoice(mode=ToolChoice.MODE_NONE)
    request = GenerateRequest(use_built_in_tools=True, tool_choice=choice)
    assert not offer_tools(request, OPENAI, target(), ALL).tools


def test_anthropics_tool_is_anthropics_to_run():
    request = GenerateRequest(tools=[typed()])
    assert not offer_tools(request, ANTHROPIC, target(), ALL).tools
    assert request.tools[0].opaque


def test_earlier_gateway_calls_keep_their_tools_offered():
    request = GenerateRequest(tools=[typed()], messages=[called()])
    assert list(offer_tools(request, ANTHROPIC, target(), ALL).tools) == ["web_search"]
    assert not request.tools[0].opaque


def test_anthropics_tool_is_served_for_others_with_its_bounds():
    tool = typed(max_uses=2, allowed_domains=["a.example"], foreign_fields=["strict"])
    tool.web.user_location = "Bern, CH"
    request = GenerateRequest(tools=[Tool(name="own"), tool])
    offer = offer_tools(request, OPENAI, target(), ALL)
    assert offer.tools["web_search"].max_uses == 2
    assert offer.tools["web_search"].allowed_domains == ["a.example"]
    assert offer.dropped == ["tools[1].extra.strict"]
    assert "Bern, CH" in request.tools[1].description
    assert not request.tools[1].HasField("extra")


@pytest.mark.parametrize(
    ("available", "tool", "words"),
    [(PAGES, typed(), "[tools.web_search]"), (NOTHING, typed(FETCH), "does not fetch web pages")],
)
def test_a_tool_that_nobody_has_is_refused_by_its_path(available, tool, words):
    with pytest.raises(GatewayError) as refused:
        offer_tools(GenerateRequest(tools=[tool]), OPENAI, target(), available)
    assert refused.value.reason == errors_pb2.REASON_UNSUPPORTED
    assert refused.value.param == "tools[0]"
    assert words in refused.value.message


def test_openais_options_become_a_tool():
    request = GenerateRequest(web_search=WebTool(kind=SEARCH, max_results=3))
    offer = offer_tools(request, ANTHROPIC, target(), ALL)
    assert offer.tools["web_search"].max_results == 3
    assert not request.HasField("web_search")
    assert names(request) == ["web_search"]


@pytest.mark.parametrize(
    "upstream", ["gpt-4o-search-preview", "gpt-5-search-api", "sonar-pro", "openai/x:online"]
)
def test_models_that_search_themselves_get_openais_options(upstream):
    request = GenerateRequest(web_search=WebTool(kind=SEARCH))
    assert not offer_tools(request, OPENAI, target(upstream), ALL).tools
    assert not request.tools


@pytest.mark.parametrize(("window", "most"), [(0, 0), (8_000, 1_000), (100, 256)])
def test_what_a_call_brings_fits_the_models_window(window, most):
    request = GenerateRequest(use_built_in_tools=True)
    offer = offer_tools(request, OPENAI, target(window=window), ALL)
    assert {tool.max_content_tokens for tool in offer.tools.values()} == {most}


@pytest.mark.parametrize(
    ("request_", "dialect", "called_before", "may"),
    [
        (GenerateRequest(), OPENAI, True, False),
        (GenerateRequest(tools=[Tool(name="own")]), OPENAI, False, False),
        (GenerateRequest(use_built_in_tools=True), ANTHROPIC, False, True),
        (GenerateRequest(tools=[typed()]), ANTHROPIC, False, False),
        (GenerateRequest(tools=[typed()]), ANTHROPIC, True, True),
        (GenerateRequest(tools=[typed()]), OPENAI, False, True),
        (GenerateRequest(web_search=WebTool(kind=SEARCH)), OPENAI, False, True),
    ],
)
def test_only_a_request_that_asks_for_tools_is_asked_in_rounds(
    request_, dialect, called_before, may
):
    targets = [(dialect, target())]
    assert may_run_tools(request_, targets, ALL, has_called=called_before) is may


@pytest.mark.parametrize(
    ("native_tools", "available", "offered"),
    [(None, NOTHING, []), (None, ALL, ["web_search"]), (True, ALL, [])],
)
def test_a_provider_may_have_tools_of_its_own(native_tools, available, offered):
    request = GenerateRequest(tools=[typed()])
    own = replace(target(), native_tools=native_tools)
    assert list(offer_tools(request, c.DIALECT_GEMINI, own, available).tools) == offered
    assert request.tools[0].opaque is not bool(offered)


def test_a_step_may_ask_for_tools():
    request = GenerateRequest()
    request.fallback_config.steps.add().parameters.tools.append(typed())
    assert may_run_tools(request, [(OPENAI, target())], ALL, has_called=False)


@pytest.mark.parametrize(
    ("mode", "name", "after"),
    [
        (ToolChoice.MODE_ANY, "", ToolChoice.MODE_AUTO),
        (ToolChoice.MODE_TOOL, "web_search", ToolChoice.MODE_AUTO),
        (ToolChoice.MODE_TOOL, "own", ToolChoice.MODE_TOOL),
        (ToolChoice.MODE_NONE, "", ToolChoice.MODE_NONE),
    ],
)
def test_a_forced_call_is_forced_once(mode, name, after):
    request = GenerateRequest(tool_choice=ToolChoice(mode=mode, name=name))
    release_choice(request, {"web_search": WebTool()})
    assert request.tool_choice.mode == after


def test_the_callers_tools_are_left_at_the_end():
    request = GenerateRequest(use_built_in_tools=True, tools=[Tool(name="own")])
    offer = offer_tools(request, OPENAI, target(), ALL)
    close_tools(request, offer.tools)
    assert names(request) == ["own"]
    assert request.tool_choice.mode == ToolChoice.MODE_UNSPECIFIED


@pytest.mark.parametrize(
    ("available", "choice", "param"),
    [
        (PAGES, ToolChoice(mode=ToolChoice.MODE_TOOL, name="web_search"), "tool_choice.name"),
        (NOTHING, ToolChoice(mode=ToolChoice.MODE_ANY), "tool_choice"),
    ],
)
def test_a_tool_that_is_not_there_cannot_be_chosen(available, choice, param):
    request = GenerateRequest(use_built_in_tools=True, tool_choice=choice)
    with pytest.raises(GatewayError) as refused:
        offer_tools(request, OPENAI, target(), available)
    assert refused.value.param == param
