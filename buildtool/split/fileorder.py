"""The order of a .tflite file's operators: branch after branch, as far as the network allows.

TensorFlow's converter orders operators that do not depend on each other by their names, so that all branches
may begin before one of them ends. A plan keeps to the file's order; with the first convolution of every
branch at the beginning, all their outputs have to be in memory at once.
"""

from __future__ import annotations

import struct

import tflite

_OPERATORS = 10  # place of the field in the vtable of a subgraph: 4 + 2 * 3


def in_order(data: bytes) -> bytes:
    """The file with every operator right before what first needs it, inputs of an operator in their order.

    Only the offsets in the vector of operators change. A file of several subgraphs, or with operators that no
    output depends on, is left as it is.
    """
    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() != 1:
        return data
    graph = model.Subgraphs(0)
    count = graph.OperatorsLength()
    order = _depth_first(graph, count)
    if len(order) != count:
        return data
    first = graph._tab.Vector(graph._tab.Offset(_OPERATORS))
    slots = [first + 4 * index for index in range(count)]
    tables = [slot + struct.unpack_from("<I", data, slot)[0] for slot in slots]
    made = bytearray(data)
    for slot, index in zip(slots, order, strict=True):
        if tables[index] <= slot:  # a file that was written the other way round
            return data
        struct.pack_into("<I", made, slot, tables[index] - slot)
    return bytes(made)


def _depth_first(graph: tflite.SubGraph, count: int) -> list[int]:
    """Numbers of the operators that outputs depend on, each after those that it reads."""
    operators = [graph.Operators(index) for index in range(count)]
    maker = {
        operator.Outputs(i): index
        for index, operator in enumerate(operators)
        for i in range(operator.OutputsLength())
    }
    found: list[int] = []
    seen: set[int] = set()
    outputs = [graph.Outputs(i) for i in range(graph.OutputsLength())]
    waiting = [(maker[tensor], False) for tensor in reversed(outputs) if tensor in maker]
    while waiting:
        index, is_ready = waiting.pop()
        if is_ready:
            found.append(index)
        elif index not in seen:
            seen.add(index)
            waiting.append((index, True))
            operator = operators[index]
            read = [operator.Inputs(i) for i in range(operator.InputsLength())]
            waiting += [(maker[tensor], False) for tensor in reversed(read) if tensor in maker]
    return found
