"""The answer of `analyze` for an ONNX or Darknet file as text: bytes, and ratios beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count, layer

if TYPE_CHECKING:
    from buildtool.schema.analysis import NetworkAnswer

PLACE_WIDTH = 64
_WEIGHTS = {
    "flash": "weights stay in flash and are not counted",
    "load": "weights are in memory from the first operator that reads them to the last",
}
_OPERATORS = {
    "separate": "every operator of the file has an output of its own",
    "fused": "batch normalisation and activation are part of the operator before them",
}


def text(answer: NetworkAnswer) -> str:
    """What the network takes if nothing is shared, what must be live at once, what a placement takes."""
    kinds = sorted(answer["kinds"].items(), key=lambda item: (-item[1], item[0]))
    order = "the file's order"
    if answer["order_status"]:
        proven = "no order needs less" if answer["order_status"] == "optimal" else "the best found in bounds"
        order = f"reordered ({proven})"
    planned = "too many values to place"
    if answer["planned_bytes"] is not None:
        planned = f"{count(answer['planned_bytes'], 'byte')} {_ratio(answer['planned_bytes'], answer)}"
    lines = [
        f"{answer['model']}: {answer['operators']} operators: {', '.join(f'{n} {k}' for k, n in kinds)}",
        *(f"  input             {layer(t['name'], PLACE_WIDTH)}: {count(t['bytes'], 'byte')}"
          for t in answer["inputs"]),
        *(f"  output            {layer(t['name'], PLACE_WIDTH)}: {count(t['bytes'], 'byte')}"
          for t in answer["outputs"]),
        f"  activations       {count(answer['activation_bytes'], 'byte')}",
        f"  weights           {count(answer['weight_bytes'], 'byte')}",
        f"  all in memory     {count(answer['total_bytes'], 'byte')}",
        f"  largest live set  {count(answer['live_bound_bytes'], 'byte')} "
        f"{_ratio(answer['live_bound_bytes'], answer)}, "
        f"at {layer(answer['live_bound_operator'], PLACE_WIDTH)}",
        f"  planned           {planned}",
        f"  - {_WEIGHTS[answer['weights']]}",
        f"  - {_OPERATORS[answer['counted_operators']]}; {order}",
        "  - inputs and outputs are counted, no output shares memory with an input",
    ]  # fmt: skip
    return "\n".join(lines)


def _ratio(part: int, answer: NetworkAnswer) -> str:
    return f"({100 * part / max(answer['total_bytes'], 1):.1f} % of all)"
