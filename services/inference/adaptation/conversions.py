"""The conversions of media into blocks: conversion, caching and labelling."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from gateway.conversation.v1.conversation_pb2 import Block, Media
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Multimodal, PdfAdaptation
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge
from services.inference.adaptation import wording
from services.inference.adaptation.errors import at_part
from services.inference.adaptation.helpers import Helper, Helpers
from services.inference.adaptation.media_types import is_text, utf8
from services.inference.adaptation.rules import (
    DEFAULT_FRAMES,
    DEFAULT_MAX_PAGES,
    IMAGE,
    MAX_FRAMES,
    Conversion,
    MediaCapabilities,
)
from services.inference.adaptation.single_flight import SingleFlight, all_of
from services.inference.media import AdaptationError
from services.inference.stored_files import CONTENT_COST
from services.media.conversion.cache import Cache, M
from services.media.conversion.codec import size_of
from services.media.conversion.converter import VERSIONS, Converter
from services.media.conversion.parts import Film, ImageFacts, Ocr, PageText, Picture, Source

_OCR = {
    PdfAdaptation.OCR_ALWAYS: Ocr.ALWAYS,
    PdfAdaptation.OCR_NEVER: Ocr.NEVER,
}
_EMBEDDED_ENGINE = "the embedded engine"
_AT_ONCE = 4  # parallel conversions of one request
# About as long as a model's description of an image.
_SOME_WORDS = "word " * 300

T = TypeVar("T")


class Conversions:
    """The conversions of one request; equal conversions run once.

    Every method raises AdaptationError, which names the part at `path`.

    Args:
        converter: runs conversions that need no model.
        cache: stores results.
        helpers: the models that describe and transcribe.
        multimodal: the request's conversion settings.
        charge: the bytes that the request holds; those of results are added.
        counts: whether tokens are only counted: no helper model is called, and placeholder text
            stands for descriptions that are not cached.

    Attributes:
        guesses: whether placeholder text was used.
    """

    def __init__(
        self,
        converter: Converter,
        cache: Cache,
        helpers: Helpers,
        multimodal: Multimodal,
        charge: Charge,
        *,
        counts: bool,
    ) -> None:
        self._charge = charge
        self._converter = converter
        self._cache = cache
        self._helpers = helpers
        self._multimodal = multimodal
        self._counts = counts
        self.guesses = False
        self._flights = SingleFlight()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def blocks(
        self,
        conversion: Conversion,
        media: Media,
        label: wording.MediumLabel,
        path: str,
        capabilities: MediaCapabilities,
    ) -> list[Block]:
        """Return the blocks that replace a medium, none if nothing is known of it.

        The medium must have its content, except for a recall.
        """
        source = Source(media.data, media.mime_type, media.name)
        match conversion:
            case Conversion.RECALL:
                return await self._recalled(media, label, path)
            case Conversion.DESCRIBE:
                return [await self._described(media, label, path)]
            case Conversion.PAGES:
                pictures = await self._pictures(source, path)
                # In a thread, as media may have many megabytes.
                return await asyncio.to_thread(wording.page_pictures, label, pictures)
            case Conversion.DESCRIBED_PAGES:
                return [await self._described_pages(source, label, path)]
            case Conversion.TEXT:
                return [wording.pages(label, await self._pages(source, path))]
            case Conversion.TRANSCRIBE:
                by, text = await self._transcript(source, path)
                return [wording.transcript(label, by, text)]
            case Conversion.FILM:
                return await self._film(source, label, path, sees=capabilities.reads(IMAGE))
            case Conversion.INLINE:
                return [Block(media=media)]

    async def _described(self, media: Media, label: wording.MediumLabel, path: str) -> Block:
        image = self._multimodal.image
        helper = self._helpers.describer("multimodal.image.model", image.model, path)
        if helper.target is None:
            return wording.facts(
                label, await self._facts(Source(media.data, media.mime_type), path)
            )
        text = await self._description(helper, media.data, media.mime_type, image.prompt, path)
        return wording.description(label, helper.by, text)

    async def _recalled(self, media: Media, label: wording.MediumLabel, path: str) -> list[Block]:
        """Return the cached description of an image, if there is one."""
        image = self._multimodal.image
        helper = self._helpers.describer("multimodal.image.model", image.model, path)
        conversion = ("description", helper.key, image.prompt)
        if media.HasField("sha256"):
            key = self._cache.key_of(media.sha256, *conversion)
        else:
            key = await self._cache.key(media.data, *conversion)
        text = await self._cache.get(key, str)
        return [] if text is None else [wording.description(label, helper.by, text)]

    async def _description(
        self, helper: Helper, content: bytes, mime_type: str, prompt: str, path: str
    ) -> str:
        """Return a helper model's description of an image."""
        if helper.target is None:
            facts = await self._facts(Source(content, mime_type), path)
            return facts.text
        media = Media(kind=IMAGE, data=content, mime_type=mime_type)
        return await self._made(
            str,
            lambda: self._helpers.describe(helper, media, prompt, path),
            path,
            (content, "description", helper.key, prompt),
            _SOME_WORDS,
        )

    async def _facts(self, source: Source, path: str) -> ImageFacts:
        return await self._made(
            ImageFacts,
            lambda: self._converted(self._converter.image_facts(source)),
            path,
            (source.content, "facts", VERSIONS["image_facts"]),
        )

    async def _pages(self, source: Source, path: str) -> Sequence[PageText]:
        if is_text(source.mime_type, source.name):
            text = utf8(source.content)
            if text is not None:
                return [PageText(1, text)]
        pdf = self._multimodal.pdf
        ocr, most = _OCR.get(pdf.ocr, Ocr.AUTO), _max_pages(pdf)
        pages: tuple[PageText, ...] = await self._made(
            tuple,
            lambda: self._converted(self._converter.pages_as_text(source, max_pages=most, ocr=ocr)),
            path,
            (
                source.content,
                "pages",
                VERSIONS["pages_as_text"],
                source.mime_type,
                source.name,
                most,
                ocr.value,
            ),
        )
        return pages

    async def _pictures(self, source: Source, path: str) -> Sequence[Picture]:
        most = _max_pages(self._multimodal.pdf)
        pictures: tuple[Picture, ...] = await self._made(
            tuple,
            lambda: self._converted(self._converter.pages_as_pictures(source, max_pages=most)),
            path,
            (
                source.content,
                "pictures",
                VERSIONS["pages_as_pictures"],
                source.mime_type,
                source.name,
                most,
            ),
        )
        return pictures

    async def _described_pages(
        self, source: Source, label: wording.MediumLabel, path: str
    ) -> Block:
        pdf = self._multimodal.pdf
        helper = self._helpers.describer("multimodal.pdf.model", pdf.model, path)
        pictures = await self._pictures(source, path)
        texts = await self._descriptions(helper, pictures, path)
        return wording.described_pages(label, helper.by, list(zip(pictures, texts, strict=True)))

    async def _descriptions(
        self, helper: Helper, pictures: Sequence[Picture], path: str
    ) -> list[str]:
        prompt = self._multimodal.image.prompt
        return await all_of(
            [
                self._description(helper, one.content, one.mime_type, prompt, path)
                for one in pictures
            ]
        )

    async def _transcript(self, source: Source, path: str) -> tuple[str, str]:
        """Return the name of the transcriber and the transcript of a recording."""
        audio = self._multimodal.audio
        helper = self._helpers.transcriber("multimodal.audio.model", audio.model)
        language = audio.language
        if helper.target is None:
            text = await self._made(
                str,
                lambda: self._converted(self._converter.transcript(source, language=language)),
                path,
                (source.content, "transcript", VERSIONS["transcript"], language),
            )
            return _EMBEDDED_ENGINE, text
        text = await self._made(
            str,
            lambda: self._helpers.transcribe(helper, source, language, path),
            path,
            (source.content, "transcript", language, helper.key),
            _SOME_WORDS,
        )
        return helper.by, text

    async def _film(
        self, source: Source, label: wording.MediumLabel, path: str, *, sees: bool
    ) -> list[Block]:
        video = self._multimodal.video
        count = video.frames if video.HasField("frames") else DEFAULT_FRAMES
        if not 1 <= count <= MAX_FRAMES:
            where = "multimodal.video.frames"
            raise AdaptationError(
                errors_pb2.REASON_INVALID_REQUEST,
                f"{where}: must be 1 to {MAX_FRAMES}",
                param=where,
            )
        helper: Helper | None = None
        if not sees:
            # Before decoding the film, which takes long: a missing model fails early.
            helper = self._helpers.describer("multimodal.video.model", video.model, path)
        film = await self._made(
            Film,
            lambda: self._converted(self._converter.film(source, frames=count)),
            path,
            (source.content, "film", VERSIONS["film"], count),
        )
        transcript: tuple[str, str] | None = None
        if film.sound is not None:
            transcript = await self._transcript(Source(film.sound, "audio/wav", "sound.wav"), path)
        descriptions = (
            None if helper is None else await self._descriptions(helper, film.frames, path)
        )
        describer_name = "" if helper is None else helper.by
        return list(wording.film(label, film, transcript, descriptions, describer_name))

    async def _converted(self, work: Awaitable[T]) -> T:
        """Await a conversion, within the request's limit of parallel conversions."""
        async with self._turns:
            return await work

    async def _made(
        self,
        kind: type[M],
        make: Callable[[], Awaitable[M]],
        path: str,
        key: tuple[bytes, str, *tuple[str | int, ...]],
        guess: M | None = None,
    ) -> M:
        """Return the cached result of a conversion, or run it and cache its result.

        `guess` stands for the result of a helper model when tokens are only counted.
        """
        name = await self._cache.key(*key)

        async def make_and_keep() -> M:
            made = await self._cache.get(name, kind, self._charge.at(CONTENT_COST))
            if made is None and guess is not None and self._counts:
                self.guesses = True
                return guess
            if made is None:
                made = await make()
                await self._cache.put(name, made)
                # Not awaited: the result is held already. The cached one may be waited for.
                self._charge.reserve(CONTENT_COST * size_of(made))
            return made

        try:
            return await self._flights.get(name, make_and_keep)
        except AdaptationError:
            raise
        except GatewayError as error:
            raise at_part(path, error) from error


def _max_pages(pdf: PdfAdaptation) -> int:
    return pdf.max_pages if pdf.HasField("max_pages") else DEFAULT_MAX_PAGES
