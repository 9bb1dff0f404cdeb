"""Serialize conversion results for the cache. Pure.

A line of JSON, followed by the bytes of the pictures and the sound.
"""

from typing import Any

import orjson

from services.media.conversion.parts import Film, ImageFacts, PagePicture, PageText, Picture

Made = str | bytes | tuple[PageText, ...] | tuple[Picture, ...] | PagePicture | ImageFacts | Film


def dump(made: Made) -> bytes:
    """Serialize a conversion result."""
    contents: list[bytes] = []
    match made:
        case str():
            head: dict[str, Any] = {"text": made}
        case bytes():
            head, contents = {"bytes": len(made)}, [made]
        case PagePicture():
            head, contents = (
                {"page_of": made.page_count, "mime_type": made.mime_type},
                [made.content],
            )
        case ImageFacts():
            head = {
                "facts": [made.width, made.height, made.format, list(made.colours), made.text],
            }
        case Film():
            contents = [frame.content for frame in made.frames]
            head = {"film": made.duration_s, "frames": [_picture(one) for one in made.frames]}
            if made.sound is not None:
                head["sound"] = len(made.sound)
                contents.append(made.sound)
        case _ if made and isinstance(made[0], Picture):
            pictures = [one for one in made if isinstance(one, Picture)]
            contents = [one.content for one in pictures]
            head = {"pictures": [_picture(one) for one in pictures]}
        case _:
            pages = [one for one in made if isinstance(one, PageText)]
            head = {"pages": [[one.number, one.text, one.recognised] for one in pages]}
    return b"".join([orjson.dumps(head), b"\n", *contents])


def size_of(made: Made) -> int:
    """Return about the bytes that a conversion result takes."""
    match made:
        case str() | bytes():
            return len(made)
        case PagePicture():
            return len(made.content)
        case ImageFacts():
            return len(made.text)
        case Film():
            return sum(len(frame.content) for frame in made.frames) + len(made.sound or b"")
    return sum(len(one.content if isinstance(one, Picture) else one.text) for one in made)


def load(serialized: bytes) -> Made:
    """Return the result that `dump` serialized.

    Raises:
        ValueError: the bytes are damaged or were written by another version.
    """
    line, _, contents = serialized.partition(b"\n")
    try:
        head = orjson.loads(line)
        match head:
            case {"text": str(text)}:
                return text
            case {"bytes": int(size)} if len(contents) == size:
                return contents
            case {"page_of": int(page_count), "mime_type": str(mime_type)}:
                return PagePicture(page_count, contents, mime_type)
            case {"facts": [width, height, form, colours, text]}:
                return ImageFacts(width, height, form, tuple(colours), text)
            case {"pages": [*pages]}:
                return tuple(PageText(*page) for page in pages)
            case {"pictures": [*pictures]}:
                return _pictures(pictures, contents)
            case {"film": duration_s, "frames": [*frames]}:
                size = head.get("sound")
                sound = None if size is None else contents[len(contents) - size :]
                return Film(duration_s, _pictures(frames, contents), sound)
    except (TypeError, KeyError, orjson.JSONDecodeError) as error:
        raise ValueError("damaged") from error
    raise ValueError("of another version")


def _picture(picture: Picture) -> list[Any]:
    return [picture.number, picture.mime_type, picture.at_s, len(picture.content)]


def _pictures(heads: list[Any], contents: bytes) -> tuple[Picture, ...]:
    start = 0
    pictures: list[Picture] = []
    for number, mime_type, at_s, size in heads:
        if len(contents) < start + size:
            raise ValueError("cut off")
        pictures.append(Picture(number, contents[start : start + size], mime_type, at_s))
        start += size
    return tuple(pictures)
