"""Texts that replace converted media. Pure.

Each text names the medium and the method of conversion, and marks its beginning and end. The output
of models and OCR is quoted line by line; the text of documents is not.
"""

from collections.abc import Iterable, Iterator, Sequence

from gateway.conversation.v1.conversation_pb2 import Block, Media
from services.inference.adaptation.rules import DOCUMENT, IMAGE, NAMES
from services.media.conversion.parts import Film, ImageFacts, PageText, Picture

_MOST_OF_A_NAME = 128
_QUOTED_NOTE = " What follows is quoted context."


class MediumLabel:
    """The name of a medium in replacement texts.

    Args:
        media: the medium.
        number: its number among the request's media of its kind, from 1.
    """

    def __init__(self, media: Media, number: int) -> None:
        self.noun = NAMES[media.kind]
        self._name = f"{self.noun.capitalize()} {number}"
        # Names are untrusted: strip line breaks.
        file_name = "".join(c for c in media.name if c.isprintable() and c not in "[]")
        file_name = file_name[:_MOST_OF_A_NAME]
        self._file = f" ({file_name})" if file_name else ""

    def opening(self, method: str) -> str:
        """Return the line that opens a replacement text; `method` names the conversion."""
        note = "" if self.noun == NAMES[DOCUMENT] else _QUOTED_NOTE
        return f"[{self._name}{self._file}: {method}.{note}]"

    def closing(self) -> str:
        """Return the line that closes a replacement text."""
        return f"[End of {self._name.lower()}]"


def text_of(label: MediumLabel, method: str, lines: Iterable[str]) -> Block:
    """Return the text block that replaces a medium."""
    return Block(text="\n".join([label.opening(method), *lines, label.closing()]))


def description(label: MediumLabel, by: str, text: str) -> Block:
    """Return the block for an image described by a model."""
    return text_of(label, f"described by {by}", [quoted(text)])


def facts(label: MediumLabel, image_facts: ImageFacts) -> Block:
    """Return the block for an image analysed without a model."""
    lines = [
        f"Format: {image_facts.format}, {image_facts.width} x {image_facts.height} pixels",
        f"Dominant colours: {', '.join(image_facts.colours) or 'none'}",
    ]
    lines += (
        ["Text read by OCR:", quoted(image_facts.text)]
        if image_facts.text.strip()
        else ["No text in it."]
    )
    method = "seen by no model; its size, colours and the text that OCR reads in it"
    return text_of(label, method, lines)


def pages(label: MediumLabel, read: Sequence[PageText]) -> Block:
    """Return the block for the text of a document."""
    lines: list[str] = [] if read else ["(no text)"]
    for page in read:
        recognised = ", read by OCR" if page.recognised else ""
        if len(read) > 1 or recognised:
            lines.append(f"[Page {page.number} of {len(read)}{recognised}]")
        lines.append(page.text if page.text.strip() else "(no text)")
    return text_of(label, "text taken from the file", lines)


def page_pictures(label: MediumLabel, pictures: Sequence[Picture]) -> list[Block]:
    """Return the blocks for a document shown as pictures of its pages."""
    blocks = [Block(text=label.opening(f"{len(pictures)} pages as images"))]
    for picture in pictures:
        blocks.append(Block(text=f"[Page {picture.number} of {len(pictures)}]"))
        blocks.append(image(picture))
    blocks.append(Block(text=label.closing()))
    return blocks


def described_pages(label: MediumLabel, by: str, texts: Sequence[tuple[Picture, str]]) -> Block:
    """Return the block for a document whose page pictures were described."""
    lines: list[str] = []
    for picture, text in texts:
        lines += [f"[Page {picture.number} of {len(texts)}]", quoted(text)]
    return text_of(label, f"its pages described by {by}", lines)


def transcript(label: MediumLabel, by: str, text: str) -> Block:
    """Return the block for a recording."""
    return text_of(label, f"transcribed by {by}", [_quoted_speech(text)])


def film(
    label: MediumLabel,
    extracted: Film,
    speech: tuple[str, str] | None,
    descriptions: Sequence[str] | None,
    describer: str,
) -> Iterator[Block]:
    """Return the blocks for a film.

    Args:
        label: the label of the film.
        extracted: the frames of the film.
        speech: the transcriber and the transcript of the sound; None for a silent film.
        descriptions: a description of each frame; None if the frames themselves are sent.
        describer: the name of the model that described the frames.
    """
    count = len(extracted.frames)
    content = f"{count} frames of {extracted.duration_s:.1f} s"
    if descriptions is not None:
        content += f", described by {describer}"
    yield Block(text=label.opening(content))
    for place, frame in enumerate(extracted.frames):
        line = f"[Frame {frame.number} of {count}, at {frame.at_s or 0:.1f} s]"
        if descriptions is None:
            yield Block(text=line)
            yield image(frame)
        else:
            yield Block(text=f"{line}\n{quoted(descriptions[place])}")
    if speech is None:
        sound = "[It has no sound.]"
    else:
        by, text = speech
        sound = f"[Its sound, transcribed by {by}]\n{_quoted_speech(text)}"
    yield Block(text=f"{sound}\n{label.closing()}")


def gone(media: Media) -> str:
    """Return the text for a medium whose content is no longer stored."""
    named = (NAMES.get(media.kind, "file"), media.name or media.url, media.mime_type)
    return f"[{', '.join(filter(None, named))}: {media.description or 'no longer kept'}]"


def image(picture: Picture) -> Block:
    """Return a picture as a block."""
    media = Media(kind=IMAGE, data=picture.content, mime_type=picture.mime_type)
    return Block(media=media)


def quoted(text: str) -> str:
    """Return text with a quote mark before each line."""
    return "\n".join(f"> {line}" for line in text.strip().splitlines()) or "> "


def _quoted_speech(text: str) -> str:
    return quoted(text) if text.strip() else "(nothing is said)"
