"""The conversions of one request, shared by the steps of its plan."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, HelperUsage, Media
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Multimodal
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge, is_over_budget
from services.inference.adaptation import wording
from services.inference.adaptation.conversions import Conversions
from services.inference.adaptation.errors import at_part, of_part
from services.inference.adaptation.helpers import Generate, Helpers
from services.inference.adaptation.media_types import kind_of, sniffed
from services.inference.adaptation.rules import (
    DEFAULT_MAX_IMAGES,
    Conversion,
    MediaCapabilities,
    conversion_for,
    may_be_text,
)
from services.inference.adaptation.single_flight import SingleFlight, all_of
from services.inference.media import AdaptationError, MediaRef
from services.inference.metrics import InferenceMetrics
from services.inference.routes import Routes
from services.inference.stored_files import CONTENT_COST, StoredFiles, is_stored
from services.inference.usage.metering import Metering
from services.media.conversion.cache import Cache
from services.media.conversion.converter import Converter
from services.media.fetching.fetched import Fetches

# Maximum size of one fetched medium, in bytes.
_MAX_FETCHED = 20 << 20
_AT_ONCE = 4  # maximum fetches per request
_IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
_PREFIX = "messages[].blocks[].extra."

Admit = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MediaAdaptation:
    """The media conversion service, shared by all requests.

    Attributes:
        converter: runs the conversions, in worker processes.
        fetches: fetches media by URL.
        cache: stores results.
        metrics: counts conversions.
        metering: records the usage of helper models.
    """

    converter: Converter
    fetches: Fetches
    cache: Cache
    metrics: InferenceMetrics
    metering: Metering

    def session(
        self,
        multimodal: Multimodal,
        routes: Routes,
        generate: Generate,
        max_bytes: int,
        charge: Charge,
        stored: StoredFiles,
        *,
        counts: bool = False,
        admit: Admit | None = None,
    ) -> "Session":
        """Return the conversion session of one request.

        Args:
            multimodal: the request's conversion settings.
            routes: resolves helper models.
            generate: runs a request to a helper model.
            max_bytes: total size of all fetched media.
            charge: the bytes that the request holds; those of loaded media are added.
            stored: the files that are loaded if they are converted.
            counts: whether tokens are only counted; see `Conversions`.
            admit: awaited before media are converted; may raise GatewayError.
        """
        return Session(
            self,
            multimodal,
            routes,
            generate,
            max_bytes,
            charge,
            stored,
            counts=counts,
            admit=admit,
        )


@dataclass(slots=True)
class Adapted:
    """The replacements of a request's media.

    Attributes:
        replacements: blocks, by the index of the medium.
        entries: the entries of `RouteInfo.adapted`.
        dropped: paths of fields that were dropped from converted parts.
    """

    replacements: dict[int, Sequence[Block]] = field(default_factory=dict)
    entries: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    @property
    def has_media(self) -> bool:
        """Whether the replacements contain media, such as pictures of pages."""
        return any(block.HasField("media") for put in self.replacements.values() for block in put)


class _Job(NamedTuple):
    """One medium to convert: its position, its number within its kind, and the conversion."""

    place: int
    media_ref: MediaRef
    number: int
    conversion: Conversion


class Session:
    """The conversions of one request.

    Attributes:
        helpers: the helper models and their usage.
    """

    def __init__(
        self,
        adaptation: MediaAdaptation,
        multimodal: Multimodal,
        routes: Routes,
        generate: Generate,
        max_bytes: int,
        charge: Charge,
        stored: StoredFiles,
        *,
        counts: bool,
        admit: Admit | None,
    ) -> None:
        self._admit = admit
        self._metrics = adaptation.metrics
        self._fetches = adaptation.fetches
        self._multimodal = multimodal
        self.helpers = Helpers(routes, generate, adaptation.metrics, adaptation.metering)
        self._conversions = Conversions(
            adaptation.converter,
            adaptation.cache,
            self.helpers,
            multimodal,
            charge,
            counts=counts,
        )
        self._charge = charge
        self._stored = stored
        self._loaded = SingleFlight()
        self._fetching = asyncio.Semaphore(_AT_ONCE)
        self._left = max_bytes

    @property
    def used(self) -> Sequence[HelperUsage]:
        """The helper model calls so far."""
        return self.helpers.used

    @property
    def guesses(self) -> bool:
        """Whether placeholder text stands for a helper model's description."""
        return self._conversions.guesses

    async def adapt(
        self, media: Sequence[MediaRef], capabilities: MediaCapabilities
    ) -> Adapted | None:
        """Convert the media that a target cannot read; return None if it reads all of them.

        Raises:
            AdaptationError: a medium cannot be converted.
            GatewayError: as `admit`.
        """
        jobs = self._jobs(media, capabilities)
        if not jobs:
            return None
        if self._admit is not None:
            await self._admit()
        adapted = Adapted()
        done = await all_of([self._done(job, capabilities) for job in jobs])
        for job, (conversion, blocks) in zip(jobs, done, strict=True):
            self._put(adapted, job, conversion, blocks)
        return adapted

    def _jobs(self, media: Sequence[MediaRef], capabilities: MediaCapabilities) -> list[_Job]:
        numbers: dict[int, int] = {}
        jobs: list[_Job] = []
        for place, media_ref in enumerate(media):
            kind = media_ref.block.media.kind
            numbers[kind] = numbers.get(kind, 0) + 1
            conversion = conversion_for(media_ref.block.media, self._multimodal, capabilities)
            if conversion is not None:
                jobs.append(_Job(place, media_ref, numbers[kind], conversion))
        return self._within_bounds(jobs, capabilities)

    def _within_bounds(self, jobs: Sequence[_Job], capabilities: MediaCapabilities) -> list[_Job]:
        """Limit the number of images to be described.

        Too many images in the caller's request are an error. Of stored images the newest are
        described, and the others are replaced by their cached descriptions.
        """
        if capabilities.reads(_IMAGE):
            return list(jobs)
        image = self._multimodal.image
        most = image.max_images if image.HasField("max_images") else DEFAULT_MAX_IMAGES
        images = [
            job
            for job in jobs
            if job.media_ref.block.media.kind == _IMAGE and job.conversion != Conversion.RECALL
        ]
        own = [job.media_ref for job in images if not job.media_ref.is_remembered]
        if len(own) > most:
            raise of_part(
                own[most].path,
                errors_pb2.REASON_INVALID_REQUEST,
                f"{capabilities.name} cannot read images, and {len(own)} images would have to be "
                f"described for it; multimodal.image.max_images is {most}",
            )
        remembered = [job.place for job in images if job.media_ref.is_remembered]
        older = frozenset(remembered[: max(0, len(images) - most)])
        return [
            job._replace(conversion=Conversion.RECALL) if job.place in older else job
            for job in jobs
        ]

    async def _done(
        self, job: _Job, capabilities: MediaCapabilities
    ) -> tuple[Conversion, list[Block]]:
        """Return the conversion that was applied to a medium, and its blocks."""
        media_ref, conversion = job.media_ref, job.conversion
        try:
            media = media_ref.block.media
            if media.HasField("url") and conversion != Conversion.RECALL:
                media = await self._at_address(media, media_ref.path)
                decided = conversion_for(media, self._multimodal, capabilities)
                if decided is None:
                    return Conversion.INLINE, [Block(media=media)]
                conversion = decided
            elif is_stored(media):
                media = await self._from_store(media, media_ref.path)
            label = wording.MediumLabel(media, job.number)
            try:
                blocks = await self._conversions.blocks(
                    conversion, media, label, media_ref.path, capabilities
                )
            except AdaptationError as error:
                if (
                    conversion != Conversion.PAGES
                    or not may_be_text(media, self._multimodal.pdf)
                    or is_over_budget(error)
                ):
                    raise
                conversion = Conversion.TEXT
                blocks = await self._conversions.blocks(
                    conversion, media, label, media_ref.path, capabilities
                )
        except GatewayError as error:
            self._count(conversion, "failed")
            if not media_ref.is_remembered or is_over_budget(error):
                raise
            blocks = []  # stored media never fail a request
        if not blocks:
            return Conversion.INLINE, [Block(text=wording.gone(media_ref.block.media))]
        self._count(conversion, "made")
        return conversion, blocks

    async def _from_store(self, media: Media, path: str) -> Media:
        """Return a medium whose content is in the file store, with its content."""
        try:
            content = await self._loaded.get(
                media.file_id, lambda: self._stored.load(media.file_id)
            )
        except GatewayError as error:
            raise at_part(path, error) from error
        return Media(
            kind=media.kind,
            data=content,
            mime_type=media.mime_type,
            name=media.name,
            detail=media.detail,
        )

    async def _at_address(self, media: Media, path: str) -> Media:
        """Return a medium with its content, fetched if it was given by URL."""
        url = media.url
        try:
            fetched = await self._loaded.get(url, lambda: self._fetch(url))
        except AdaptationError:
            raise
        except GatewayError as error:
            raise at_part(path, error) from error
        mime_type, content, name = fetched
        if not content:
            raise of_part(
                path, errors_pb2.REASON_INVALID_REQUEST, "the content of the URL is empty"
            )
        kind = kind_of(mime_type, media.kind)
        if media.kind == _IMAGE and kind != media.kind:
            raise of_part(
                path,
                errors_pb2.REASON_INVALID_REQUEST,
                f"the content of the URL is {mime_type}, not an image",
            )
        return Media(
            kind=kind,
            data=content,
            mime_type=mime_type,
            name=media.name or name,
            detail=media.detail,
        )

    async def _fetch(self, url: str) -> tuple[str, bytes, str]:
        async with self._fetching:
            fetched = await self._fetches.fetch(
                url, at_most=min(_MAX_FETCHED, self._left), admit=self._charge.at(CONTENT_COST)
            )
        self._left -= len(fetched.content)
        return sniffed(fetched.mime_type, fetched.content), fetched.content, fetched.name

    def _put(
        self, adapted: Adapted, job: _Job, conversion: Conversion, blocks: list[Block]
    ) -> None:
        block = job.media_ref.block
        if block.cache_control:
            blocks[-1].cache_control = block.cache_control
        if conversion == Conversion.INLINE:
            # Not a conversion: the same medium, or a note that it is gone.
            if blocks[0].HasField("media") and block.HasField("extra"):
                blocks[0].extra.CopyFrom(block.extra)
        else:
            adapted.entries.append(f"{job.media_ref.path}:{conversion.value}")
            if block.HasField("extra"):
                names = orjson.loads(block.extra.json)
                adapted.dropped += [f"{_PREFIX}{name}" for name in names]
        adapted.replacements[job.place] = blocks

    def _count(self, conversion: Conversion, outcome: str) -> None:
        if conversion != Conversion.INLINE:
            self._metrics.adaptations.labels(conversion.value, outcome).inc()
