"""The gallery of components, compared with its committed pictures.

`python -m tests.console.gallery` takes them anew; look at each before it is committed.
"""

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageFilter
from playwright.async_api import Browser

from tests.console.accessibility import serious_violations
from tests.console.gallery import PICTURES, VIEWS, build, opened_gallery

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Pixels are compared after they have been averaged over squares of this size, so that edges of
# letters may be drawn in other ways.
SQUARE = 6
# By how much a square may differ, of 255, and how many squares of a thousand may differ more.
TOLERANCE = 24
DIFFERENT = 3


def differing(taken: Image.Image, expected: Image.Image) -> float:
    """Return how many squares of a thousand differ."""
    size = (expected.width // SQUARE, expected.height // SQUARE)
    pictures = [
        one.convert("RGB").filter(ImageFilter.GaussianBlur(2)).resize(size, Image.Resampling.BOX)
        for one in (taken, expected)
    ]
    difference = ImageChops.difference(*pictures)
    levels = difference.convert("L").point(lambda level: 255 if level > TOLERANCE else 0)
    return 1000 * levels.histogram()[255] / (size[0] * size[1])


async def test_components_look_as_in_the_pictures(browser: Browser, tmp_path: Path) -> None:
    await build(tmp_path)
    failures = []
    for name in VIEWS:
        async with opened_gallery(browser, tmp_path, name) as page:
            picture = Image.open(io.BytesIO(await page.screenshot(full_page=True)))
            expected = Image.open(PICTURES / f"{name}.png")
            picture.save(tmp_path / f"{name}.png")
            width, height = picture.size
            if width != expected.width or abs(height - expected.height) > SQUARE:
                failures.append(f"{name}: {picture.size}, not {expected.size}")
            elif (number := differing(picture, expected)) > DIFFERENT:
                failures.append(f"{name}: {number:.1f} of 1,000 squares; see {tmp_path}/{name}.png")
            failures += await serious_violations(page)
            scroll_width = await page.evaluate("document.documentElement.scrollWidth")
            failures += [f"{name}: wider than its window"] if scroll_width > width else []
    assert failures == []
