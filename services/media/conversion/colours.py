"""Names of the dominant colours of an image."""

import colorsys
from collections import Counter

from PIL import Image

_SIDE = 64  # size of the sampled thumbnail
_MOST = 4
_LEAST_SHARE = 0.05
# Upper bounds of named hues, in degrees.
_HUES = (
    (15, "red"),
    (45, "orange"),
    (70, "yellow"),
    (165, "green"),
    (200, "cyan"),
    (255, "blue"),
    (310, "purple"),
    (345, "pink"),
    (360, "red"),
)


def dominant(image: Image.Image) -> tuple[str, ...]:
    """Return the names of the dominant colours of an RGB image, the most frequent first."""
    reduced = image.resize((_SIDE, _SIDE), Image.Resampling.NEAREST)
    pixels = reduced.tobytes()
    names = Counter(_name(*pixels[place : place + 3]) for place in range(0, len(pixels), 3))
    min_pixels = _LEAST_SHARE * _SIDE * _SIDE
    return tuple(name for name, count in names.most_common(_MOST) if count >= min_pixels)


def _name(red: int, green: int, blue: int) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.15:
        return "black"
    if saturation < 0.12:
        return "white" if value > 0.88 else "grey"
    degrees = hue * 360
    if 10 <= degrees < 45 and value < 0.65:
        return "brown"
    return next(name for end, name in _HUES if degrees <= end)
