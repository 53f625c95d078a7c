"""RESHAPE and TRANSPOSE at a network's input: the input itself takes the order that the network wants.

Whoever fills the input, as a whole or row by row, delivers its elements in that order. `Tensor.source` of
the input tells how it is related to the file's, and the emitted header says it.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Source, Tensor, TransposeAttrs


def order_inputs(draft: Draft) -> None:
    """Lets every input take the place of what the one RESHAPE or TRANSPOSE that reads it makes."""
    fed = len(draft.inputs) - len(draft.states)  # nobody else fills what states are
    for position, t in enumerate(draft.inputs[:fed]):
        readers = draft.readers(t)
        if len(readers) == 1 and t not in draft.outputs and readers[0].outputs[0] not in draft.outputs:
            wanted = _wanted(draft, t, readers[0])
            if wanted is not None:
                target = readers[0].outputs[0]
                draft.remove(readers[0])
                draft.tensors[target] = wanted
                draft.inputs[position] = target


def _wanted(draft: Draft, source: int, reader: Node) -> Tensor | None:
    """The tensor that the network wants as its input; None where the input stays as it is."""
    given, made = draft.tensors[source], draft.tensors[reader.outputs[0]]
    origin = given.source
    if not same_quantization(given.quant, made.quant) or origin is None or origin.perm:
        return None
    if isinstance(reader.attrs, TransposeAttrs):
        return replace(made, name=given.name, source=Source(origin.index, reader.attrs.perm))
    is_image = len(made.shape) == 4 and made.shape[0] == 1 < made.shape[1]
    if reader.kind in ALIAS_KINDS and is_image and len(given.shape) < 4 and given.nhwc[1] == 1:
        return replace(made, name=given.name)  # now it has rows, which may come one after the other
    return None
