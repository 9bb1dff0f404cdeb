"""Inputs and results of conversions: plain values, cheap to import and to serialize."""

from dataclasses import dataclass
from enum import Enum


class Ocr(Enum):
    """When OCR is applied to a page."""

    AUTO = "auto"  # if a page has no text of its own
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Source:
    """A medium to convert.

    Attributes:
        content: its bytes.
        mime_type: as declared; may be wrong or empty.
        name: file name, or empty.
    """

    content: bytes
    mime_type: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page, sheet or slide.

    Attributes:
        number: from 1.
        text: Markdown where the document has structure; empty for an empty page.
        recognised: whether OCR was used.
    """

    number: int
    text: str
    recognised: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page or frame.

    Attributes:
        number: of the page or frame, from 1.
        content: its bytes.
        mime_type: `image/png` or `image/jpeg`.
        at_s: time in the film in seconds; None for a page.
    """

    number: int
    content: bytes
    mime_type: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture of one page of a document.

    Attributes:
        page_count: the number of pages of the document.
        content: its bytes; empty if the document has fewer pages.
        mime_type: `image/png` or `image/jpeg`.
    """

    page_count: int
    content: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Facts about an image that need no model.

    Attributes:
        width: pixels.
        height: pixels.
        format: such as `PNG`.
        colours: names of the dominant colours, most frequent first.
        text: by OCR, in reading order; may be empty.
    """

    width: int
    height: int
    format: str
    colours: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Film:
    """The frames and the sound of a film.

    Attributes:
        duration_s: seconds.
        frames: in order of time, evenly spaced.
        sound: a WAV of 16 kHz, one channel, 16 bit; None for a silent film.
    """

    duration_s: float
    frames: tuple[Picture, ...]
    sound: bytes | None


@dataclass(frozen=True, slots=True)
class WebPage:
    """The main text of a web page.

    Attributes:
        title: may be empty.
        text: Markdown, without navigation, scripts and hidden parts; may be empty.
    """

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The vectors of several texts.

    Attributes:
        dimensions: the length of each vector.
        packed: all vectors in order, as 32-bit floats, little-endian.
        tokens: of all texts, as the model counts them.
    """

    dimensions: int
    packed: bytes
    tokens: int


@dataclass(frozen=True, slots=True)
class PandocOutput:
    """A document in another format.

    Attributes:
        content: the document.
        warnings: what is missing in it, for people.
    """

    content: bytes
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A file in a document.

    Attributes:
        name: its path there.
        content: its bytes.
    """

    name: str
    content: bytes
