"""A request as adapted to the model of one step, before tools of the gateway are added."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig
from services.inference.adaptation.rewriting import found_after, replace_media
from services.inference.adaptation.rules import Conversion
from services.inference.adaptation.session import Adapted
from services.inference.files import texts_as_blocks
from services.inference.media import MediaRef, find_media
from services.inference.memory.conversation import Conversation
from services.inference.plans.plan import Step
from services.inference.providers.base import Provider
from services.inference.request.request_changes import clamped, copied, merged


class StepRequest(NamedTuple):
    """The request as adapted to one step's model, and what was dropped from it.

    Attributes:
        request: the request.
        dropped: paths of dropped fields.
        left_out: number of remembered turns that were left out.
        media: the media in the request.
        adapted: converted media, as in `RouteInfo.adapted`.
    """

    request: GenerateRequest
    dropped: Sequence[str] = ()
    left_out: int = 0
    media: Sequence[MediaRef] = ()
    adapted: Sequence[str] = ()


def prepare_for(
    step: Step,
    sent: GenerateRequest,
    media: Sequence[MediaRef],
    conversation: Conversation | None,
    providers: Mapping[str, Provider],
    *,
    is_only_step: bool,
) -> StepRequest:
    """Return a request as adapted to a step's model, before media are converted.

    Args:
        step: the step.
        sent: the request; it is modified only if the plan has no other step.
        media: the media of the request.
        conversation: the stored and the sent conversation; None without memory.
        providers: the providers, by name.
        is_only_step: whether the plan has no other step.
    """
    request = sent
    if step.parameters is not None:
        request = merged(request, step.parameters)
    request, dropped = clamped(request, step.target.max_output_tokens)
    left_out = 0
    if conversation is not None:
        request, media, left_out = conversation.view_for(request, step.target)
        if conversation.lacks_thinking and _wants_thinking(request, providers[step.target.adapter]):
            request.ClearField("thinking")
            dropped = [*dropped, "thinking"]
    elif request is not sent:
        media = _media_of(request, step)
    elif media and not is_only_step and not _reads_documents(step):
        # A copy: text files become text blocks for this model; the next may read documents.
        request = copied(request)
        media = find_media(request)
    if not media:
        return StepRequest(request, dropped, left_out)
    media_left, texts = texts_as_blocks(media, step.target, request.multimodal)
    adapted = [f"{path}:{Conversion.TEXT.value}" for path in texts]
    return StepRequest(request, dropped, left_out, media_left, adapted)


def with_converted(prepared: StepRequest, adapted: Adapted, *, in_place: bool) -> StepRequest:
    """Return a prepared request with converted media.

    Args:
        prepared: the prepared request.
        adapted: the converted media.
        in_place: whether the request may be modified.
    """
    request = prepared.request
    if not in_place:
        request = copied(request)
    replace_media(request.messages, adapted.replacements)
    return prepared._replace(
        request=request,
        dropped=[*prepared.dropped, *dict.fromkeys(adapted.dropped)],
        media=found_after(request.messages, prepared.media, adapted.replacements),
        adapted=[*prepared.adapted, *adapted.entries],
    )


def with_output_bound(prepared: StepRequest, bound: int) -> StepRequest:
    """Return a prepared request whose `max_tokens` is at most what its model accepts."""
    request, dropped = clamped(prepared.request, bound)
    if request is prepared.request:
        return prepared
    dropped = [*prepared.dropped, "max_tokens", *dropped]
    return prepared._replace(request=request, dropped=[*dict.fromkeys(dropped)])


def _wants_thinking(request: GenerateRequest, provider: Provider) -> bool:
    """Return whether a provider rejects tool calls without the thinking that led to them."""
    thinks = request.thinking.mode in (
        ThinkingConfig.MODE_ENABLED,
        ThinkingConfig.MODE_ADAPTIVE,
    )
    return thinks and provider.signs_thinking


def _media_of(request: GenerateRequest, step: Step) -> list[MediaRef]:
    """Return the media of a step's own request, with paths in the caller's JSON."""
    media = find_media(request)
    if step.parameters is None or not step.parameters.messages:
        return media
    path = f"{step.path}.parameters."
    return [replace(one, path=path + one.path) for one in media]


def _reads_documents(step: Step) -> bool:
    return conversation_pb2.MEDIA_KIND_DOCUMENT in (step.target.inputs or ())
