"""A network of uint8 as firmware: bytes in, bytes out, and every tensor as LiteRT's uint8 kernels have it."""

from __future__ import annotations

import pytest
from uint8nets import small_classifier

from buildtool.api import handle


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "options"),
    [("cortex-m4", {}), ("host", {"image": "stream"}), ("cortex-m55", {"objective": "ram"})],
)
def test_a_network_of_uint8_equals_litert(board, options, tmp_path) -> None:
    model = tmp_path / "older.tflite"
    model.write_bytes(small_classifier())
    request = {"kind": "validate", "model": str(model), "board": board, "reference": "litert", "inputs": 2}
    answer = handle(request | {"tensors": True, "seed": 1, "options": options})
    assert answer["exact"], answer["first_difference"]
    assert answer["tensors_compared"] >= 10
    assert answer["output_values"] > 5
