"""The topology's digest: what a plan depends on, and nothing that training changes."""

from __future__ import annotations

from buildtool.graph.topology import topology
from buildtool.graph.types import Graph


def topology_digest(graph: Graph) -> str:
    """SHA-256 (hex) of operators, geometry, shapes, types and connections (see `Topology`).

    Tensors have their canonical numbers, so neither names nor numbers, nor weights' values,
    quantisation or the operators' places in the file have any effect. Every plan carries it, so it stays
    with the graph, which never changes.
    """
    if "digest" not in graph.facts:
        graph.facts["digest"] = topology(graph).digest
    digest: str = graph.facts["digest"]
    return digest
