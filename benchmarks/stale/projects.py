"""A small network, a board's file and options that are edited at random, as people edit them."""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from retrained import retrained  # noqa: E402

from buildtool.graph.tflite.writer import write_model  # noqa: E402
from buildtool.graph.types import Activation, Graph, OpKind, Tensor  # noqa: E402
from buildtool.zoo.drawn import NetBuilder  # noqa: E402

# Boards with the same memories and core, with other memories alone, and of other families.
BOARDS = {
    "cortex-m4": "weights",
    "cortex-m55": "",
    "mps2-an500": "",
    "stm32f746g-disco": "flash",
    "nucleo-f767zi": "flash",
    "hifive1": "flash",
    "esp32-c3": "flash",
    "qemu-virt-rv32v": "",
    "host": "",
}


@dataclass(frozen=True)
class Project:
    """The state of a project; edits make a new one.

    `layers`: seeds, from each of which an operator is drawn. `quants`: (tensor, seed) for changed
    quantisations. `numbers`: the seed for the order of tensors in the file (0: the original order).
    """

    layers: tuple[int, ...] = (3, 11, 25)
    size: int = 9
    weights: int = 0
    per_channel: bool = True
    trained: int = 0
    quants: tuple[tuple[int, int], ...] = ()
    names: int = 0
    numbers: int = 0
    board: str = "cortex-m4"
    base: tuple[tuple[str, Any], ...] = ()
    own: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    net: str = "net"
    edit: str = field(default="the first", compare=False)

    def model(self) -> bytes:
        """Returns the content of the network's file."""
        graph = _graph(self)
        if self.trained:
            graph = retrained(graph, self.trained)
        tensors = list(graph.tensors)
        activations = [t for t, tensor in enumerate(tensors) if tensor.data is None and tensor.quant]
        for which, how in self.quants:
            index = activations[which % len(activations)]
            tensors[index] = _requantised(tensors[index], how)
        if self.names:
            tensors = [replace(t, name=f"renamed{self.names}/{i}") for i, t in enumerate(tensors)]
        return write_model(_renumbered(replace(graph, tensors=tuple(tensors)), self.numbers))

    def write(self, folder: Path) -> None:
        """Writes the project's files: net.tflite, mine.toml and base.toml, which mine.toml extends."""
        (folder / "net.tflite").write_bytes(self.model())
        (folder / "base.toml").write_text(_toml(self.board, self.base))
        (folder / "mine.toml").write_text(_toml("base.toml", self.own))


def _graph(project: Project) -> Graph:
    net = NetBuilder(project.weights)
    x = net.input((1, project.size, project.size, 3))
    channels = project.per_channel
    for number in project.layers:
        draw = random.Random(number)
        kind = draw.randrange(7)
        height = net.shape(x)[1]
        wide = draw.choice((4, 6, 8))
        kernel = draw.choice((1, 3))
        if kind in (0, 1):
            stride = draw.choice((1, 2))
            x = net.conv(x, wide, kernel=(kernel,) * 2, stride=(stride,) * 2, same=True, per_channel=channels)
        elif kind == 2:
            x = net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=1, per_channel=channels)
        elif kind == 3:
            y = net.conv(x, net.shape(x)[3], activation=Activation.RELU, per_channel=channels)
            x = net.elementwise(draw.choice((OpKind.ADD, OpKind.SUB, OpKind.MUL)), x, y)
        elif kind == 4 and height >= 2:
            x = net.pool(draw.choice((OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D)), x, (2, 2), (2, 2))
        elif kind == 5:
            x = net.concat([net.conv(x, 4, per_channel=channels), x])
        else:
            x = net.unary(draw.choice((OpKind.LOGISTIC, OpKind.TANH, OpKind.HARD_SWISH)), x)
    return net.graph([net.softmax(net.dense(net.flatten(x), 4))])


def _requantised(tensor: Tensor, how: int) -> Tensor:
    """Returns the tensor with another zero point, another scale, or a common quantisation."""
    assert tensor.quant is not None
    point, scale = tensor.quant.zero_point, tensor.quant.scale
    kind = how % 4
    if kind == 0:
        point = (-128, 0, 127, 5)[how // 4 % 4]
    elif kind == 1:
        scale = float(np.float32(scale * 2.0 ** (how // 4 % 5 - 2)))
    elif kind == 2:
        scale, point = 0.0625, 0
    else:
        scale = float(np.float32(scale * 1.0001))
    quant = dataclasses.replace(tensor.quant, scales=(scale,), zero_points=(point,))
    return dataclasses.replace(tensor, quant=quant)


def _renumbered(graph: Graph, seed: int) -> Graph:
    """Returns the same network with its tensors in a random order; seed 0 keeps the order."""
    if not seed:
        return graph
    order = list(range(len(graph.tensors)))
    random.Random(seed).shuffle(order)
    new = {old: number for number, old in enumerate(order)} | {-1: -1}

    def named(tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new[t] for t in tensors)

    ops = tuple(replace(op, inputs=named(op.inputs), outputs=named(op.outputs)) for op in graph.ops)
    tensors = tuple(graph.tensors[old] for old in order)
    return replace(graph, tensors=tensors, ops=ops, inputs=named(graph.inputs), outputs=named(graph.outputs))


def _toml(extends: str, given: tuple[tuple[str, Any], ...]) -> str:
    lines = [f'extends = "{extends}"', 'title = "A board"']
    tables = []
    for name, value in sorted(given, key=lambda pair: pair[0].count(".")):
        *table, key = name.rsplit(".", 1)
        text = f"{key} = {value!r}".replace("'", '"')
        (tables if table else lines).append(f"[{table[0]}]\n{text}" if table else text)
    return "\n".join([*lines, *tables]) + "\n"


# ---- edits ---------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Any, ...]] = {
    "ram": ("700", "1500", "3K", "6K", "20K", "1M"),
    "image": ("overwritable", "resident", "stream"),
    "objective": ("cost", "ram"),
    "in_place": ("rows", "elementwise", "none"),
    "max_f": (1, 1.2, 2),
    "max_cost": (20_000, 500_000),
    "max_flash": ("1K", "4K", "1M"),
    "hand_off": (1, 4, 8),
    "strategy": ("best", "layerwise", "msf-cnn", "xcore-strips"),
    "order": ("given", "best"),
    "simplify": ("weights", "structure"),
}


def edited(project: Project, draw: random.Random) -> Project:
    """Returns the project after one random edit."""
    name = draw.choice(sorted(_EDITS))
    return replace(_EDITS[name](project, draw), edit=name)


def _layers(project: Project, draw: random.Random) -> Project:
    layers = list(project.layers)
    where, what = draw.randrange(len(layers)), draw.randrange(40)
    how = draw.randrange(4)
    if how == 0 and len(layers) < 6:
        layers.insert(where, what)
    elif how == 1 and len(layers) > 2:
        layers.pop(where)
    elif how == 2:
        draw.shuffle(layers)
    else:
        layers[where] = what
    return replace(project, layers=tuple(layers), quants=())


def _quants(project: Project, draw: random.Random) -> Project:
    return replace(project, quants=(*project.quants, (draw.randrange(20), draw.randrange(20)))[-3:])


def _with(pairs: tuple[tuple[str, Any], ...], name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(({**dict(pairs), name: value} if value is not None else dict(pairs)).items()))


def _base(project: Project, draw: random.Random) -> Project:
    name, values = draw.choice(
        [
            ("alignment", (4, 8, 16, 32)),
            ("reserved_bytes", (0, 256, 4096)),
            ("stack_bytes", (2048, 4096)),
            ("core.families", (["reference"],)),
            (f"memory.{BOARDS[project.board]}.bandwidth", (1_000_000, 40_000_000)),
            ("core.defines", (["A=1"], [])),
        ]
    )
    if ".." in name:
        return replace(project, base=())
    return replace(project, base=_with(project.base, name, draw.choice(values)))


def _own(project: Project, draw: random.Random) -> Project:
    name, values = draw.choice([("clock_hz", (1_000_000, 8_000_000)), ("alignment", (8, 16))])
    return replace(project, own=_with(project.own, name, draw.choice(values)))


def _board(project: Project, draw: random.Random) -> Project:
    return replace(project, board=draw.choice(sorted(BOARDS)), base=(), own=())


def _options(project: Project, draw: random.Random) -> Project:
    name = draw.choice(sorted(OPTIONS))
    left = {key: value for key, value in project.options if key != name}
    if draw.randrange(3) or name not in dict(project.options):
        left[name] = draw.choice(OPTIONS[name])
    while len(left) > 3:
        left.pop(draw.choice(sorted(left)))
    return replace(project, options=tuple(sorted(left.items())))


_EDITS: dict[str, Callable[[Project, random.Random], Project]] = {
    "a layer": _layers,
    "another layer": _layers,
    "options": _options,
    "options again": _options,
    "quantisation of a tensor": _quants,
    "the board": _board,
    "the board's base": _base,
    "the board's file": _own,
    "per channel": lambda p, draw: replace(p, per_channel=not p.per_channel),
    "retrained": lambda p, draw: replace(p, trained=draw.randrange(4)),
    "weights": lambda p, draw: replace(p, weights=draw.randrange(4)),
    "names of tensors": lambda p, draw: replace(p, names=draw.randrange(3)),
    "numbers of tensors": lambda p, draw: replace(p, numbers=draw.randrange(3)),
    "the image's size": lambda p, draw: replace(p, size=draw.choice((6, 9, 12))),
    "the name": lambda p, draw: replace(p, net=draw.choice(("net", "other"))),
}
