"""Each page of the console, compared with its committed picture in `docs/images`.

`make screenshots` takes them anew; look at each before it is committed.
"""

from pathlib import Path

import pytest
from PIL import Image

from tests.console.screenshots import TARGET, take_all
from tests.console.test_gallery import differing

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.soak]

# Squares of a thousand that may differ: ids, keys and measured times are others in each run.
DIFFERENT = 25


async def test_pages_look_as_in_the_pictures(tmp_path: Path) -> None:
    await take_all(tmp_path)
    failures = []
    for committed in sorted(TARGET.glob("console-*.png")):
        taken, expected = Image.open(tmp_path / committed.name), Image.open(committed)
        if taken.size != expected.size:
            failures.append(f"{committed.name}: {taken.size}, not {expected.size}")
        elif (number := differing(taken, expected)) > DIFFERENT:
            failures.append(f"{committed.name}: {number:.1f} of 1,000 squares; see {tmp_path}")
    assert failures == []
