"""Analysis of networks that are not for firmware: ONNX and Darknet files, any element type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from buildtool.errors import UsageError, did_you_mean
from buildtool.graph.flow import Flow
from buildtool.graph.fuse import OPERATORS, fused
from buildtool.graph.order import ORDERS
from buildtool.plan.others.footprint import WEIGHTS, footprint
from buildtool.service.pipeline.models import read_bytes

SUFFIXES = (".onnx", ".cfg")
MOST_BATCH = 65536
MOST_SIDE = 65536

_CHOICES = {"weights": WEIGHTS, "operators": OPERATORS, "order": ORDERS}


@dataclass(frozen=True)
class NetworkOptions:
    """How to count.

    `weights`: in `flash`, or in memory from their `load` to their last use; `operators`: batch
    normalisation and activation `separate` (as in the file) or `fused` with what is before them;
    `order`: `given` or `best`; `batch` (0: the file's; Darknet: 1); `size`: (rows, columns) of images.
    """

    weights: str = "flash"
    operators: str = "separate"
    order: str = "given"
    batch: int = 0
    size: tuple[int, int] | None = None


def is_network(spec: str) -> bool:
    """Whether a model is analysed here."""
    return spec.lower().endswith(SUFFIXES)


def refuse_for_boards(given: Mapping[str, object]) -> None:
    """UsageError for options that other files do not have."""
    for name in ("weights", "operators", "batch", "size"):
        if name in given:
            raise UsageError(f"--{name} is for ONNX and Darknet files", hint="leave it out")


def network_options(given: Mapping[str, object]) -> NetworkOptions:
    """Options from a request; unknown names and values are errors with a suggestion."""
    known = {f.name for f in fields(NetworkOptions)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            spelt = name.replace("_", "-")
            raise UsageError(f"--{spelt} is not for ONNX and Darknet files", hint=did_you_mean(name, known))
        if name in _CHOICES and value not in _CHOICES[name]:
            raise UsageError(f"{name} cannot be '{value}'", hint=did_you_mean(str(value), _CHOICES[name]))
        values[name] = value
    if "batch" in values and not _whole(values["batch"], MOST_BATCH):
        raise UsageError(f"batch cannot be '{values['batch']}'", hint=f"a number from 1 to {MOST_BATCH}")
    if "size" in values:
        values["size"] = _size(str(values["size"]))
    return NetworkOptions(**values)


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _size(text: str) -> tuple[int, int]:
    """Rows and columns, from text such as "544" or "480x640"."""
    words = text.lower().split("x")
    good = len(words) <= 2 and all(w.isascii() and w.isdigit() and 0 < len(w) < 6 for w in words)
    sides = [int(w) for w in words] if good else [0]
    if not all(1 <= side <= MOST_SIDE for side in sides):
        raise UsageError(
            f"size cannot be '{text}'", hint="rows and columns, such as 480x640, or one for both"
        )
    return sides[0], sides[-1]


def network_analysis(spec: str, options: NetworkOptions) -> dict[str, Any]:
    """The answer to an `analyze` request for such a file."""
    path = Path(spec)
    flow = _read(read_bytes(path), spec, options)
    if options.operators == "fused":
        flow = fused(flow)
    flow, counted = footprint(flow, weights=options.weights, order=options.order)
    at = flow.ops[counted.fullest]
    order = counted.order
    return {
        "model": path.stem,
        "operators": len(flow.ops),
        "kinds": dict(sorted(Counter(op.kind for op in flow.ops).items())),
        "inputs": [{"name": flow.values[v].name, "bytes": flow.values[v].size} for v in flow.inputs],
        "outputs": [{"name": flow.values[v].name, "bytes": flow.values[v].size} for v in flow.outputs],
        "batch": options.batch,
        "weights": options.weights,
        "counted_operators": options.operators,
        "order": options.order,
        "order_status": order.status if order else None,
        "activation_bytes": counted.activations,
        "weight_bytes": counted.weights,
        "total_bytes": counted.total,
        "live_bound_bytes": counted.bound,
        "live_bound_operator": f"#{at.position} {at.kind} {at.name}",
        "planned_bytes": counted.planned,
        "ratio": counted.bound / counted.total if counted.total else 1.0,
    }


def _read(data: bytes, spec: str, options: NetworkOptions) -> Flow:
    if spec.lower().endswith(".onnx"):
        from buildtool.graph.onnxflow import read_onnx

        return read_onnx(data, path=spec, batch=options.batch or None, size=options.size)
    from buildtool.graph.darknet import read_cfg

    return read_cfg(data, path=spec, batch=options.batch or 1, size=options.size)
