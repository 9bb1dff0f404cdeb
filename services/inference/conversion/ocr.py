"""Text recognised in pictures, by models that come inside a package (PP-OCRv6, Apache-2.0)."""

import functools
import os
import re

import numpy as np
import rapidocr
from PIL import Image
from rapidocr.utils.output import RapidOCROutput

from services.inference.conversion.reading_order import Line, in_order

# Lines are found in a picture of this long side: half as much misses small print, and twice as
# much takes four times as long and finds no more.
_DETECTION_SIDE = 1_280
# Of what is read, from what certainty on it is text.
_MIN_SCORE = 0.5
# A picture larger than this is made smaller.
MAX_SIDE = 2_000
# A word that a line breaks.
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_A-Z])")


def read(image: Image.Image) -> str:
    """Return the text in an RGB image, in reading order, a line a line; empty without any."""
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    pixels = np.asarray(image)[:, :, ::-1]  # BGR, as OpenCV has it
    found = _engine()(pixels)
    assert isinstance(found, RapidOCROutput)
    if found.boxes is None or found.txts is None:
        return ""
    lines = [
        Line.of_corners(corners.tolist(), text)
        for corners, text in zip(found.boxes, found.txts, strict=True)
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
            # One line at a time: in a batch all are as wide as the widest.
            "Rec.rec_batch_num": 1,
        }
    )
