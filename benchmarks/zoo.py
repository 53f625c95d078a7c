"""Prints the table of the zoo's networks in docs/start/zoo.md: python benchmarks/zoo.py"""

from __future__ import annotations

from buildtool import zoo
from buildtool.graph.macs import total_macs
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph

HEADINGS = ("network", "input", "outputs", "operators", "MACs", "parameters", "file, bytes")


def row(name: str) -> tuple[str, ...]:
    """Returns a network's cells. MACs include padded taps and dense layers; parameters include biases."""
    graph: Graph = zoo.graph(name)
    parameters = sum(tensor.elements for tensor in graph.tensors if tensor.is_constant)
    shape = "x".join(str(n) for n in graph.tensors[graph.inputs[0]].shape[1:])
    numbers = (
        graph.tensors[graph.outputs[0]].elements,
        len(graph.ops),
        total_macs(graph),
        parameters,
        len(write_model(graph)),  # which is what `zoo.build` gives
    )
    return (f"`{name}`", shape, *(f"{number:,}" for number in numbers))


def table() -> str:
    """Returns a Markdown table of all networks."""
    lines = [HEADINGS, ("---", "---", *["---:"] * 5), *(row(name) for name in zoo.names())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(table())
