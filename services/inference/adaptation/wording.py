"""What stands in the place of a converted medium. Pure.

Each text says what it is: which medium, how it was read, where it begins and ends. What models
and OCR say of a medium is quoted, line by line; the text of a document stays as it is.
"""

from collections.abc import Iterable, Iterator, Sequence

from gateway.conversation.v1.conversation_pb2 import Block, Media
from services.inference.adaptation.rules import DOCUMENT, IMAGE, NAMES
from services.inference.conversion.parts import Film, ImageFacts, PageText, Picture

_MOST_OF_A_NAME = 128
_QUOTED_NOTE = " What follows is quoted context."


class Label:
    """What a medium is called in the texts that stand for it.

    Args:
        media: the medium.
        number: its place among the request's media of its kind, from 1.
    """

    def __init__(self, media: Media, number: int) -> None:
        self.noun = NAMES[media.kind]
        self._name = f"{self.noun.capitalize()} {number}"
        # A name is the caller's, or a stranger's: it must not end the line it stands in.
        given = "".join(c for c in media.name if c.isprintable() and c not in "[]")
        given = given[:_MOST_OF_A_NAME]
        self._file = f" ({given})" if given else ""

    def opening(self, method: str) -> str:
        """Return the line before what was made of the medium; `method` says how."""
        note = "" if self.noun == NAMES[DOCUMENT] else _QUOTED_NOTE
        return f"[{self._name}{self._file}: {method}.{note}]"

    def closing(self) -> str:
        """Return the line behind it."""
        return f"[End of {self._name.lower()}]"


def text_of(label: Label, method: str, lines: Iterable[str]) -> Block:
    """Return one block of text for a medium."""
    return Block(text="\n".join([label.opening(method), *lines, label.closing()]))


def description(label: Label, by: str, text: str) -> Block:
    """Return the block for an image that a model described."""
    return text_of(label, f"described by {by}", [quoted(text)])


def facts(label: Label, told: ImageFacts) -> Block:
    """Return the block for an image of which no model was asked."""
    lines = [
        f"Format: {told.format}, {told.width} x {told.height} pixels",
        f"Dominant colours: {', '.join(told.colours) or 'none'}",
    ]
    lines += ["Text read by OCR:", quoted(told.text)] if told.text.strip() else ["No text in it."]
    method = "seen by no model; its size, colours and the text that OCR reads in it"
    return text_of(label, method, lines)


def pages(label: Label, read: Sequence[PageText]) -> Block:
    """Return the block for a document's text."""
    lines: list[str] = [] if read else ["(no text)"]
    for page in read:
        recognised = ", read by OCR" if page.recognised else ""
        if len(read) > 1 or recognised:
            lines.append(f"[Page {page.number} of {len(read)}{recognised}]")
        lines.append(page.text if page.text.strip() else "(no text)")
    return text_of(label, "text taken from the file", lines)


def page_pictures(label: Label, pictures: Sequence[Picture]) -> list[Block]:
    """Return the blocks for a document whose pages are shown."""
    blocks = [Block(text=label.opening(f"{len(pictures)} pages as images"))]
    for picture in pictures:
        blocks.append(Block(text=f"[Page {picture.number} of {len(pictures)}]"))
        blocks.append(image(picture))
    blocks.append(Block(text=label.closing()))
    return blocks


def described_pages(label: Label, by: str, texts: Sequence[tuple[Picture, str]]) -> Block:
    """Return the block for a document whose pages were described."""
    lines: list[str] = []
    for picture, text in texts:
        lines += [f"[Page {picture.number} of {len(texts)}]", quoted(text)]
    return text_of(label, f"its pages described by {by}", lines)


def transcript(label: Label, by: str, text: str) -> Block:
    """Return the block for a recording."""
    return text_of(label, f"transcribed by {by}", [_said(text)])


def film(
    label: Label, taken: Film, said: tuple[str, str] | None, told: Sequence[str] | None, seer: str
) -> Iterator[Block]:
    """Return the blocks for a film.

    Args:
        label: the film's.
        taken: its frames.
        said: who transcribed its sound, and what is said; None for a silent one.
        told: what each frame shows, where the frames themselves are not sent.
        seer: who described them.
    """
    count = len(taken.frames)
    what = f"{count} frames of {taken.duration_s:.1f} s"
    if told is not None:
        what += f", described by {seer}"
    yield Block(text=label.opening(what))
    for place, frame in enumerate(taken.frames):
        line = f"[Frame {frame.number} of {count}, at {frame.at_s or 0:.1f} s]"
        if told is None:
            yield Block(text=line)
            yield image(frame)
        else:
            yield Block(text=f"{line}\n{quoted(told[place])}")
    if said is None:
        sound = "[It has no sound.]"
    else:
        by, text = said
        sound = f"[Its sound, transcribed by {by}]\n{_said(text)}"
    yield Block(text=f"{sound}\n{label.closing()}")


def gone(media: Media) -> str:
    """Return what stands for a remembered medium that is no longer kept."""
    named = (NAMES.get(media.kind, "file"), media.name or media.url, media.mime_type)
    return f"[{', '.join(filter(None, named))}: {media.description or 'no longer kept'}]"


def image(picture: Picture) -> Block:
    """Return a picture as a block."""
    media = Media(kind=IMAGE, data=picture.content, mime_type=picture.mime_type)
    return Block(media=media)


def quoted(text: str) -> str:
    """Return a text with a mark before each line."""
    return "\n".join(f"> {line}" for line in text.strip().splitlines()) or "> "


def _said(text: str) -> str:
    return quoted(text) if text.strip() else "(nothing is said)"
