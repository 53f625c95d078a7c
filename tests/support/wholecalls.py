"""Calls of any kernel on whole tensors, made from its catalogue entry, with their expected results.

    call = whole_call(target, graph, inputs)      # the graph has one operator, and may have states
    done, = firmware.run([call.call])
    call.left(done)                               # the output and the state, to compare with call.wanted

For kernels that `boardcalls` cannot record: int16, whole tensors, states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import ckernels
import numpy as np
from kernelboard import Address, Call, Done, Memory

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.types import Graph, Op, OpKind, Tensor
from buildtool.target.catalogue import scratch_bytes, select
from buildtool.target.types import Argument, KernelVariant, Target


@dataclass(frozen=True)
class WholeCall:
    """A call, the places that it writes, and the bytes that must be there afterwards."""

    kernel: KernelVariant
    call: Call
    written: tuple[tuple[int, int], ...]  # the output, then each state
    scratch: tuple[int, int]
    wanted: tuple[bytes, ...]

    def left(self, done: Done) -> tuple[bytes, ...]:
        """Returns the bytes at the places that the call writes."""
        return tuple(done.memory[first:end] for first, end in self.written)


def whole_call(target: Target, graph: Graph, inputs: Sequence[np.ndarray], seed: int = 0) -> WholeCall:
    """Returns the call of the kernel that the target selects for the graph's only operator."""
    op = graph.ops[0]
    kernel = select(target, graph, op)
    held = initial_states(graph)
    values = execute(graph, list(inputs), held)
    after = [values[op.outputs[0]], *next_states(graph, values)]
    memory = Memory(seed)
    operands = [memory.put(values, align=2) for values in inputs]
    x, out = operands[0], memory.room(after[0].nbytes, align=2)
    states = [memory.put(state) for state in held]
    size = scratch_bytes(kernel, graph, op)
    scratch = memory.room(size)
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    rows, columns = _view_shape(op, result)[:2]
    values_of: dict[Argument, int | Address] = {
        Argument.IN_DATA: x,
        Argument.OUT_DATA: out,
        Argument.SCRATCH: scratch if size else 0,
        Argument.SCRATCH_BYTES: size,
        **dict(zip((Argument.STATE, Argument.STATE2), states, strict=False)),
    }
    makers = {
        Argument.GEOMETRY: lambda: memory.words(*ckernels.geometry(graph, op).values),
        Argument.CONSTANTS: lambda: memory.put(pack(graph, op, kernel)),
        Argument.IN: lambda: _put_view(memory, x, op, source),
        Argument.IN1: lambda: _put_operand(memory, operands, graph, op, 0),
        Argument.IN2: lambda: _put_operand(memory, operands, graph, op, 1),
        Argument.IN3: lambda: _put_operand(memory, operands, graph, op, 2),
        Argument.CHANNEL: lambda: op.attrs.before,  # the first channel that a second operand has
        Argument.OUT: lambda: _put_view(memory, out, op, result),
        Argument.WINDOW: lambda: memory.words(0, rows, 0, columns),
    }
    arguments = tuple(values_of[a] if a in values_of else makers[a]() for a in kernel.call)
    expected = tuple(value.tobytes() for value in after)
    places = (out, *states)
    written = tuple((p.offset, p.offset + len(w)) for p, w in zip(places, expected, strict=True))
    call = Call(kernel.symbol, arguments, memory)
    return WholeCall(kernel, call, written, (scratch.offset, scratch.offset + size), expected)


def _view_shape(op: Op, tensor: Tensor) -> tuple[int, int, int]:
    """Returns rows, columns and channels of the view that the emitter makes."""
    if op.kind is OpKind.FULLY_CONNECTED:
        return 1, tensor.elements // tensor.shape[-1], tensor.shape[-1]
    return tensor.nhwc[1], tensor.nhwc[2], tensor.nhwc[3]


def _put_view(memory: Memory, place: Address, op: Op, tensor: Tensor) -> Address:
    rows, columns, channels = _view_shape(op, tensor)
    pixel = channels * tensor.row_bytes // (tensor.nhwc[2] * tensor.nhwc[3])
    return memory.words(place, columns * pixel, pixel, rows, columns, 0, rows, columns, channels)


def _put_operand(memory: Memory, places: Sequence[Address], graph: Graph, op: Op, number: int) -> Address:
    """An operand of two, which repeats itself where its rows or columns are 1 (nn_repeated of nn_view.h)."""
    tensor, out = graph.tensors[op.inputs[number]], graph.tensors[op.outputs[0]]
    _, rows, columns, channels = tensor.nhwc
    pixel = channels * tensor.row_bytes // (columns * channels)
    row = 0 if rows == 1 else columns * pixel
    given = tensor.data is None
    place = places[graph.inputs.index(op.inputs[number])] if given else memory.put(tensor.data)
    return memory.words(place, row, pixel, rows, columns, 0, *out.nhwc[1:3], channels)
