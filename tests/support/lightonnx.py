"""The networks in the onnx package's test data: shapes of classic networks, weights left out."""

from pathlib import Path

import onnx

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


def path(name):
    return FOLDER / f"light_{name}.onnx"
