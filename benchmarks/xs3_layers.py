"""Layers of networks in the XS3 runner: issue slots of our kernels and of XMOS's own, on one thread.

    python -m benchmarks.xs3_layers ARCHIVE NETWORK.tflite... [--every]

ARCHIVE is as for benchmarks.xs3_vendor. The layers are convolutions, depthwise convolutions and dense layers,
each shape once. Our kernels have the network's weights and requantise exactly, and the outputs are compared
with those of the plain kernels. The vendor's kernels (lib_nn's `execute` with the functions that xformer
takes) have random weights. Their input is padded before the call; this is not counted, but `pad_3_to_4` is.
Stalls are those of the runner's model. Prints a summary of each network; --every prints a row for each layer
before it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

import numpy as np
from buildtool_plugins.xs3 import vendor_elf
from buildtool_plugins.xs3.assembler import assemble
from buildtool_plugins.xs3.compiler import runtime
from buildtool_plugins.xs3.linker import Memory, link
from buildtool_plugins.xs3.machine import Counts, Machine
from ckernels import whole
from xs3family import Xs3Family

from benchmarks.xs3_vendor import LIBRARY, archive
from buildtool.base.errors import ToolError, UsageError
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.models import load_model, read_graph
from buildtool.target.catalogue import features

KINDS = {
    OpKind.CONV_2D: "convolution",
    OpKind.DEPTHWISE_CONV_2D: "depthwise",
    OpKind.FULLY_CONNECTED: "dense",
}
SHAPE = ("ih", "iw", "cin", "oh", "ow", "cout", "kh", "kw", "sh", "sw")
LANES, VECTOR = 16, 32
FUNCTIONS = {
    "execute": "_ZN2nn7executeE",
    "generic": "_ZN2nn20mat_mul_generic_int8E",
    "direct": "_ZN2nn19mat_mul_direct_int8E",
    "depthwise": "_ZN2nn17mat_mul_dw_directE",
    "deref": "_ZN2nn14memcpyfn_derefE",
    "valid": "_ZN2nn22memcpyfn_imtocol_validE",
    "outputs": "_ZN2nn9otfn_int8E",
    "pad": "pad_3_to_4_run",
}


class Vendor:
    """XMOS's functions in a simulated machine with room for whole layers."""

    def __init__(self, path: Path) -> None:
        objects, seen = [], set[str]()
        for name, member in vendor_elf.members(archive(path)):
            if name.endswith((".c.obj", ".S.obj", ".cpp.obj")):
                known = vendor_elf.load(member, name)
                names = {n for n, at in known.globals.items() if at.section is not None and not at.is_weak}
                if not names & seen:
                    seen |= names
                    objects.append(known)
        found = {
            key: next(n for n in sorted(seen) if n.startswith(prefix) and "." not in n)
            for key, prefix in FUNCTIONS.items()
        }
        image = link(
            [*objects, assemble(LIBRARY, "library"), *runtime()],
            list(found.values()),
            Memory(0x80000, 1 << 23),
        )
        self.machine = Machine(image)
        self.at = {key: image.address(name) for key, name in found.items()}

    def _words(self, *numbers: int) -> int:
        return self.machine.place(np.array([n & 0xFFFFFFFF for n in numbers], np.uint32), after=64)

    def _noise(self, size: int) -> int:
        return self.machine.place(np.random.default_rng(size).bytes(size), after=160)

    def layer(self, kind: OpKind, of: Mapping[str, int]) -> Counts:
        """Returns the issue slots that a layer of the shape `of` takes with XMOS's functions."""
        m = self.machine
        m.reset()
        kh, kw, cout, oh, ow = of["kh"], of["kw"], of["cout"], of["oh"], of["ow"]
        width, height = (ow - 1) * of["sw"] + kw, (oh - 1) * of["sh"] + kh
        cin = of["cin"] + -of["cin"] % 4
        row, is_depthwise = width * cin, kind is OpKind.DEPTHWISE_CONV_2D
        x, taps = self._noise(height * row), kh * kw * (1 if is_depthwise else cin)
        groups = -(-cout // LANES)
        fetch, fetched = "deref", self._words(of["sh"] * row, of["sw"] * cin)
        if is_depthwise:
            by, how = "depthwise", self._words(kh * kw * LANES, kh - 1, kw - 1, cin, row - kw * cin)
        elif cin % VECTOR == 0 and cout % LANES == 0:
            by = "direct"
            how = self._words(taps * LANES, kh - 1, kw - 1, cin // VECTOR - 1, 0, row - kw * cin)
        else:
            by, how, vectors = "generic", self._words(cout, taps), -(-cin // VECTOR)
            fetch, fetched = (
                "valid",
                self._words(
                    *(of["sh"] * row, of["sw"] * cin, kh - 1, kw - 1, vectors - 1),
                    *((vectors - 1) * VECTOR - cin, cin - vectors * VECTOR, row - kw * cin),
                    *((1 << cin % VECTOR) - 1 if cin % VECTOR else -1, 0),
                ),
            )
        outputs = m.place(np.array([cout & 0xFFFF, cout >> 16, 8, 6], np.uint16))
        filter_ = self._words(fetched, how, outputs, self.at[fetch], self.at[by], self.at["outputs"])
        kernel = self._words(0, oh, 0, ow, 0, groups, 0, 0, cout, 0)
        weights, factors = self._noise((taps + VECTOR) * (cout + LANES)), self._noise(4 * (cout + LANES))
        y, scratch = m.reserve(oh * ow * cout + 64), m.reserve(taps + 64)
        original = self._noise(of["ih"] * of["iw"] * 4)
        m.clear_counts()
        if of["cin"] == 3:
            m.call(
                self.at["pad"],
                m.reserve(of["ih"] * of["iw"] * 4),
                original,
                of["ih"] * of["iw"],
                0,
                is_dual=True,
            )
        arguments = (y, x, filter_, kernel, weights, factors, int(is_depthwise), scratch)
        m.call(self.at["execute"], *arguments, is_dual=True)
        return m.counts()


@dataclass(frozen=True)
class Layer:
    """A layer's shape, the issue slots of our kernel, and those of the vendor's."""

    kind: str
    shape: str
    ours: Counts
    theirs: Counts

    @property
    def ratio(self) -> float:
        """Returns our issue slots divided by the vendor's."""
        return self.ours.issues / self.theirs.issues

    @property
    def with_stalls(self) -> float:
        """Returns the same ratio with the stalls of the runner's model added on both sides."""
        ours, theirs = (of.issues + of.stalls for of in (self.ours, self.theirs))
        return ours / theirs

    def cells(self) -> list[str]:
        """Returns the layer's row of the table."""
        numbers = (
            f"{self.ours.issues:,}",
            f"{self.theirs.issues:,}",
            f"{self.ratio:.2f}",
            f"{self.with_stalls:.2f}",
        )
        return [self.kind, self.shape, *numbers]


def layers(path: Path, ours: Xs3Family, theirs: Vendor) -> Iterator[Layer]:
    """Yields a network's layers, each shape once."""
    graph, seen = read_graph(load_model(str(path.resolve())))[1], set[tuple[Any, ...]]()
    for op in graph.ops:
        of = features(graph, op)
        shape = (op.kind, *(of[name] for name in SHAPE))
        if op.kind not in KINDS or shape in seen:
            continue
        seen.add(shape)
        kernel = "x".join(str(of[name]) for name in ("kh", "kw"))
        text = f"{of['oh']} x {of['ow']}, {of['cin']} to {of['cout']}, {kernel}"
        text += f", stride {of['sh']}" if of["sh"] > 1 else ""
        own = _count(ours, graph, op)
        yield Layer(KINDS[op.kind], text, own, theirs.layer(op.kind, of))


def _count(family: Xs3Family, graph: Graph, op: Op) -> Counts:
    rng = np.random.default_rng(0)
    shapes = [(1, 1, *graph.tensors[t].shape)[-3:] for t in (op.inputs[0], op.outputs[0])]
    x, y = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes)
    family.machine.clear_counts()
    family.compute(graph, op, [whole(x)], whole(y), (0, shapes[1][0], 0, shapes[1][1]))
    return family.machine.counts()


def summary(name: str, found: list[Layer]) -> Iterator[list[str]]:
    """Yields a row for each kind of layers, and one for all."""
    for kind in (*KINDS.values(), "all"):
        of = [layer for layer in found if kind in (layer.kind, "all")]
        if of:
            ratios = sorted(layer.ratio for layer in of)
            issues = [sum(getattr(layer, who).issues for layer in of) for who in ("ours", "theirs")]
            stalled = statistics.median(layer.with_stalls for layer in of)
            cells = (f"{len(of)}", f"{statistics.median(ratios):.2f}", f"{ratios[-1]:.2f}", f"{stalled:.2f}")
            yield [name, kind, *cells, f"{issues[0] / issues[1]:.2f}"]


def _print(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Prints the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archive", type=Path, metavar="ARCHIVE")
    parser.add_argument("networks", type=Path, nargs="+", metavar="NETWORK")
    parser.add_argument("--every", action="store_true", help="a row for each layer")
    args = parser.parse_args()
    try:
        ours, theirs = Xs3Family("xcore_vpu"), Vendor(args.archive)
    except (ToolError, UsageError) as error:
        sys.exit(str(error))
    found: dict[str, list[Layer]] = {}
    if args.every:
        print("| kind | layer | ours | the vendor's | ratio | with stalls |\n| --- | --- |" + " ---: |" * 4)
    for path in args.networks:
        for layer in layers(path, ours, theirs):
            found.setdefault(path.stem, []).append(layer)
            if args.every:
                _print(layer.cells())
    print("\n| network | kind | layers | median | most | median with stalls | all issues |")
    print("| --- | --- |" + " ---: |" * 5)
    for name, of in found.items():
        for cells in summary(name, of):
            _print(cells)


if __name__ == "__main__":
    main()
