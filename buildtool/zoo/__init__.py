"""Builds networks by name from layer tables with seeded weights, as int8 .tflite bytes: the zoo.

A name may carry options: `mobilenetv2:size=96,alpha=0.35,classes=10`. The same name and options
always give the same bytes, on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.zoo.catalogue import Choice, choose, describe, names, options

if TYPE_CHECKING:
    from buildtool.graph.types import Graph

__all__ = ["Choice", "build", "choose", "describe", "graph", "names", "options"]


def build(name: str, **given: object) -> bytes:
    """Returns the .tflite file of a network of the zoo. Raises UsageError for an unknown name or option."""
    from buildtool.graph.tflite.writer import write_model

    return write_model(graph(name, **given))


def graph(name: str, **given: object) -> Graph:
    """Returns the network that `build` writes."""
    from buildtool.zoo.networks import network

    return network(choose(name, **given))
