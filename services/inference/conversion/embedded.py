"""Pictures inside documents as words: alternative texts, and what is written in them."""

from services.inference.conversion import images
from services.inference.conversion.errors import ConversionError
from services.inference.conversion.loading import load
from services.inference.conversion.parts import Ocr

# Smaller ones are icons and lines; more of them take too long.
_MIN_SIDE = 50
_MAX_READ = 20


class PictureReader:
    """Reads the pictures of one document."""

    def __init__(self, when: Ocr) -> None:
        self._left = 0 if when is Ocr.NEVER else _MAX_READ

    def read(self, content: bytes, description: str) -> str:
        """Return what stands for a picture in a text."""
        said = [part for part in (" ".join(description.split()), self._text(content)) if part]
        return f"[image: {'; '.join(said)}]" if said else "[image]"

    def _text(self, content: bytes) -> str:
        if not self._left:
            return ""
        try:
            with images.opened(content) as image:
                if min(image.size) < _MIN_SIDE:
                    return ""
                self._left -= 1
                text: str = load("ocr").read(images.upright(image))
        except ConversionError:
            return ""  # drawings of formats that nobody reads
        return f"it says: {text}" if text else ""
