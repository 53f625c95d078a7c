"""Asks the planner what a structure needs on a board before it is trained: RAM, flash, work and time.

These do not depend on the values of weights. So a candidate is priced from a sketch: an int8 network of its
structure with random weights. TensorFlow's converter takes up to half a minute for a network, a sketch a
tenth of a second. The converter is used only for layers that the sketch does not know. A candidate whose
plans all miss the goals is never trained.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from buildtool.api import open_session
from buildtool.api.requests import parse
from buildtool.api.requests.kinds import Front
from buildtool.api.requests.kinds import Plan as PlanRequest
from buildtool.base.code_digest import code_digest
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Objective, Simplify, Strategy
from buildtool.base.session import Session
from buildtool.client.files import Located
from buildtool.emit.image import image_layout
from buildtool.emit.sources import emit
from buildtool.firmware.bound import bound
from buildtool.firmware.planned import prepare
from buildtool.graph import types as g
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, Graph, OpKind, Quantization
from buildtool.plan.choose.choose import choose_plan
from buildtool.plan.choose.fronts import points
from buildtool.plan.choose.limits import estimate_ms
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.models import load_network
from buildtool.plan.types import Plan
from buildtool.split.backend import int8_model, random_images
from buildtool.split.graphs import Call, activation_of, calls_of
from buildtool.split.records import Records, key_of
from buildtool.split.settings import Goals
from buildtool.split.structure import build
from buildtool.split.types import Block, Choice
from buildtool.target.catalogue import select_all
from buildtool.target.choice import load_target
from buildtool.target.hardware import MemoryKind
from buildtool.target.partitions import weights_room
from buildtool.target.registry import board_chain
from buildtool.target.types import Target
from buildtool.zoo.drawn import NetBuilder, quant

if TYPE_CHECKING:
    import keras


class Point(NamedTuple):
    """What one plan of a structure needs."""

    bytes: int  # of the arena
    f: float  # the work, as a multiple of the network's own
    cost: float
    milliseconds: float | None
    code: int | None = None  # bytes of flash beside the weight image at most; None: no sizes are recorded


@dataclass(frozen=True)
class Price:
    """The memory, work and time that a structure needs on a board, and the memory that the board has."""

    board: str
    ram: tuple[Point, ...]  # the front of memory and work, and layer by layer plans, the least memory first
    layerwise: int | None  # bytes of the arena layer by layer; None: there is no such plan
    flash: int  # bytes of the weight image
    macs: int  # of one inference
    unit: str  # of all costs
    ram_there: int  # bytes for the arena
    flash_there: int  # bytes for weights
    code_there: int | None = None  # bytes for code beside them; None: code is not counted

    @property
    def least(self) -> Point:
        """The plan with the least memory."""
        return self.ram[0]

    def best(self, goals: Goals) -> Point:
        """Returns the plan with the least cost within the goals for RAM and flash.

        If no plan is within them, it is the plan with the least memory.
        """
        within = [p for p in self._select_fitting(goals) if not self._check_flash(p, goals)]
        return min(within, key=lambda p: p.cost, default=self.least)

    def image(self, point: Point) -> int:
        """Returns the bytes of flash of a plan: the weight image, and the code if its size is known."""
        return self.flash + (point.code or 0)

    def missed_goal(self, goals: Goals) -> str:
        """Returns a text that names the goal, or board memory, that all plans exceed; "" if a plan fits."""
        if why := self._check_flash(min(self.ram, key=self.image), goals):
            return why
        fitting = self._select_fitting(goals)
        if not fitting:
            return _describe_excess("RAM", self.least.bytes, self._room(goals), "the smallest arena")
        within = [point for point in fitting if not self._check_flash(point, goals)]
        if not within:
            return self._check_flash(min(fitting, key=self.image), goals)
        if goals.max_ms is None:
            return ""
        times = [point.milliseconds for point in within if point.milliseconds is not None]
        if not times:
            return f"the time on {self.board} is unknown: its costs are {self.unit}"
        is_met = min(times) <= goals.max_ms
        return "" if is_met else f"time: {min(times):,.1f} ms at least, {goals.max_ms:,g} are allowed"

    def _room(self, goals: Goals) -> int:
        return self.ram_there if goals.ram is None else min(goals.ram, self.ram_there)

    def _select_fitting(self, goals: Goals) -> list[Point]:
        return [point for point in self.ram if point.bytes <= self._room(goals)]

    def _check_flash(self, point: Point, goals: Goals) -> str:
        """Returns a text that says why weights and code of a plan do not fit into flash; "" if they fit."""
        if self.flash > self.flash_there:
            return _describe_excess("flash", self.flash, self.flash_there, "the weight image")
        if goals.flash is not None and self.image(point) > goals.flash:
            what = "the weight image" if point.code is None else "the weight image with code"
            return _describe_excess("flash", self.image(point), goals.flash, what)
        if point.code is not None and self.code_there is not None and point.code > self.code_there:
            return _describe_excess("flash", point.code, self.code_there, "code beside the weight image")
        return ""

    def data(self) -> dict[str, Any]:
        """Returns the price as plain values for the records."""
        return {**vars(self), "ram": [list(point) for point in self.ram]}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Price:
        """Returns the price for the values that the method `data` returned. Other values are ignored."""
        own = {field.name: data[field.name] for field in fields(cls)}
        return cls(**{**own, "ram": tuple(map(Point._make, data["ram"]))})


def _describe_excess(what: str, need: int, room: int, subject: str) -> str:
    return f"{what}: {subject} takes {need:,} bytes, there are {room:,}"


class Pricer:
    """Prices structures of one network on one board, each only once.

    `board` is a name or a .toml file. `records` stores each price under a key that is made from everything on
    which the price depends.
    """

    def __init__(
        self, model: keras.Model, blocks: Sequence[Block], board: str | Path, goals: Goals, records: Records
    ) -> None:
        self.model, self.blocks, self.board, self.goals = model, blocks, str(board), goals
        self._records = records
        self.prices: dict[str, Price] = {}

    def price(self, choice: Choice) -> Price:
        """Returns the price of a structure, from the records if possible. Raises the planner's errors."""
        name = choice.key()
        if name not in self.prices:
            key = key_of({**self._about, "choice": name})
            data = self._records.get(key)
            if data is None:
                file = _convert(build(self.model, self.blocks, choice, grouped=False))
                price = price_of(file, self.board, open_session())
                data = {**price.data(), "what": "price", "choice": name}
                self._records.put(key, data)
            self.prices[name] = Price.of_data(data)
        return self.prices[name]

    def missed(self, choice: Choice) -> str:
        """Returns a text that says why a structure misses the goals or has no plan; "" if it meets them."""
        try:
            return self.price(choice).missed_goal(self.goals)
        except BuildtoolError as error:
            return error.text

    def figures(self, choice: Choice) -> dict[str, float]:
        """Returns a structure's RAM, flash and cost, by name. Empty if the planner refuses the structure."""
        try:
            price = self.price(choice)
        except BuildtoolError:
            return {}
        best = price.best(self.goals)
        return {"ram": float(price.least.bytes), "flash": float(price.image(best)), "cost": best.cost}

    @cached_property
    def _about(self) -> dict[str, str]:
        """Everything that a price depends on besides the choice, by name.

        For a board's file, this includes the files that it extends.
        """
        board = self.board
        if board.endswith(".toml"):
            with contextlib.suppress(OSError):  # the planner reports what is wrong with the file
                chain = b"\0".join(path.read_bytes() for path in board_chain(board))
                board = hashlib.sha256(chain).hexdigest()
        network = hashlib.sha256(self.model.to_json().encode()).hexdigest()
        return {"what": "price", "network": network, "board": board, "code": code_digest()}


# ---- by the planner --------------------------------------------------------------------------------


def price_of(file: bytes, board: str, session: Session) -> Price:
    """Returns the price of a .tflite file's network on a board, even if the network does not fit.

    Raises the planner's errors.
    """
    model = {"name": "candidate.tflite", "data": file}
    target, prepared = prepare_for({"kind": "front", "model": model, "board": board}, session)
    graph = prepared.graphs[0]
    plans = [(point.graph, point.plan) for point in points(prepared, None)]
    with contextlib.suppress(BuildtoolError):  # often one of these costs the least, and is not on the front
        options = replace(prepared.options, strategy=Strategy.LAYERWISE, hand_off=None)
        for objective in (Objective.COST, Objective.RAM):
            plans.append(choose_plan(prepared.with_strategy(replace(options, objective=objective))))
    weights = image_layout(graph, select_all(target, graph)).size
    front = {
        Point(p.arena_bytes, p.f, p.cost, estimate_ms(p.cost, target), code_bytes(net, p, target, session))
        for net, p in plans
    }
    hardware = target.board
    code_room = hardware.memory(hardware.code).size - (weights if hardware.code == hardware.weights else 0)
    return Price(
        board=hardware.name,
        ram=tuple(sorted(front, key=lambda p: (p.bytes, p.cost))),
        layerwise=min((p.arena_bytes for _, p in plans if p.strategy == Strategy.LAYERWISE), default=None),
        flash=weights,
        macs=plans[0][1].macs_layerwise,
        unit=str(target.cost_unit),
        ram_there=prepared.available,
        flash_there=weights_room(hardware),
        code_there=None if any(point.code is None for point in front) else max(0, code_room),
    )


def prepare_for(request: Mapping[str, Any], session: Session) -> tuple[Target, Prepared]:
    """Returns the target and the planning problem of a request of kind `plan` or `front`.

    The network keeps all channels, as its weights are not trained yet.
    """
    parsed = parse(Located(request).request)
    assert isinstance(parsed, Front | PlanRequest)
    target = load_target(parsed.target, session)
    options = replace(parsed.options, simplify=Simplify.STRUCTURE)
    return target, prepare(load_network(parsed.model, session), target, options, session)


def code_bytes(graph: Graph, plan: Plan, target: Target, session: Session) -> int | None:
    """Returns an upper bound for the flash that the test firmware needs besides the weight image, in bytes.

    It is for code and constants. The sizes are recorded ones, for the newest compiler of the board's first
    toolchain, and do not depend on what is installed. Returns None if no sizes are recorded, or if code is
    not in flash.
    """
    board = target.board
    flash = {name for name in (board.code, board.weights) if board.memory(name).kind is not MemoryKind.RAM}
    if board.code not in flash:
        return None
    sources = emit(graph, plan, target, "network", session)
    usage = bound(sources, plan, target, "")
    if usage is None:
        return None
    weights = len(sources.image.data) if board.weights in flash else 0
    return sum(usage.use(name).bytes for name in flash) - weights


# ---- sketches --------------------------------------------------------------------------------------


_QUANT = quant(0.0625, -128)  # a ReLU's output has this one
_FUSED = {"relu": Activation.RELU, "relu6": Activation.RELU6}
_LEFT_OUT = ("BatchNormalization", "Dropout", "SpatialDropout2D", "ActivityRegularization", "Identity")
_POOLS = {"MaxPooling2D": OpKind.MAX_POOL_2D, "AveragePooling2D": OpKind.AVERAGE_POOL_2D}


class Unknown(Exception):
    """The error for a layer that cannot be sketched. Its text names the layer."""


def _convert(model: keras.Model) -> bytes:
    """Makes a .tflite file with the layers of a model. Its weights have no meaning."""
    try:
        return write_model(sketch(model))
    except Unknown:  # TensorFlow's converter may know the layer
        return int8_model(model, random_images(model))


def sketch(model: keras.Model, name: str = "net") -> Graph:
    """Draws an int8 network with the layers of a functional or Sequential model and random weights.

    Batch normalisations and activations are part of the convolution before them, as in a converted file.
    Raises Unknown for a layer that it cannot draw.
    """
    net = _Sketch(0, name)
    tensors: dict[str, int] = {}
    for call in calls_of(model):
        shape = tuple(1 if n is None else int(n) for n in call.node.output_tensors[0].shape)
        if call.kind == "InputLayer":
            tensors[call.name] = net.input(shape)
            continue
        tensor = net.layer(call, [tensors[source] for source, _ in call.sources])
        if net.shape(tensor) != shape:
            raise Unknown(f"layer '{call.name}' ({call.kind}) makes {shape}, not {net.shape(tensor)}")
        tensors[call.name] = tensor
    return net.graph([tensor])


class _Sketch(NetBuilder):
    """A builder that gives all tensors the same quantisation, so that they can be joined."""

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT8) -> Quantization:
        return _QUANT

    def _out_quant(self, spread: float) -> Quantization:
        return _QUANT

    def layer(self, call: Call, inputs: list[int]) -> int:
        """Adds a layer and returns its output; a layer that becomes no operator returns its input."""
        layer, x = call.operation, inputs[0]
        match call.kind:
            case kind if kind in _LEFT_OUT:
                return x
            case "Conv2D":
                return self._conv(x, layer, int(layer.filters), int(layer.groups))
            case "DepthwiseConv2D":
                return self._conv(x, layer, multiplier=int(layer.depth_multiplier))
            case "Dense":
                return self._activate(self.dense(x, int(layer.units)), activation_of(layer))
            case "Activation":
                return self._activate(x, activation_of(layer))
            case "ReLU":
                limit = layer.max_value
                if limit in (None, 6) and not layer.negative_slope:
                    return self._activate(x, "relu" if limit is None else "relu6")
            case "Softmax":
                return self.softmax(x)
            case "MaxPooling2D" | "AveragePooling2D" as kind:
                size, stride = _to_pair(layer.pool_size), _to_pair(layer.strides)
                return self.pool(_POOLS[kind], x, size, stride, layer.padding == "same")
            case "GlobalAveragePooling2D":
                return self.mean(x, keep_dims=bool(layer.keepdims))
            case "Flatten":
                return self.flatten(x)
            case "Add":
                return reduce(partial(self.elementwise, OpKind.ADD), inputs)
            case "Concatenate":
                last = len(self.shape(x)) - 1
                if layer.axis in (-1, last):
                    return self.concat(inputs, last)
            case "ZeroPadding2D":
                rows, columns = (tuple(map(int, pair)) for pair in layer.padding)
                return self.pad(x, ((0, 0), rows, columns, (0, 0)))  # type: ignore[arg-type]
            case "GetItem":
                return self._slice(call, x)
        raise Unknown(f"layer '{call.name}' ({call.kind}) is of an unknown kind or form")

    def _conv(self, x: int, layer: Any, channels: int = 0, groups: int = 1, multiplier: int = 0) -> int:
        """Adds a convolution with its activation. `multiplier` applies to depthwise convolutions."""
        window: dict[str, Any] = {
            name: _to_pair(getattr(layer, f"{name}{ending}"))
            for name, ending in (("kernel", "_size"), ("stride", "s"), ("dilation", "_rate"))
        }
        settings = {"same": layer.padding == "same", "groups": groups, "depth_multiplier": multiplier}
        return self._activate(self.conv(x, channels, **window, **settings), activation_of(layer))

    def _activate(self, tensor: int, name: str) -> int:
        """Fuses an activation into the operator before it, or adds an operator where that is not possible."""
        if name in ("", "linear"):
            return tensor
        if name == "softmax":
            return self.softmax(tensor)
        if name not in _FUSED:
            raise Unknown(f"activation {name}")
        for at, op in enumerate(self.ops):
            if op.outputs == (tensor,) and getattr(op.attrs, "activation", None) is Activation.NONE:
                own: Any = {"activation": _FUSED[name]}
                self.ops[at] = replace(op, attrs=replace(op.attrs, **own))
                return tensor
        return self.unary(OpKind.RELU if name == "relu" else OpKind.RELU6, tensor)

    def _slice(self, call: Call, x: int) -> int:
        """Adds a slice of channels: x[..., begin:end]."""
        arguments = call.node.arguments
        key = arguments.args[1] if len(arguments.args) > 1 else arguments.kwargs["key"]
        keys = key if isinstance(key, tuple) else (key,)
        shape = self.shape(x)
        if not isinstance(keys[-1], slice) or any(one not in (slice(None), ...) for one in keys[:-1]):
            raise Unknown(f"'{call.name}' slices along other axes than channels")
        begin, end, step = keys[-1].indices(shape[-1])
        if step != 1:
            raise Unknown(f"'{call.name}' takes every {step}th channel")
        extent, before = (*shape[:-1], end - begin), (0,) * (len(shape) - 1)
        attrs = g.SliceAttrs((*before, begin), (1,) * len(extent), extent)
        return self.move(OpKind.SLICE, x, attrs=attrs)


def _to_pair(value: Any) -> tuple[int, int]:
    rows, columns = (value, value) if isinstance(value, int) else (np.ravel(value)[0], np.ravel(value)[-1])
    return int(rows), int(columns)
