"""Open images within limits, and extract facts that need no model."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageOps, UnidentifiedImageError

from services.media.conversion import colours
from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_PIXELS
from services.media.conversion.loading import load
from services.media.conversion.parts import ImageFacts, Source

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "ICO", "PPM")
_TOO_LARGE = f"the image has more than {MAX_PIXELS // 1_000_000} megapixels"


def image_facts(source: Source) -> ImageFacts:
    """Return facts about an image; about the first frame of an animated one."""
    with opened(source.content) as image:
        name = image.format or ""
        picture = upright(image)
    text = load("ocr").read(picture)
    return ImageFacts(picture.width, picture.height, name, colours.dominant(picture), text)


@contextmanager
def opened(content: bytes) -> Iterator[Image.Image]:
    """Open an image of at most `MAX_PIXELS`; its pixels are decoded later.

    Raises:
        ConversionError: it is too large, damaged or of an unsupported format; also raised for
            errors while decoding within the block.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns about large images; MAX_PIXELS is checked below.
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(content), formats=_FORMATS)
        if image.width * image.height > MAX_PIXELS:
            raise ConversionError(_TOO_LARGE)
        with image:
            yield image
    except UnidentifiedImageError:
        raise ConversionError(
            "the image is damaged, or its format is not supported (supported: "
            f"{', '.join(_FORMATS)})"
        ) from None
    except Image.DecompressionBombError:
        raise ConversionError(_TOO_LARGE) from None
    except (OSError, SyntaxError, ValueError, EOFError):
        raise ConversionError("the image is damaged") from None


def upright(image: Image.Image) -> Image.Image:
    """Return an image as displayed: rotated by its EXIF orientation, on white, in RGB."""
    turned = ImageOps.exif_transpose(image)
    if "A" in turned.getbands() or "transparency" in turned.info:
        with_alpha = turned.convert("RGBA")
        turned = Image.new("RGBA", with_alpha.size, "white")
        turned.alpha_composite(with_alpha)
    return turned.convert("RGB")
