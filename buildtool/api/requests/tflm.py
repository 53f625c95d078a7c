"""The request `tflm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool.api.requests.parts import Request
from buildtool.base.files import Named


@dataclass(frozen=True)
class Tflm(Request):
    """A model's file with arena offsets for TensorFlow Lite Micro."""

    kind: ClassVar = "tflm"
    handler: ClassVar = "buildtool.api.answers.arena:tflm"
    model: Named
