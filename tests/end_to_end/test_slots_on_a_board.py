"""An update of the weights in slots, in the emulator: cut after each operation of the flash, and in it.

After every cut the firmware starts; its output, the reference's for old or for new weights, tells which run.
"""

import struct
from pathlib import Path

import numpy as np
import pytest
from paths import TESTS
from probe import ROOT, link, load_board, one_set, run

from buildtool.emit.sources import emit, kernel_sources
from buildtool.firmware.firmware import write_files
from buildtool.graph import reference
from buildtool.graph.rewrite import rewrite
from buildtool.plan.assemble.layerwise import plan
from buildtool.target.kernels import application_sources, kernel_includes
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder

pytestmark = pytest.mark.slow


def network(seed: int):
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 6, 6, 3)), 16, kernel=(3, 3), same=True)
    return rewrite(net.graph([net.dense(net.flatten(net.conv(x, 4)), 10)]))


def numbers(name: str, kind: str, data: bytes | np.ndarray) -> str:
    values = ", ".join(map(str, np.frombuffer(bytes(data), kind).tolist()))
    c_type = {"u1": "uint8_t", "i1": "int8_t"}[kind]
    return f"static const {c_type} {name}[] __attribute__((aligned(16))) = {{{values}}};\n"


def test_a_cut_after_or_in_every_operation_leaves_a_network_that_runs(tmp_path: Path) -> None:
    target, graphs = load_target("cortex-m4"), [network(1), network(2)]
    chosen = plan(graphs[0], target)
    made = [emit(graph, chosen, target, "net") for graph in graphs]
    assert made[0].image.layout == made[1].image.layout
    own = {name: data for name, data in made[0].files.items() if name != "harness_net.h"}  # of the probe
    write_files(own, tmp_path)
    image = np.random.default_rng(3).integers(
        -128, 128, graphs[0].tensors[graphs[0].inputs[0]].shape, np.int8
    )
    outputs = [reference.execute(graph, [image])[graph.outputs[0]] for graph in graphs]
    assert not np.array_equal(*outputs)
    text = numbers("INPUT", "i1", image.tobytes())
    for name, one, output in zip(("OLD", "NEW"), made, outputs, strict=True):
        text += numbers(name, "u1", one.image.data) + numbers(f"{name}_OUTPUT", "i1", output.tobytes())
    (tmp_path / "images.h").write_text(text)
    includes = tuple(f"-I{folder}" for folder in (tmp_path, *kernel_includes(target)))
    sources = [
        *(TESTS / "end_to_end/slots_board/slots_on_board.c", tmp_path / "net.c", ROOT / "probe_weights.S"),
        *(*kernel_sources(chosen, target), *application_sources()),
    ]
    (tmp_path / "objects").mkdir()
    elf = link(
        load_board("cortex-m4"), "gcc", sources, (*includes, "-Wno-sign-conversion"), tmp_path / "objects"
    )
    found = run("cortex-m4", elf, one_set("echo")).files["output.bin"]
    total, old, new, neither = struct.unpack_from("<4I", found)
    blocks = -(-len(made[0].image.data) // 1024)
    assert total == blocks + -(-len(made[0].image.data) // 32)
    assert (new, neither) == (1, 0)  # of the last operation, done as a whole
    assert old == total
