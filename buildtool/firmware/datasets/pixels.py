"""Makes images and uint8 arrays of pixels a network's input: resizes and normalises them.

Normalising uses a table with 256 values for each channel.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np

from buildtool.base.errors import ToolError, UsageError, suggest
from buildtool.base.modes import Resize
from buildtool.firmware.datasets.arrays import Array, quantisation
from buildtool.graph.types import DType, Tensor
from buildtool.options.parsers import NAMED, Normalise

MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # channels of the input -> Pillow's mode
MOST_BYTES = 1 << 28  # of an image's file
MOST_PIXELS = 1 << 27  # of an image: a small file may claim any number
_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # modes with more than 8 bits per channel


def mode(tensor: Tensor, path: str) -> str:
    """Returns Pillow's image mode for an input; raises UsageError for an input that is not an image."""
    shape = tensor.shape
    name = MODES.get(shape[-1]) if len(shape) == 4 and shape[0] == 1 else None
    if name is None:
        text = f"the input '{tensor.name}' of shape {shape} is not an image of 1, 3 or 4 channels"
        raise UsageError(text, path=path, hint="give arrays of its shape: a .npz file, or .npy files")
    return name


def pillow() -> Any:
    """Returns Pillow's module for images; raises ToolError if Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        text = "images need Pillow, which is not installed"
        raise ToolError(text, hint="pip install pillow") from None
    return Image


def check_image(path: Path) -> None:
    """Raises UsageError for a file whose first bytes are not those of an image."""
    try:
        with warnings.catch_warnings(action="ignore"), pillow().open(path):
            pass
    except ToolError:
        raise
    except Exception:
        raise _make_image_error(str(path)) from None


def _make_image_error(path: str) -> UsageError:
    hint = "a folder of a data set may have only images (PNG, JPEG, BMP, ...) and .npy files"
    return UsageError("the file is not an image, or is damaged", path=path, hint=hint)


def image(data: bytes, tensor: Tensor, how: Resize, path: str) -> Array:
    """Returns an image file's pixels, resized to an input's height and width, as uint8 [height, width,
    channels].

    The first frame is used, rotated as its EXIF data says. Transparency is not blended. Raises UsageError for
    a file that is not an image, or has more than 8 bits per channel.
    """
    library = pillow()
    from PIL import ImageOps

    height, width, channels = tensor.shape[1:]
    try:
        with warnings.catch_warnings(action="ignore"), library.open(io.BytesIO(data)) as opened:
            if opened.mode in _DEEP:
                text = f"the image has more than 8 bits per channel (mode {opened.mode})"
                raise UsageError(text, path=path, hint="convert it to 8 bits")
            if opened.width * opened.height > MOST_PIXELS:
                text = f"the image has {opened.width} x {opened.height} pixels, more than {MOST_PIXELS:,}"
                raise UsageError(text, path=path)
            upright = ImageOps.exif_transpose(opened).convert(MODES[channels])
            resized = _fit(upright, (width, height), how, path)
    except UsageError:
        raise
    except Exception:  # Pillow raises many kinds of errors for a damaged file
        raise _make_image_error(path) from None
    return np.asarray(resized, np.uint8).reshape(height, width, channels)


def _fit(opened: Any, size: tuple[int, int], how: Resize, path: str) -> Any:
    """Returns a Pillow image with the input's width and height, resized by bilinear filtering. Raises
    UsageError if `how` forbids to resize it.
    """
    from PIL import Image, ImageOps

    bilinear = Image.Resampling.BILINEAR
    if opened.size == size:
        return opened
    if how is Resize.EXACT:
        own, expected = (f"{width} x {height}" for width, height in (opened.size, size))
        hint = [suggest(resize=str(Resize.CROP)), suggest(resize=str(Resize.STRETCH))]
        raise UsageError(f"the image has {own} pixels, the network takes {expected}", path=path, hint=hint)
    if how is Resize.STRETCH:
        return opened.resize(size, bilinear)
    if how is Resize.PAD:
        return ImageOps.pad(opened, size, bilinear)
    return ImageOps.fit(opened, size, bilinear)


NEAR = 0.02  # share of a range's width by which an input's range may differ from it


def rule(tensor: Tensor, wanted: Normalise | None, path: str) -> Normalise:
    """Returns the rule that turns pixels into real values: `wanted`, or the named rule with the input's
    range.

    Raises UsageError if no named rule has that range (the range of an input of floats is unknown), for a
    quantised input without a scale, and if the number of means is neither 1 nor the number of channels.
    """
    is_float = tensor.dtype is DType.FLOAT32
    quant = None if is_float else quantisation(tensor, path)
    if wanted is not None:
        if len(wanted.means) not in (1, tensor.shape[-1]):
            text = f"there are {len(wanted.means)} means, and the input has {tensor.shape[-1]} channels"
            raise UsageError(text, path=path, option="normalise")
        return wanted
    takes = "floats"
    if quant is not None:
        ends = np.iinfo(tensor.dtype.value)
        low, high = ((end - quant.zero_point) * quant.scale for end in (ends.min, ends.max))
        for named in NAMED.values():
            first, last = named.ends
            if max(abs(low - first), abs(high - last)) <= NEAR * (last - first):
                return named
        takes = f"values from {low:.4g} to {high:.4g}"
    text = f"the input '{tensor.name}' takes {takes}: how are pixels normalised?"
    hints = [
        suggest("0 to 255", normalise="bytes"),
        suggest("0 to 1", normalise="unit"),
        suggest("-1 to 1", normalise="signed"),
        suggest("as the network was trained", normalise="MEANS/DEVIATIONS"),
    ]
    raise UsageError(text, path=path, option="normalise", hint=hints)


def table(tensor: Tensor, how: Normalise) -> Array:
    """Returns an array [channels, 256] with the value of the input's type for every pixel value.

    Quantised values are rounded half to even.
    """
    shape = (tensor.shape[-1], 1)
    means, deviations = (
        np.broadcast_to(np.array(each, np.float64)[:, None], shape) for each in (how.means, how.deviations)
    )
    real = (np.arange(256, dtype=np.float64)[None, :] / how.divisor - means) / deviations
    if tensor.dtype is DType.FLOAT32:
        return real.astype(np.float32)
    assert tensor.quant is not None
    ends = np.iinfo(tensor.dtype.value)
    steps = np.round(real / tensor.quant.scale) + tensor.quant.zero_point
    return cast(Array, np.clip(steps, ends.min, ends.max).astype(tensor.dtype.value))


def quantised(pixels: Array, values: Array) -> Array:
    """Returns the input's values for pixels [..., channels], looked up in the table `values`."""
    return cast(Array, values[np.arange(values.shape[0]), pixels])


def words(tensor: Tensor, how: Normalise) -> str:
    """Returns a text for the answer, which says how pixels are normalised."""
    if how.name in NAMED:
        first, last = (f"{end:g}" for end in how.ends)
        real = f"as {first} to {last}"
    else:
        real = f"as (p / 255 - mean) / deviation with {how.name}"
    if tensor.quant is None:
        return real
    return f"{real}, quantised by scale {tensor.quant.scale:.6g} and zero point {tensor.quant.zero_point}"
