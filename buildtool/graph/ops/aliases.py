"""Operators for which no code runs: input and output share one buffer.

The output is the input's bytes under another shape, or, of what planning makes of slices and concatenations
(see `partviews`), a VIEW is some channels of the input's pixels, and each input of a JOINED is some channels
of the output's.
"""

import math

from buildtool.graph import quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import Int16, OpDef, Shape, Spelling, Trait
from buildtool.graph.types import Op, OpKind


def _alias_shape(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    before, after = (math.prod(s) for s in (shapes[0], outputs[0]))
    demand(before == after, f"{before} elements cannot take shape {list(outputs[0])}")
    return outputs[0]


def _shaped(kind: OpKind, function: str, *onnx: str) -> OpDef:
    return OpDef(
        kind,
        _alias_shape,
        "shape:reshape",
        read=(Spelling(kind, f"movement:{function}", Int16.READ),),
        written=f"movement:write_{function}",
        types=quantrules.moved_types,
        traits=Trait.ALIAS,
        onnx=dict.fromkeys(onnx, "movement:reshape"),
    )


DEFS = (
    _shaped(OpKind.RESHAPE, "reshape", "Reshape", "Flatten", "Identity", "Dropout"),
    _shaped(OpKind.SQUEEZE, "squeeze", "Squeeze"),
    _shaped(OpKind.EXPAND_DIMS, "expand_dims", "Unsqueeze"),
    OpDef(OpKind.VIEW, None, "shape:slice_", types=quantrules.moved_types, traits=Trait.ALIAS),
    OpDef(
        OpKind.JOINED,
        None,
        "shape:concatenation",
        types=quantrules.moved_types,
        traits=Trait.ALIAS,
        operands=None,
    ),
)
