"""A run that faults says in which operator, in which kernel, and what overflowed."""

import pytest

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.firmware.run import execute
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder


def small_stack(folder, base):
    board = folder / "tight.toml"
    board.write_text(f'extends = "{base}"\nstack_bytes = 512\n')
    return str(board)


@pytest.mark.parametrize(
    ("base", "kernel"), [("cortex-m55", "conv2d_mve"), pytest.param("qemu-virt-rv32", "conv2d_riscv")]
)
def test_a_stack_that_is_too_small_names_the_operator_and_its_kernel(base, kernel, tmp_path, monkeypatch):
    """Where code cannot be read for its frames, the overflow is found by running it."""
    monkeypatch.setattr(execute, "refuse_unless_enough", lambda *args: None)
    net = NetBuilder(1)
    x = net.conv(net.input((1, 10, 10, 4)), 8, kernel=(3, 3))
    model = tmp_path / "net.tflite"
    model.write_bytes(write_model(net.graph([net.conv(x, 8, kernel=(3, 3))])))
    request = {"kind": "validate", "model": str(model), "board": small_stack(tmp_path, base)}
    with pytest.raises(ToolError, match="after a stack overflow") as caught:
        handle(request)
    assert f"while kernel '{kernel}' computed CONV_2D" in caught.value.text
    assert caught.value.operator.startswith("#0 CONV_2D")
    assert caught.value.hint == "the board's file gives the stack 512 bytes"
