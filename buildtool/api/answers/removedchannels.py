"""Which channels are removed from a plan's network, and what that saves."""

from __future__ import annotations

from buildtool.graph.bounds import count_channels
from buildtool.graph.macs import op_macs, total_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.plan.choose.channels import Simplified
from buildtool.schema.plans import NarrowLayer, RemovedChannels


def describe(simplified: Simplified) -> RemovedChannels | None:
    """Returns the layers with fewer channels or inputs than in the file, and the work of both networks."""
    if not simplified.removed:
        return None
    layers = _list_layers(simplified)
    removed, channels = count_removed(simplified)
    return {
        "channels": removed,
        "of": channels,
        "macs": total_macs(simplified.graph),
        "macs_of": total_macs(simplified.whole),
        "weight_bytes": simplified.graph.constant_bytes,
        "weight_bytes_of": simplified.whole.constant_bytes,
        "layers": [
            layer for layer in layers if layer["macs"] < layer["macs_of"] or layer["channels"] < layer["of"]
        ],
    }


def count_removed(simplified: Simplified) -> tuple[int, int]:
    """Returns how many channels are removed, and the number of all channels."""
    layers = _list_layers(simplified)
    return sum(one["of"] - one["channels"] for one in layers), sum(one["of"] for one in layers)


def _list_layers(simplified: Simplified) -> list[NarrowLayer]:
    """Returns a row for each operator that runs. Both networks have the same operators."""
    pairs = zip(simplified.graph.ops, simplified.whole.ops, strict=True)
    return [
        {
            "name": simplified.whole.tensors[before.outputs[0]].name,
            "channels": count_channels(simplified.graph.tensors[after.outputs[0]]),
            "of": count_channels(simplified.whole.tensors[before.outputs[0]]),
            "macs": op_macs(simplified.graph, after),
            "macs_of": op_macs(simplified.whole, before),
        }
        for after, before in pairs
        if before.kind not in ALIAS_KINDS
    ]
