"""A fault in the weights, a multiplier, a kernel or the arena's plan is seen, and the right tensor named."""

import dataclasses
import re
import shutil
import struct
import zlib

import pytest

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.emit.image import HEADER_BYTES
from buildtool.firmware.planned import plan_model
from buildtool.firmware.run import execute
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.target.kernels import kernels_root
from buildtool.target.types import Target

MODEL = "resnet8"
REQUEST = {
    "kind": "validate",
    "model": MODEL,
    "board": "host",
    "tensors": True,
    "reference": "litert",
    "seed": 3,
    "options": {"strategy": "layerwise"},
}


@pytest.fixture(scope="module")
def made():
    return plan_model(MODEL, "host", PlanOptions(strategy="layerwise"))


def _seal(image):
    """The image with checksums that fit: the fault is not one that init would find."""
    payload = bytes(image[HEADER_BYTES:])
    crc = struct.pack("<I", zlib.crc32(payload))
    head = bytes(image[:16]) + crc + bytes(image[20 : HEADER_BYTES - 4])
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def _tamper(monkeypatch, change):
    """Validation with an emitter whose files went through `change(sources) -> files`."""
    emit = execute.emit

    def emit_changed(*arguments):
        sources = emit(*arguments)
        return dataclasses.replace(sources, files={**sources.files, **change(sources)})

    monkeypatch.setattr(execute, "emit", emit_changed)


def _flip(monkeypatch, place_of, mask, seal=_seal):
    def change(sources):
        image = bytearray(sources.image.data)
        image[place_of(sources)] ^= mask
        return {f"{sources.net}_weights.bin": seal(image)}

    _tamper(monkeypatch, change)


def _output(made, position):
    return made.graph.tensors[made.graph.ops[position].outputs[0]]


def _positions(made, kind):
    return [i for i, op in enumerate(made.graph.ops) if op.kind is kind]


@pytest.mark.slow
@pytest.mark.parametrize("nth", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (-1,))])
def test_one_weight_s_sign_is_seen(monkeypatch, made, nth):
    position = _positions(made, OpKind.CONV_2D)[nth]
    op = made.graph.ops[position]
    filters = made.graph.tensors[op.inputs[1]]
    head = -(-(16 + 12 * filters.shape[0]) // 16) * 16  # constants, then channels, aligned
    _flip(monkeypatch, lambda sources: sources.image.places.constants[position] + head, 0x80)
    answer = handle(REQUEST)
    assert not answer["exact"]
    first = answer["first_difference"]
    assert first["tensor"] == _output(made, position).name
    assert first["operator"] == op.place
    assert first["max_abs_diff"] > 0 and first["elements"] > 0
    # one filter: its channel alone differs
    assert first["elements"] <= _output(made, position).elements // filters.shape[0]
    assert first["first_element"] % filters.shape[0] == 0


def test_a_damaged_image_is_refused_by_the_firmware(monkeypatch):
    _flip(monkeypatch, lambda sources: len(sources.image.data) // 2, 1, seal=bytes)
    with pytest.raises(ToolError, match="init gave status 5"):
        handle(REQUEST)


@pytest.mark.slow
def test_a_kernel_that_is_off_by_one_is_seen(monkeypatch, made, tmp_path):
    shutil.copytree(kernels_root(), tmp_path / "kernels")
    monkeypatch.setattr(Target, "source", lambda target, name: tmp_path / "kernels" / name)
    position = _positions(made, OpKind.ADD)[1]
    kernel = next(k for k in made.target.kernels if k.name == made.plan.kernels[position])
    (source,) = (tmp_path / "kernels" / name for name in kernel.sources)
    width = _output(made, position).shape[3]
    source.write_text(
        f"#define {kernel.symbol} right\n{source.read_text()}\n#undef {kernel.symbol}\n"
        f"void {kernel.symbol}(const void *constants, const nn_view *in1, const nn_view *in2,\n"
        f"                     const nn_view *out, const nn_window *window) {{\n"
        f"    right(constants, in1, in2, out, window);\n"
        f"    nn_out_data(out)[7] ^= out->channels == {width};\n}}\n"
    )
    answer = handle(REQUEST)
    assert not answer["exact"]
    first = answer["first_difference"]
    assert (first["tensor"], first["first_element"]) == (_output(made, position).name, 7)
    assert first["elements"] == 1 and first["max_abs_diff"] == 1


@pytest.mark.slow
def test_two_buffers_in_one_place_are_seen(monkeypatch):
    """The highest buffer moved to the arena's start, behind the plan checker's back."""

    def overlap(sources):
        text = sources.files[f"{sources.net}.c"].decode()
        highest = max(int(offset) for offset in re.findall(r"arena \+ (\d+)\b", text))
        return {f"{sources.net}.c": re.sub(rf"arena \+ {highest}\b", "arena + 0", text).encode()}

    _tamper(monkeypatch, overlap)
    answer = handle(REQUEST)
    assert not answer["exact"]
    assert answer["first_difference"]["elements"] > 1


@pytest.mark.slow
def test_a_write_beyond_the_arena_is_seen(monkeypatch):
    """The arena declared smaller than the buffers in it."""

    def shrink(sources):
        text = sources.files[f"{sources.net}.h"].decode()
        smaller = re.sub(r"(_ARENA_BYTES) (\d+)", lambda m: f"{m[1]} {int(m[2]) - 64}", text)
        assert smaller != text
        return {f"{sources.net}.h": smaller.encode()}

    _tamper(monkeypatch, shrink)
    with pytest.raises(ToolError, match="arena"):
        handle(REQUEST)
