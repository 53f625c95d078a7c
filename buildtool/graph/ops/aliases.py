"""Operators for which no code runs: input and output share one buffer.

The output is the input's bytes under another shape, or, of what planning makes of slices and concatenations
(see `partviews`), a VIEW is some channels of the input's pixels, and each input of a JOINED is some channels
of the output's.
"""

import math
from functools import partial

from buildtool.graph import quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import Int16, OpDef, Shape, Trait
from buildtool.graph.types import Op, OpKind


def _alias_shape(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    before, after = (math.prod(s) for s in (shapes[0], outputs[0]))
    demand(before == after, f"{before} elements cannot take shape {list(outputs[0])}")
    return outputs[0]


_alias = partial(OpDef, types=quantrules.moved_types, traits=Trait.ALIAS)
_shaped = partial(_alias, shape=_alias_shape, reference="shape:reshape", int16=Int16.READ)
_READ = "movement:reshape"  # from ONNX

DEFS = (
    _shaped(
        OpKind.RESHAPE,
        decode="movement:reshape",
        written="movement:write_reshape",
        onnx={"Reshape": _READ, "Flatten": _READ, "Identity": _READ, "Dropout": _READ},
    ),
    _shaped(
        OpKind.SQUEEZE, decode="movement:squeeze", written="movement:write_squeeze", onnx={"Squeeze": _READ}
    ),
    _shaped(
        OpKind.EXPAND_DIMS,
        decode="movement:expand_dims",
        written="movement:write_expand_dims",
        onnx={"Unsqueeze": _READ},
    ),
    _alias(OpKind.VIEW, shape=None, reference="shape:slice_"),
    _alias(OpKind.JOINED, shape=None, reference="shape:concatenation", operands=None),
)
