"""Training changes the weight image, but no file that is compiled, not even in a comment."""

from __future__ import annotations

import json

import pytest
from everyop import every_operator
from retrained import retrained

from buildtool.api import handle
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.zoo import build

ZOO = {name: name for name in ("ds_cnn", "resnet8")} | {
    "mobilenet": "mobilenetv2:size=32,alpha=0.35,classes=10"
}
# Some channels of the twin are saturated for every input: without `simplify` they would be removed.
STREAM = {"image": "stream", "objective": "ram", "simplify": "structure"}
CASES = [("ds_cnn", {}), ("resnet8", {}), ("mobilenet", STREAM), ("every operator", {})]
# Files that training may change. The description of the arena has the tensors' names; the header of
# quantisation macros is optional.
CHANGED = {"net_weights.bin", "net_quantization.h", "net_arena.json"}


def network(name: str) -> Graph:
    return read_model(build(ZOO[name])) if name in ZOO else every_operator()


def files(model: bytes, folder, options: dict[str, str]) -> dict[str, bytes]:
    path = folder / "net.tflite"
    path.write_bytes(model)
    return handle({"kind": "emit", "model": str(path), "board": "cortex-m55", "options": options})["files"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), CASES, ids=[name for name, _ in CASES])
def test_other_weights_scales_and_names_change_the_image_alone(name, mode, tmp_path) -> None:
    graph = network(name)
    twin = retrained(graph)
    assert topology_digest(twin) == topology_digest(graph)
    before, after = (files(write_model(g), tmp_path, mode) for g in (graph, twin))
    assert {name for name in before if before[name] != after[name]} == CHANGED
    assert len(before["net_weights.bin"]) == len(after["net_weights.bin"])
    names = [_names(emitted["net_arena.json"]) for emitted in (before, after)]
    assert names[0] != names[1]
    assert all(name.startswith("retrained/") for name in names[1])


def _names(arena: bytes) -> list[str]:
    return [name for buffer in json.loads(arena)["buffers"] for name in buffer["tensor_names"]]
