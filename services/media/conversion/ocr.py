"""OCR by models that ship inside a package (PP-OCRv6, Apache-2.0).

One model finds lines of text in a picture, another reads each line. They come with `rapidocr`,
whose own code is not used: it needs OpenCV, which alone takes 160 MB.
"""

import functools
import importlib.util
import math
import os
import re
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from services.media.conversion.reading_order import Line, in_order
from services.media.conversion.text_boxes import Floats, text_boxes

_PACKAGE = "rapidocr"
_FINDER, _READER = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"
# Long side of the picture for text detection: half of it misses small print; twice as much takes
# four times as long and finds no more.
_DETECTION_SIDE = 1_280
# The sides of that picture are multiples of this.
_STRIDE = 32
# Minimum confidence of recognised text.
_MIN_SCORE = 0.5
# Larger pictures are downscaled, those with a shorter side than this enlarged.
MAX_SIDE = 2_000
_MIN_SIDE = 30
# A flat picture is too little for the finder: it gets margins above and below.
_MAX_ASPECT = 8.0
# The picture of a line, as the reader was trained.
_LINE_HEIGHT, _MIN_LINE_WIDTH = 48, 320
# A box of this ratio of height to width holds a line that runs upwards.
_UPRIGHT = 1.5
_MIN_BOX_SIDE = 3
# A word hyphenated at a line break.
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_A-Z])")


def read(image: Image.Image) -> str:
    """Return the text of an RGB image in reading order, line by line; empty if there is none."""
    image = _of_readable_size(image)
    lines = []
    for corners in _found(image):
        text = _read_line(_cut_out(image, corners))
        if text:
            lines.append(Line.of_corners(corners.tolist(), text))
    return _BROKEN_WORD.sub("", "\n".join(in_order(lines)))


def _of_readable_size(image: Image.Image) -> Image.Image:
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    if min(image.size) < _MIN_SIDE:
        width, height = image.size
        scale = min(_MIN_SIDE / min(image.size), MAX_SIDE / max(image.size))
        image = image.resize((math.ceil(width * scale), math.ceil(height * scale)))
    width, height = image.size
    if width > _MAX_ASPECT * height or height <= _MIN_SIDE:
        padded = Image.new("RGB", (width, 2 * max(round(width / _MAX_ASPECT), height)))
        padded.paste(image, (0, (padded.height - height) // 2))
        return padded
    return image


def _found(image: Image.Image) -> list[Floats]:
    """Return the corners of the boxes of lines, in pixels of the image."""
    width, height = image.size
    scale = min(_DETECTION_SIDE / max(image.size), 1.0)
    size = (
        max(round(width * scale / _STRIDE), 1) * _STRIDE,
        max(round(height * scale / _STRIDE), 1) * _STRIDE,
    )
    (output,) = _session(_FINDER).run(None, {"x": _tensor(image.resize(size, _BILINEAR))})
    stretch = np.array([width / size[0], height / size[1]])
    boxes = []
    for corners in text_boxes(output[0, 0]):
        corners = np.clip(np.round(corners * stretch), 0, (width - 1, height - 1))
        sides = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])
        if min(sides) > _MIN_BOX_SIDE:
            boxes.append(corners)
    return boxes


def _cut_out(image: Image.Image, corners: Floats) -> Image.Image:
    """Return the picture of a line, turned upright."""
    top_left, top_right, bottom_right, bottom_left = corners
    width = max(np.linalg.norm(top_right - top_left), np.linalg.norm(bottom_right - bottom_left))
    height = max(np.linalg.norm(bottom_left - top_left), np.linalg.norm(bottom_right - top_right))
    quad = (*top_left, *bottom_left, *bottom_right, *top_right)
    line = image.transform(
        (int(width), int(height)),
        Image.Transform.QUAD,
        tuple(map(float, quad)),
        resample=Image.Resampling.BICUBIC,
    )
    if line.height >= _UPRIGHT * line.width:
        return line.transpose(Image.Transpose.ROTATE_90)
    return line


def _read_line(line: Image.Image) -> str:
    """Return the text of the picture of a line; "" if it is not certain enough."""
    width = max(math.ceil(_LINE_HEIGHT * line.width / line.height), 1)
    tensor = _tensor(line.resize((width, _LINE_HEIGHT), _BILINEAR))
    padding = max(_MIN_LINE_WIDTH - width, 0)
    tensor = np.pad(tensor, ((0, 0), (0, 0), (0, 0), (0, padding)))
    (output,) = _session(_READER).run(None, {"x": tensor})
    (likelihood,) = output
    best = likelihood.argmax(axis=1)
    # A character lasts for several columns; the first character stands for none (CTC).
    is_new = np.append(True, best[1:] != best[:-1]) & (best != 0)
    if not is_new.any() or likelihood.max(axis=1)[is_new].mean() < _MIN_SCORE:
        return ""
    characters = _characters()
    return "".join(characters[index] for index in best[is_new]).strip()


_BILINEAR = Image.Resampling.BILINEAR


def _tensor(image: Image.Image) -> NDArray[np.float32]:
    """Return the pixels as the models take them: BGR, from -1 to 1, channels first."""
    pixels = np.asarray(image, dtype=np.float32)[:, :, ::-1].transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[np.newaxis] / 127.5 - 1)


@functools.cache
def _characters() -> tuple[str, ...]:
    """Return the characters that the reader knows, by their numbers."""
    metadata = _session(_READER).get_modelmeta().custom_metadata_map
    return ("", *metadata["character"].splitlines(), " ")


@functools.cache
def _session(model: str) -> onnxruntime.InferenceSession:
    # Found without importing the package, whose code imports OpenCV.
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise ImportError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    path = Path(package.origin).parent / "models" / model
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
