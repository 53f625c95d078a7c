"""What a network's weights allow: removed channels, weights of four bits, and what that saves."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.bounds import count_channels
from buildtool.graph.macs import op_macs, total_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import WeightedAttrs
from buildtool.plan.choose.channels import Simplified
from buildtool.schema.plans import FourBitWeights, NarrowLayer, RemovedChannels
from buildtool.target.catalogue import constants_bytes, select_all
from buildtool.target.types import Target


def describe(simplified: Simplified) -> RemovedChannels | None:
    """Returns the layers that have fewer channels or inputs than in the file, and the work of both networks.

    None if no channels are removed.
    """
    if not simplified.removed:
        return None
    layers = _list_layers(simplified)
    removed, channels = count_removed(simplified)
    return {
        "channels": removed,
        "total_channels": channels,
        "macs": total_macs(simplified.graph),
        "total_macs": total_macs(simplified.whole),
        "weight_bytes": simplified.graph.constant_bytes,
        "total_weight_bytes": simplified.whole.constant_bytes,
        "layers": [
            layer
            for layer in layers
            if layer["macs"] < layer["total_macs"] or layer["channels"] < layer["total_channels"]
        ],
    }


def describe_four_bits(simplified: Simplified, target: Target) -> FourBitWeights | None:
    """Returns how many operators' weights are stored in four bits, and the bytes of their constants.

    None if there are no such operators.
    """
    if not simplified.narrowed:
        return None
    graph, kernels = simplified.graph, select_all(target, simplified.graph)
    sizes = []
    for one in simplified.narrowed:
        kernel, op = kernels[one.op], graph.ops[one.op]
        assert kernel is not None and isinstance(op.attrs, WeightedAttrs)
        in_bytes = replace(op, attrs=replace(op.attrs, expanded=0, stored=0))
        sizes.append(constants_bytes(kernel, graph, in_bytes))
    return {
        "operators": len(sizes),
        "total_operators": sum(isinstance(op.attrs, WeightedAttrs) for op in graph.ops),
        "bytes": sum(one.stored for one in simplified.narrowed),
        "total_bytes": sum(sizes),
    }


def count_removed(simplified: Simplified) -> tuple[int, int]:
    """Returns (the number of removed channels, the number of all channels)."""
    layers = _list_layers(simplified)
    return sum(one["total_channels"] - one["channels"] for one in layers), sum(
        one["total_channels"] for one in layers
    )


def _list_layers(simplified: Simplified) -> list[NarrowLayer]:
    """Returns a row for each operator that runs, which compares the network with and without its removed
    channels.
    """
    pairs = zip(simplified.graph.ops, simplified.whole.ops, strict=True)
    return [
        {
            "name": simplified.whole.tensors[before.outputs[0]].name,
            "channels": count_channels(simplified.graph.tensors[after.outputs[0]]),
            "total_channels": count_channels(simplified.whole.tensors[before.outputs[0]]),
            "macs": op_macs(simplified.graph, after),
            "total_macs": op_macs(simplified.whole, before),
        }
        for after, before in pairs
        if before.kind not in ALIAS_KINDS
    ]
