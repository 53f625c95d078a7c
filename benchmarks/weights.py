"""What constant channels save: python -m benchmarks.weights [NETWORK...] [--board BOARD...] [--instructions]
                                python -m benchmarks.weights --files FOLDER

For each network and board, the plan with all channels (`simplify=structure`) and the one without channels
that are constant or not read (`simplify=weights`): multiply-accumulates, the weight image, the least arena,
and the cost of the plan with the least cost. Without names, the networks are the trained ones of
../shared/models, and networks of the zoo whose filters of least norm were set to zero (`NAME-30%`).
`--instructions` also runs both in the board's emulator and counts. A plan that is larger or slower without
channels ends the run with an error. `--files` analyses all .tflite and .onnx files of a folder, such as those
of strangers.toml, and prints those that lose at least a hundredth of the work or of the weights.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from buildtool import zoo
from buildtool.api import handle
from buildtool.api.answers.simplified import count_removed
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import graph_of
from buildtool.graph.rewrite import rewrite
from buildtool.graph.rewrite.channels import find_kept, without_channels
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.plan.choose.channels import Simplified
from buildtool.plan.models import load_model, read_graph

SHARED = Path(__file__).resolve().parents[2] / "shared/models"
TRAINED = (
    "mlperf_vww96",
    "mcunet_vww5",
    "mcunet_320k_imagenet",
    "mobilenetv2_160",
    "mlperf_kws",
    "mlperf_resnet8",
)
TRAINED += ("mlperf_ad",)
PRUNED = ("ds_cnn-30%", "mobilenetv1_025_96-30%", "resnet8-30%")
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32v", "xcore")
_LAYERS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)


def prune(graph: Graph, share: float) -> Graph:
    """Returns the network with a share of each layer's filters, those of least norm, set to zero."""
    tensors = list(graph.tensors)
    for op in graph.ops:
        if op.kind not in _LAYERS:
            continue
        filters = tensors[op.inputs[1]]
        assert filters.data is not None
        data, axis = filters.data.copy(), 3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0
        by_output = np.moveaxis(data, axis, 0)
        norms = np.abs(by_output.astype(np.int64)).reshape(len(by_output), -1).sum(axis=1)
        by_output[np.argsort(norms, kind="stable")[: int(share * len(norms))]] = 0
        tensors[op.inputs[1]] = replace(filters, data=data)
    return graph_of(graph.name, tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def model(name: str) -> dict[str, object]:
    """Returns a network's file for requests."""
    base, _, share = name.partition("-")
    if share.endswith("%"):
        data = write_model(prune(read_model(zoo.build(base)), int(share[:-1]) / 100))
    elif name in TRAINED:
        data = (SHARED / f"{name}.tflite").read_bytes()
    else:
        data = Path(name).read_bytes()
    return {"name": f"{Path(name).stem.replace('%', '')}.tflite", "data": data}


def seconds(file: Any) -> float:
    """Returns the CPU seconds of the analysis of the weights alone."""
    graph = rewrite(read_model(file["data"]))
    start = time.process_time()
    find_kept(graph)
    return time.process_time() - start


def plans(file: object, board: str, *, instructions: bool) -> list[dict[str, Any]]:
    """Returns the answers with all channels, and without those that are constant or not read."""
    answers = []
    for how in ("structure", "weights"):
        request = {"kind": "plan", "model": file, "board": board, "options": {"simplify": how}}
        answer = handle(request)
        least = handle({**request, "options": {"simplify": how, "objective": "ram"}})
        answer["least_arena_bytes"] = least["arena_bytes"]
        if instructions:
            run = handle({**request, "kind": "profile"})
            answer["instructions"] = run["instructions"]
        answers.append(answer)
    return answers


def change(before: float, after: float) -> str:
    """Returns two figures and their ratio as text."""
    return f"{before:,.0f} -> {after:,.0f} ({after / before:.3f})" if before else "0"


def rows(name: str, boards: Sequence[str], *, instructions: bool) -> Iterator[tuple[str, float]]:
    """Yields a row of the table for each board, and the ratio of the weight images."""
    file = model(name)
    for board in boards:
        try:
            whole, left = plans(file, board, instructions=instructions)
        except PlanError as error:
            yield f"| {name} | {board} | {error.text} | | | |", 1.0
            continue
        keys = ("macs_layerwise", "flash_bytes", "least_arena_bytes", "cost")
        keys += ("instructions",) if instructions else ()
        for key in ("flash_bytes", "least_arena_bytes", "cost"):
            if left[key] > whole[key]:
                raise SystemExit(f"{name} on {board}: {key} {change(whole[key], left[key])}")
        cells = [change(whole[key], left[key]) for key in keys]
        yield f"| {name} | {board} | {' | '.join(cells)} |", left["flash_bytes"] / whole["flash_bytes"]


def survey(folder: Path) -> Iterator[str]:
    """Yields a row for each file that loses some work or some constants, then a sentence about all files."""
    read = narrow = 0
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".tflite", ".onnx")):
        try:
            graph = read_graph(load_model(str(path)))[1]
        except BuildtoolError:
            continue
        read += 1
        kept = find_kept(graph)
        left = without_channels(graph, kept)
        pairs = [(total_macs(graph), total_macs(left)), (graph.constant_bytes, left.constant_bytes)]
        narrow += left is not graph
        if any(after < 0.99 * before for before, after in pairs):
            removed, channels = count_removed(Simplified(left, graph))
            cells = [f"{removed:,} of {channels:,}", *(change(*pair) for pair in pairs)]
            yield f"| {path.stem} | {' | '.join(cells)} |"
    yield f"\n{narrow} of {read} files that can be read have such channels."


def main() -> None:
    """Prints the table, the mean of the weight images, and the time of the analysis."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=[*TRAINED, *PRUNED])
    parser.add_argument("--board", nargs="+", default=BOARDS)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--files", type=Path)
    asked = parser.parse_args()
    if asked.files:
        titles = ["file", "channels removed", "multiply-accumulates", "bytes of constants"]
        print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
        for line in survey(asked.files):
            print(line, flush=True)
        return
    titles = ["network", "board", "multiply-accumulates", "weight image", "least arena", "estimated cost"]
    titles += ["instructions"] if asked.instructions else []
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    ratios: dict[str, list[float]] = {}
    times = {name: seconds(model(name)) for name in asked.networks}
    for name in asked.networks:
        for row, ratio in rows(name, asked.board, instructions=asked.instructions):
            print(row, flush=True)
            ratios.setdefault(name, []).append(ratio)
    trained = [math.prod(ratios[name]) ** (1 / len(ratios[name])) for name in TRAINED if name in ratios]
    if trained:
        mean = sum(trained) / len(trained)
        slowest = max(times, key=lambda name: times[name])
        print(f"\nThe analysis of the weights takes up to {times[slowest]:.2f} s of CPU time ({slowest}).")
        print(f"The weight images of the trained networks: {mean:.3f} of their size in the mean.")


if __name__ == "__main__":
    main()
