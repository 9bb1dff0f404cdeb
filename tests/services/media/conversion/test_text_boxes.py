"""Boxes around lines of text, found in a map of likelihoods."""

import numpy as np
import pytest
from PIL import Image

from services.media.conversion.text_boxes import text_boxes


def marked(*rectangles: tuple[int, int, int, int], value: float = 0.9) -> np.ndarray:
    """Return a map of 200 by 100 with rectangles: left, top, right, bottom."""
    likelihood = np.zeros((100, 200), dtype=np.float32)
    for left, top, right, bottom in rectangles:
        likelihood[top:bottom, left:right] = value
    return likelihood


def test_a_box_is_larger_than_what_is_marked_on_all_sides():
    (corners,) = text_boxes(marked((40, 30, 140, 50)))
    # The rectangle and the pixel that it is dilated by: 100 by 20, enlarged by 1.6 * 2000 / 240.
    grown = 13.3
    expected = [(40 - grown, 30 - grown), (140 + grown, 30 - grown)]
    expected += [(140 + grown, 50 + grown), (40 - grown, 50 + grown)]
    assert corners == pytest.approx(np.array(expected), abs=0.1)


def test_lines_are_found_apart_and_from_the_top():
    boxes = text_boxes(marked((100, 60, 180, 70), (10, 20, 60, 30), (90, 25, 150, 35)))
    assert [tuple(corners.mean(axis=0).round()) for corners in boxes] == [
        (35, 25),
        (120, 30),
        (140, 65),
    ]


def test_pixels_that_touch_at_a_corner_are_one_line():
    (corners,) = text_boxes(marked((20, 20, 100, 40), (100, 40, 104, 44)))
    assert corners[:, 0].max() > 104


@pytest.mark.parametrize("degrees", [10, 30, -25])
def test_the_box_of_a_slanted_line_is_slanted(degrees):
    picture = Image.fromarray(marked((50, 45, 150, 55))).rotate(degrees)
    (corners,) = text_boxes(np.asarray(picture))
    right, down = corners[1] - corners[0]
    assert np.degrees(np.arctan2(-down, right)) == pytest.approx(degrees, abs=1)


@pytest.mark.parametrize(
    "likelihood",
    [
        marked(),
        marked((20, 20, 22, 22)),
        marked((20, 20, 80, 40), value=0.2),
        marked((20, 20, 80, 40), value=0.4),
    ],
    ids=["nothing", "a speck", "unlikely pixels", "an unlikely line"],
)
def test_no_box_is_found_in(likelihood):
    assert text_boxes(likelihood) == []


def test_the_boxes_of_a_hostile_picture_are_bounded():
    specks = np.kron(np.ones((40, 40)), np.pad(np.ones((4, 4)), ((0, 4), (0, 4))))
    assert len(text_boxes(specks.astype(np.float32))) == 1_000
