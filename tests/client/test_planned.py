"""What builds print about a plan."""

from thinnets import thin_model

from buildtool.api import handle
from buildtool.client import emitted_lines


def emitted(seed):
    model = {"name": "net.tflite", "data": thin_model("ds_cnn", seed)}
    return handle({"kind": "emit", "model": model, "board": "host"})


def test_a_build_says_that_other_channels_are_constant(tmp_path):
    first, second = emitted(0), emitted(1)
    assert emitted_lines(first, tmp_path).endswith(" channels removed")  # nothing was emitted before
    (tmp_path / "net.plan").write_bytes(first["files"]["net.plan"])
    assert emitted_lines(first, tmp_path).count("\n") == 0
    line, more = emitted_lines(second, tmp_path).split("\n")
    assert (
        line.startswith("net: arena ")
        and more == "net: planned again, as other channels can be removed with these weights"
    )
    (tmp_path / "net.plan").write_bytes(b"damaged")
    assert emitted_lines(second, tmp_path) == line
