"""Pictures embedded in documents, and text for them: alternative text and OCR."""

import io
import zipfile
import zlib

from services.media.conversion import images
from services.media.conversion.errors import ConversionError
from services.media.conversion.formats import DocumentFormat, detect
from services.media.conversion.loading import load
from services.media.conversion.parts import EmbeddedFile, Ocr, Source

# Minimum size of pictures read by OCR (smaller ones are icons and rules), and how many are read.
_MIN_SIDE = 50
_MAX_READ = 20
# Where a DOCX holds its pictures, and how many of them are returned.
_MEDIA = "word/"
_IN_MEDIA = "word/media/"
_MAX_FILES = 200
_MAX_FILE_BYTES = 16 << 20


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


def embedded_files(source: Source) -> tuple[EmbeddedFile, ...]:
    """Return the pictures in a DOCX, named as its text names them.

    Raises:
        ConversionError: it is no DOCX, damaged, or unsafe to unpack.
    """
    if detect(source.content) is not DocumentFormat.DOCX:
        raise ConversionError("the file is not a DOCX")
    files = []
    with zipfile.ZipFile(io.BytesIO(source.content)) as archive:
        members = [one for one in archive.infolist() if one.filename.startswith(_IN_MEDIA)]
        for member in members[:_MAX_FILES]:
            if 0 < member.file_size <= _MAX_FILE_BYTES:
                try:
                    content = archive.read(member)
                except (OSError, zipfile.BadZipFile, zlib.error):
                    continue  # damaged; it is missing in the document
                files.append(EmbeddedFile(member.filename.removeprefix(_MEDIA), content))
    return tuple(files)
