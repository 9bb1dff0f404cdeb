"""Checks of requests against the request types of the official SDKs.

The SDKs describe requests as TypedDicts, for clients that write them. Here the TypedDicts become
rules for a server that receives requests. That takes three changes on every level, which are made
once: unknown keys are rejected, an `Iterable` becomes a list (pydantic would validate its items too
late to report them), and a union of objects is discriminated by `type` or `role`, so that an error
names one field instead of every alternative.

The SDKs are imported on first use, since that takes time.
"""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    ConfigDict,
    Discriminator,
    Tag,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict, is_typeddict


@dataclass(frozen=True, slots=True)
class Problem:
    """An invalid field: its path in the body, and what is expected."""

    path: tuple[str | int, ...]
    message: str


Body = Mapping[str, Any]
Check = Callable[[Body], Problem | None]


@dataclass(frozen=True, slots=True)
class Checks:
    """A check for each kind of request, which returns the first problem of a body, or None.

    The `beta_…` checks are for requests that name beta features, whose bodies may have more fields.
    `betas` are the names that the SDK lists.
    """

    chat: Check
    responses: Check
    count_input_tokens: Check
    embeddings: Check
    messages: Check
    count_tokens: Check
    beta_messages: Check
    beta_count_tokens: Check
    openai_batches: Check
    betas: frozenset[str]


def out_of_range(body: Body, key: str, low: float, high: float | None) -> Iterator[Problem]:
    """Yield a problem if a number is present and out of range."""
    value = body.get(key)
    if value is not None and (value < low or (high is not None and value > high)):
        takes = f"from {low} to {high}" if high is not None else f"at least {low}"
        yield Problem((key,), f"{value} is out of range: {takes}")


@cache
def load_checks() -> Checks:
    """Return the checks; the SDKs are imported, which takes seconds."""
    from anthropic.types import anthropic_beta_param as betas
    from anthropic.types import message_count_tokens_params as count_tokens
    from anthropic.types import message_create_params as messages
    from anthropic.types.beta import message_count_tokens_params as beta_count_tokens
    from anthropic.types.beta import message_create_params as beta_messages
    from openai.types import batch_create_params as openai_batches
    from openai.types import embedding_create_params as embeddings
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import input_token_count_params as count_input_tokens
    from openai.types.responses import response_create_params as responses

    return Checks(
        chat=_by_stream(
            check_of(chat.CompletionCreateParamsNonStreaming),
            check_of(chat.CompletionCreateParamsStreaming),
        ),
        responses=_by_stream(
            check_of(responses.ResponseCreateParamsNonStreaming),
            check_of(responses.ResponseCreateParamsStreaming),
        ),
        count_input_tokens=check_of(count_input_tokens.InputTokenCountParams),
        embeddings=check_of(embeddings.EmbeddingCreateParams),
        messages=_by_stream(
            check_of(messages.MessageCreateParamsNonStreaming, _SAMPLING),
            check_of(messages.MessageCreateParamsStreaming, _SAMPLING),
        ),
        count_tokens=check_of(count_tokens.MessageCountTokensParams),
        beta_messages=_by_stream(
            check_of(beta_messages.MessageCreateParamsNonStreaming, _SAMPLING),
            check_of(beta_messages.MessageCreateParamsStreaming, _SAMPLING),
        ),
        beta_count_tokens=check_of(beta_count_tokens.MessageCountTokensParams),
        openai_batches=check_of(openai_batches.BatchCreateParams),
        betas=frozenset(_values(betas.AnthropicBetaParam)),
    )


# Fields of the SDK's types that are sent as headers.
_HEADERS = frozenset({"betas"})

# Sampling parameters of the messages API, which the SDK's types have omitted since 2.0.
_SAMPLING = {
    "temperature": NotRequired[float],
    "top_p": NotRequired[float],
    "top_k": NotRequired[int],
}


# Fields that are required in the SDK's types of responses, but not by the server.
_LEFT_OUT: Mapping[str, frozenset[str]] = {
    "FunctionToolParam": frozenset({"parameters", "strict"}),
    "ResponseFunctionWebSearchParam": frozenset({"id"}),
    "ResponseInputImageParam": frozenset({"detail"}),
    "ResponseOutputMessageParam": frozenset({"id", "status", "type"}),
    "ResponseReasoningItemParam": frozenset({"id"}),
}


# Fields that the server accepts and the SDK's types lack; Codex sends them.
_TAKEN: Mapping[str, Mapping[str, Any]] = {
    "EasyInputMessageParam": {"id": NotRequired[str]},
    "Message": {"id": NotRequired[str]},
    "ResponseCustomToolCallParam": {"status": NotRequired[str]},
    "WebSearchToolParam": {"search_content_types": NotRequired[list[str]]},
    "ResponseCreateParamsNonStreaming": {"client_metadata": NotRequired[dict[str, str]]},
    "ResponseCreateParamsStreaming": {"client_metadata": NotRequired[dict[str, str]]},
}


def _by_stream(whole: Check, streamed: Check) -> Check:
    return lambda body: (streamed if body.get("stream") is True else whole)(body)


def check_of(typed: Any, more: Mapping[str, Any] | None = None) -> Check:
    """Return a check of bodies of a type, which is built on first use."""
    adapter = cache(lambda: TypeAdapter(_Converter().typed_dict(typed, more or {})))

    def check(body: Body) -> Problem | None:
        try:
            adapter().validate_python(body, strict=True)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            # Every alternative of a union reports a problem; the deepest one is of the intended
            # alternative.
            return max(
                (Problem(_path(item["loc"]), item["msg"]) for item in problems),
                key=lambda problem: len(problem.path),
            )
        return None

    return check


def _path(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return a location without the steps that name an alternative of a union."""
    return tuple(step for step in location if not str(step).startswith("<"))


class _Converter:
    """Converts the SDKs' types into types that validate received requests."""

    def __init__(self) -> None:
        self._done: dict[Any, Any] = {}

    def typed_dict(self, typed: Any, more: Mapping[str, Any]) -> Any:
        """Return a closed TypedDict of the converted fields and `more`."""
        if typed in self._done:
            return self._done[typed]
        left_out = _LEFT_OUT.get(typed.__name__, frozenset())
        required = typed.__required_keys__
        fields: dict[str, Any] = {**more, **_TAKEN.get(typed.__name__, {})}
        for name, hint in get_type_hints(typed, include_extras=True).items():
            if name in _HEADERS:
                continue
            wrapper = get_origin(hint)
            is_required = wrapper is Required or (wrapper is not NotRequired and name in required)
            is_required = is_required and name not in left_out
            inner = get_args(hint)[0] if wrapper in (Required, NotRequired) else hint
            converted = self.convert(inner)
            fields[name] = Required[converted] if is_required else NotRequired[converted]
        config = getattr(typed, "__pydantic_config__", None) or {}
        extra = config.get("extra", "forbid")
        made: Any = TypedDict(typed.__name__, fields)  # type: ignore[misc] # made at run time
        closed = with_config(ConfigDict(extra=extra))(made)
        self._done[typed] = closed
        return closed

    def convert(self, hint: Any) -> Any:
        """Convert one type."""
        if is_typeddict(hint):
            return self.typed_dict(hint, {})
        if hint is object:
            return Any
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.convert(arguments[0])
        if origin in (Union, types.UnionType):
            return self._union([item for item in arguments if _is_json(item)])
        if isinstance(origin, type) and issubclass(origin, Mapping):
            value = self.convert(arguments[1])
            return dict[str, value]  # type: ignore[valid-type] # a type made at run time
        if isinstance(origin, type) and issubclass(origin, Iterable):
            item = self.convert(arguments[0])
            return list[item]  # type: ignore[valid-type] # a type made at run time
        return hint

    def _union(self, members: list[Any]) -> Any:
        objects = [member for member in members if is_typeddict(member)]
        others = [self.convert(member) for member in members if not is_typeddict(member)]
        alternatives = [Annotated[other, Tag(f"<{number}>")] for number, other in enumerate(others)]
        if len(objects) > 1 and (discriminated := self._discriminated_union(objects)) is not None:
            alternatives.append(Annotated[discriminated, Tag("<object>")])
        else:
            alternatives += [
                Annotated[self.convert(item), Tag(f"<{item.__name__}>")] for item in objects
            ]
        return reduce(or_, alternatives) if len(alternatives) > 1 else alternatives[0]

    def _discriminated_union(self, objects: list[Any]) -> Any:
        """Return a union discriminated by a literal `type` or `role`, or None if there is none.

        If several objects have the same value, one of them must match.
        """
        for key in ("type", "role"):
            tags: dict[Any, list[Any]] = {}
            for item in objects:
                for value in _tags(item, key):
                    tags.setdefault(value, []).append(item)
            tagged = {id(item) for items in tags.values() for item in items}
            if len(tags) > 1 and tagged == set(map(id, objects)):
                return self._discriminated(key, tags)
        return None

    def _any_of(self, objects: Sequence[Any]) -> Any:
        members = [Annotated[self.convert(item), Tag(f"<{item.__name__}>")] for item in objects]
        return reduce(or_, members)

    def _discriminated(self, key: str, tags: Mapping[Any, Sequence[Any]]) -> Any:
        def tag(value: Any) -> str | None:
            kind = value.get(key) if isinstance(value, Mapping) else None
            is_known = isinstance(kind, str | None) and kind in tags
            return f"<{kind}>" if is_known else None

        members = [
            Annotated[self._any_of(items), Tag(f"<{value}>")] for value, items in tags.items()
        ]
        takes = ", ".join(repr(value) for value in tags if value is not None)
        return Annotated[
            reduce(or_, members),
            Discriminator(
                tag,
                custom_error_type="unknown_kind",
                custom_error_message=f"Input should be an object with {key!r} one of {takes}",
            ),
        ]


def _is_json(member: Any) -> bool:
    """Return whether a member of a union can be JSON, unlike models and files."""
    if is_typeddict(member) or not isinstance(member, type):
        return get_origin(member) is not Annotated and "IO" not in str(member)
    return member in (str, int, float, bool, dict, list, object, type(None))


def _tags(item: Any, key: str) -> list[Any]:
    """Return the values of an object's literal field, including None if it may be omitted."""
    literals = _literals(get_type_hints(item, include_extras=True).get(key))
    return [None, *literals] if key in _LEFT_OUT.get(item.__name__, ()) else literals


def _literals(hint: Any) -> list[Any]:
    """Return the values of a literal field, including None if it may be omitted."""
    if hint is None:
        return []
    if get_origin(hint) is Required:
        return _values(get_args(hint)[0])
    return [None, *_values(hint)]


def _values(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return [value for item in get_args(hint) for value in _values(item)]
    return []
