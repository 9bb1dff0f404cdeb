"""Conversion of the media of a request for the models of its fallback steps."""

from collections.abc import Callable, Mapping, Sequence

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import HelperUsage
from services.inference.adaptation.rules import MediaCapabilities, conversion_for
from services.inference.adaptation.session import Session
from services.inference.learned.refusals import MEDIA
from services.inference.media import MediaRef
from services.inference.offload import mark, mark_large, offload
from services.inference.plans.plan import Step
from services.inference.providers.base import Provider
from services.inference.run.step_request import StepRequest, with_converted


class StepMedia:
    """Converts the media of one request, once for each step whose model does not read them.

    Args:
        media: the media that the caller sent.
        providers: the providers, by name.
        open_session: opens the session that converts media.
        is_remembered: whether the request uses memory, whose turns may hold media too.
    """

    def __init__(
        self,
        media: Sequence[MediaRef],
        providers: Mapping[str, Provider],
        open_session: Callable[[], Session],
        *,
        is_remembered: bool,
    ) -> None:
        self._media = media
        self._providers = providers
        self._open_session = open_session
        self._is_remembered = is_remembered
        self._session: Session | None = None  # once there is something to convert
        self._converted: dict[int, StepRequest] = {}  # by `id(step)`

    @property
    def helpers(self) -> Sequence[HelperUsage]:
        """The calls of helper models so far."""
        return () if self._session is None else self._session.used

    @property
    def guesses(self) -> bool:
        """Whether the output of helper models was guessed, because only tokens are counted."""
        return self._session is not None and self._session.guesses

    def converted(self, step: Step) -> StepRequest | None:
        """Return the request of a step with converted media; None if `convert` made none."""
        return self._converted.get(id(step))

    def may_convert(self, step: Step, refused_fields: frozenset[str]) -> bool:
        """Return whether media may have to be converted for a step.

        Args:
            step: the step.
            refused_fields: the fields that its model rejects, as named by `refusals`.
        """
        if step.parameters is not None or self._is_remembered:
            return True
        inputs = step.target.inputs
        for media_ref in self._media:
            media = media_ref.block.media
            kind = media.kind
            if (
                kind == conversation_pb2.MEDIA_KIND_DOCUMENT
                or media.WhichOneof("source") != "data"
                or (inputs is not None and kind not in inputs)
            ):
                return True
        return not refused_fields.isdisjoint(MEDIA)

    async def convert(
        self,
        step: Step,
        prepared: StepRequest,
        refused_fields: frozenset[str],
        *,
        in_place: bool,
    ) -> None:
        """Convert the media that a step's model does not read, for `converted`.

        Args:
            step: the step.
            prepared: its request.
            refused_fields: the fields that its model rejects, as named by `refusals`.
            in_place: whether `prepared` may be modified.

        Raises:
            GatewayError: media cannot be converted.
        """
        if not prepared.media:
            return
        multimodal = prepared.request.multimodal
        capabilities = self._capabilities(step, refused_fields)
        if all(
            conversion_for(media_ref.block.media, multimodal, capabilities) is None
            for media_ref in prepared.media
        ):
            return
        if self._session is None:
            self._session = self._open_session()
        adapted = await self._session.adapt(prepared.media, capabilities)
        if adapted is None:
            return
        # Rendered pages are many times larger than the file id that the caller sent: even
        # copying or measuring them takes time.
        if adapted.has_media:
            mark_large()
        rewritten = await offload(with_converted, prepared, adapted, in_place=in_place)
        self._converted[id(step)] = rewritten
        mark(rewritten.request)

    def _capabilities(self, step: Step, refused_fields: frozenset[str]) -> MediaCapabilities:
        target = step.target
        return MediaCapabilities(
            target.name,
            target.inputs,
            frozenset(MEDIA[name] for name in refused_fields & MEDIA.keys()),
            self._providers[target.adapter].fetches,
        )
