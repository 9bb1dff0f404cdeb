"""OCR by models that ship inside a package (PP-OCRv6, Apache-2.0)."""

import functools
import os
import re

import numpy as np
import rapidocr
from PIL import Image
from rapidocr.utils.output import RapidOCROutput

from services.media.conversion.reading_order import Line, in_order

# Long side of the picture for text detection: half of it misses small print; twice as much takes
# four times as long and finds no more.
_DETECTION_SIDE = 1_280
# Minimum confidence of recognised text.
_MIN_SCORE = 0.5
# Larger pictures are downscaled.
MAX_SIDE = 2_000
# A word hyphenated at a line break.
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_A-Z])")


def read(image: Image.Image) -> str:
    """Return the text of an RGB image in reading order, line by line; empty if there is none."""
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    pixels = np.asarray(image)[:, :, ::-1]  # BGR, as in OpenCV
    recognised = _engine()(pixels)
    assert isinstance(recognised, RapidOCROutput)
    if recognised.boxes is None or recognised.txts is None:
        return ""
    lines = [
        Line.of_corners(corners.tolist(), text)
        for corners, text in zip(recognised.boxes, recognised.txts, strict=True)
    ]
    return _BROKEN_WORD.sub("", "\n".join(in_order(lines)))


@functools.cache
def _engine() -> rapidocr.RapidOCR:
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.text_score": _MIN_SCORE,
            "Global.use_cls": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _DETECTION_SIDE,
            # One line at a time: in a batch, all lines are padded to the widest.
            "Rec.rec_batch_num": 1,
        }
    )
