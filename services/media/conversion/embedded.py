"""Text for pictures embedded in documents: alternative text and OCR."""

from services.media.conversion import images
from services.media.conversion.errors import ConversionError
from services.media.conversion.loading import load
from services.media.conversion.parts import Ocr

# Minimum size of pictures read by OCR (smaller ones are icons and rules), and how many are read.
_MIN_SIDE = 50
_MAX_READ = 20


class PictureReader:
    """Reads the pictures of one document."""

    def __init__(self, when: Ocr) -> None:
        self._left = 0 if when is Ocr.NEVER else _MAX_READ

    def read(self, content: bytes, description: str) -> str:
        """Return the text that replaces a picture."""
        texts = [part for part in (" ".join(description.split()), self._text(content)) if part]
        return f"[image: {'; '.join(texts)}]" if texts else "[image]"

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
            return ""  # unsupported vector formats
        return f"it says: {text}" if text else ""
