"""Kernel catalogues: which C function computes an operator, with what scratch, at what cost.

A catalogue is `catalogue.toml` in a family's folder of the kernels:

    [[kernel]]
    op = "CONV_2D"                     # or several: ["ADD", "SUB"]
    name = "conv2d_s8_reference"
    symbol = "nn_conv2d_s8"
    sources = ["reference/nn_conv2d_s8.c"]   # relative to the kernels' root
    packing = "conv"                   # layout of the constants; "none" if there are none
    when = "groups == 1 and kh == 1"   # expressions over `VARIABLES`
    scratch = "2 * kh * kw * cin"      # bytes, for a call of `ow` columns
    overlap = "row"                    # none | row | pixel
    cost = "20 * outputs + 8 * macs"   # the target's unit

Earlier kernels are preferred to later ones. What calls cost beside their kernels stands in [costs], see
`costs`. A cost may also use `vector_bits` of the core (128 if it has none): `for_core` puts the number in.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from buildtool.errors import TargetError, UnsupportedError, did_you_mean
from buildtool.graph.macs import op_macs
from buildtool.graph.types import (
    ALIAS_KINDS,
    ConvAttrs,
    DepthwiseAttrs,
    Graph,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    Tensor,
)
from buildtool.target.expression import check, evaluate
from buildtool.target.types import Contract, Core, KernelVariant, Target

_GEOMETRY = ("kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "ih", "iw", "cin", "oh", "ow", "cout")
_MET = ("rows_met", "rows_inside", "columns_met", "columns_inside")
VARIABLES = frozenset(
    {*_GEOMETRY, *_MET, "batch", "groups", "multiplier", "inputs", "operands", "macs", "outputs"}
)
VECTOR_BITS = "vector_bits"  # a variable of costs alone
LEAST_VECTOR_BITS = 128
_STRINGS = ("name", "symbol", "packing", "when", "scratch", "overlap", "cost")
_KEYS = ("op", "sources", *_STRINGS)


def load_catalogue(path: Path) -> tuple[KernelVariant, ...]:
    """The variants of a catalogue.toml, in its order; raises TargetError naming file and key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TargetError(f"cannot read the kernel catalogue: {error.strerror}", path=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetError(f"not a TOML file: {error}", path=str(path)) from None
    for key in table:
        if key not in ("kernel", "costs"):  # the latter are read by `costs.load_costs`
            raise TargetError(
                f"unknown key '{key}'", path=str(path), hint="[[kernel]] tables and [costs] are expected"
            )
    entries = table.get("kernel", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TargetError("'kernel' must be an array of tables: [[kernel]]", path=str(path))
    variants: list[KernelVariant] = []
    for i, entry in enumerate(entries):
        place = str(entry.get("name", f"kernel[{i}]"))
        try:
            variants += _variants(entry)
        except TargetError as error:
            raise error.at(path=f"{path}:{place}") from None
    seen: set[tuple[str, str]] = set()
    for variant in variants:
        if (variant.op, variant.name) in seen:
            raise TargetError(f"kernel '{variant.name}' appears twice for {variant.op}", path=str(path))
        seen.add((variant.op, variant.name))
    return tuple(variants)


def for_core(variants: Iterable[KernelVariant], core: Core) -> tuple[KernelVariant, ...]:
    """The variants with what their costs need to know of the core written into them."""
    bits = str(core.vector_bits or LEAST_VECTOR_BITS)
    return tuple(
        dataclasses.replace(v, cost=re.sub(rf"\b{VECTOR_BITS}\b", bits, v.cost))
        if VECTOR_BITS in v.cost
        else v
        for v in variants
    )


def _variants(entry: dict[str, object]) -> list[KernelVariant]:
    """One [[kernel]] table; one variant each operator kind it serves."""
    for key in entry:
        if key not in _KEYS:
            raise TargetError(f"unknown key '{key}'", hint=did_you_mean(key, _KEYS))
    for key in ("op", "name", "symbol", "sources"):
        if key not in entry:
            raise TargetError(f"key '{key}' is missing")
    strings = {key: _string(entry, key) for key in _STRINGS if key in entry}
    for key in ("when", "scratch", "cost"):
        if key in strings:
            _checked(key, strings[key])
    overlap = strings.pop("overlap", Contract.NONE.value)
    if overlap not in list(Contract):
        raise TargetError(f"overlap '{overlap}' is unknown", hint="known: " + ", ".join(Contract))
    sources = tuple(_strings(entry, "sources"))
    kinds = _strings(entry, "op")
    for kind in kinds:
        if kind not in OpKind.__members__:
            raise TargetError(
                f"operator kind '{kind}' is unknown", hint=did_you_mean(kind, OpKind.__members__)
            )
    return [KernelVariant(op=kind, sources=sources, overlap=Contract(overlap), **strings) for kind in kinds]


def _checked(key: str, expression: str) -> None:
    try:
        check(expression, VARIABLES | {VECTOR_BITS} if key == "cost" else VARIABLES)
    except TargetError as error:
        raise TargetError(f"'{key}': {error.text}", hint=error.hints) from None


def _string(entry: dict[str, object], key: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise TargetError(f"'{key}' must be a string that is not empty, not {value!r}")
    return value


def _strings(entry: dict[str, object], key: str) -> list[str]:
    value = entry[key]
    items: list[object] = value if isinstance(value, list) else [value]
    values = [item for item in items if isinstance(item, str) and item]
    if not values or len(values) != len(items):
        raise TargetError(f"'{key}' must be a string or a list of strings, not {value!r}")
    return values


def features(graph: Graph, op: Op) -> dict[str, int]:
    """The geometry that catalogue expressions see (`VARIABLES`); 0 or 1 where meaningless.

    ih iw cin, oh ow cout, batch: of the first input and first output (Tensor.nhwc); kernel (kh kw),
    stride (sh sw), dilation (dh dw), pad above and left (pt pl); groups of input channels, depth
    multiplier; inputs and outputs: elements of the first input and of all outputs; operands: how many
    activations go in; macs: as `op_macs`. rows_met: rows of the window that lie in the input, all output
    rows taken together; rows_inside: output rows whose whole window lies in it; likewise for columns. A
    dense layer's rows are columns of a one-row image.
    """
    first, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    batch, ih, iw, cin = first.nhwc
    _, oh, ow, cout = result.nhwc
    found = {
        **dict.fromkeys(("kh", "kw", "sh", "sw", "dh", "dw", "groups", "multiplier"), 1),
        **{"pt": 0, "pl": 0},
        **{"ih": ih, "iw": iw, "cin": cin, "oh": oh, "ow": ow, "cout": cout, "batch": batch},
        "inputs": first.elements,
        "operands": sum(1 for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant),
        "outputs": sum(graph.tensors[t].elements for t in op.outputs),
        "macs": op_macs(graph, op),
    }
    pad = Pad()
    if isinstance(op.attrs, ConvAttrs):
        pad = op.attrs.pad
        found |= _kernel_window(op.attrs, graph.tensors[op.inputs[1]], cin)
    elif isinstance(op.attrs, PoolAttrs):
        pad = op.attrs.pad
        found |= dict(zip(("kh", "kw", "sh", "sw"), (*op.attrs.kernel, *op.attrs.stride), strict=True))
    elif op.kind is OpKind.FULLY_CONNECTED:
        outputs, inputs = graph.tensors[op.inputs[1]].shape
        rows = first.elements // max(inputs, 1)
        found |= {"batch": 1, "ih": 1, "iw": rows, "cin": inputs, "oh": 1, "ow": rows, "cout": outputs}
    found |= {"pt": pad.top, "pl": pad.left}
    met = (count for axis in AXES for count in _met(*(found[name] for name in axis)))
    return found | dict(zip(_MET, met, strict=True))


AXES = (("oh", "ih", "kh", "sh", "dh", "pt"), ("ow", "iw", "kw", "sw", "dw", "pl"))


@lru_cache(maxsize=4096)
def _met(outputs: int, inputs: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[int, int]:
    """Taps that meet an input along one axis, and outputs all of whose taps do."""
    taps = range(0, kernel * dilation, dilation)
    met = [sum(0 <= i * stride - pad + tap < inputs for tap in taps) for i in range(outputs)]
    return sum(met), met.count(kernel)


def _kernel_window(attrs: ConvAttrs, weights: Tensor, cin: int) -> dict[str, int]:
    kh, kw = weights.shape[1:3]
    groups = cin if isinstance(attrs, DepthwiseAttrs) else cin // max(weights.shape[3], 1)
    multiplier = attrs.depth_multiplier if isinstance(attrs, DepthwiseAttrs) else 1
    names = ("kh", "kw", "sh", "sw", "dh", "dw", "groups", "multiplier")
    return dict(zip(names, (kh, kw, *attrs.stride, *attrs.dilation, groups, multiplier), strict=True))


def select(target: Target, graph: Graph, op: Op) -> KernelVariant:
    """The first of the target's kernels that serves `op`; UnsupportedError if none does."""
    candidates = [variant for variant in target.kernels if variant.op == op.kind]
    known = features(graph, op) if candidates else {}
    for variant in candidates:
        if variant.when == "True" or evaluate(variant.when, known):
            return variant
    if not candidates:
        kinds = sorted({variant.op for variant in target.kernels})
        raise UnsupportedError(
            f"board '{target.board.name}' has no kernel for {op.kind}",
            operator=op.place,
            hint="kernels exist for " + ", ".join(kinds),
        )
    shape = " ".join(f"{name}={value}" for name, value in sorted(known.items()))
    raise UnsupportedError(
        f"no kernel for {op.kind} of this shape on board '{target.board.name}'",
        operator=op.place,
        hint=f"the operator has {shape}; kernels need "
        + "; or ".join(f"{variant.when} ({variant.name})" for variant in candidates),
    )


def select_all(target: Target, graph: Graph) -> tuple[KernelVariant | None, ...]:
    """The kernel of every operator, None for aliases; UnsupportedError as `select`."""
    return tuple(None if op.kind in ALIAS_KINDS else select(target, graph, op) for op in graph.ops)


def scratch_bytes(variant: KernelVariant, graph: Graph, op: Op, columns: int | None = None) -> int:
    """Bytes of scratch that the kernel wants from its caller for `op`; rounded up.

    `columns`: the most columns of an image that a call makes (None: all); `ow` stands for them.
    """
    if variant.scratch == "0":
        return 0
    known = features(graph, op)
    if columns is not None and op.kind is not OpKind.FULLY_CONNECTED:
        known["ow"] = min(known["ow"], columns)
    value = evaluate(variant.scratch, known)
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' asks for {value} bytes of scratch", operator=op.place)
    return -int(-value // 1)
