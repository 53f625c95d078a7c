"""Emits a plan as files: C, headers, weight image, the assembly that links it, and a header for the
harness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.emit import loading
from buildtool.emit.bordered import bordered, with_bordered
from buildtool.emit.calls import Call, lines
from buildtool.emit.checks import headers as headers_of_checks
from buildtool.emit.ctext import COLUMNS, identifier, indent_lines, join_continuations, shape
from buildtool.emit.expanding import callers, with_callers
from buildtool.emit.golden import NO_CHECKS, Checks
from buildtool.emit.header import banner, harness, header, plan_check, quantization, stack_bytes, stack_macro
from buildtool.emit.image import WeightImage, weight_image
from buildtool.emit.interface import arenas, interface, state, state_memory
from buildtool.emit.network import Network
from buildtool.emit.streamed import emit_streamed_region, whole_image
from buildtool.graph.partviews import parts
from buildtool.graph.secondpass import repeated_ops
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import BufferKind, Move, Plan, Region, Scheme, Step
from buildtool.target.kernels import application_sources, object_name, source_files
from buildtool.target.types import KernelVariant, Role, Routine, Target


@dataclass(frozen=True)
class Sources:
    """Emitted files by name. `c_files` are those to compile, without kernels and runtime."""

    net: str
    files: dict[str, bytes]
    c_files: tuple[str, ...]
    image: WeightImage


def plan_routines(plan: Plan, target: Target) -> list[Routine]:
    """Returns the routines that the emitted code of a plan calls."""
    kernels = target.kernels_by_name(plan.kernels)
    routines = [target.routine(role, k) for k in kernels if k for role, op in _BESIDE if op == k.op]
    routines += [target.routine(Role.EXPAND)] if plan.narrowed else []
    kinds = {b.kind for b in plan.buffers}
    schemes = {group.scheme for region in plan.regions for group in region.groups}
    keeping = ((Scheme.BANDS, Role.KEEP), (Scheme.SWAPS, Role.SWAP)) if BufferKind.LINES in kinds else ()
    routines += [target.routine(role) for scheme, role in keeping if scheme in schemes]
    pooled = (kernels[b.op] for b in plan.buffers if b.kind is BufferKind.ACCUMULATOR)
    return routines + [
        target.routine(role, k) for k in pooled if k for role in (Role.ACCUMULATE, Role.FINISH)
    ]


def kernel_sources(plan: Plan, target: Target) -> list[Path]:
    """Returns the C files of the runtime, followed by those of the plan's kernels and routines, sorted by
    name.
    """
    kernels = [kernel for kernel in target.kernels_by_name(plan.kernels) if kernel]
    return source_files(target, [*kernels, *plan_routines(plan, target)])


_BESIDE = ((Role.FILL, OpKind.PAD), (Role.JOIN, OpKind.CONCATENATION))


def emit(
    graph: Graph,
    plan: Plan,
    target: Target,
    name: str,
    session: Session | None = None,
    image: WeightImage | None = None,
    checks: Checks = NO_CHECKS,
) -> Sources:
    """Returns the C, headers and weight image of `graph` with `plan`. `name` becomes the prefix of the names
    in C.

    `session` may already have the plan's timeline. `image` is the weight image (None: make it). `checks` says
    what the network checks in the field.
    """
    kernels = target.kernels_by_name(plan.kernels)
    image = image or weight_image(graph, kernels)
    targets = {move.target for move in plan.moves}
    holders = {t: b for i, b in enumerate(plan.buffers) if i not in targets for t in b.tensors}
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    callers = with_bordered(graph, with_callers(graph, kernels))
    network = Network(identifier(name), graph, plan, target, callers, image, holders, timeline, checks)
    net, source = network.net, _emit_source(network)
    stack = stack_macro(network.macro, stack_bytes(network, source, plan_routines(plan, target)))
    files = {
        f"{net}.h": header(network, stack),
        f"{net}_quantization.h": quantization(network),
        f"{net}.c": source,
        f"{net}_weights.S": _weights_assembly(net, image),
        f"{net}_kernels.txt": "\n".join(
            map(object_name, [*kernel_sources(plan, target), *application_sources()])
        ),
        "harness_net.h": harness(network),
    }
    encoded = {path: (text + "\n").encode() for path, text in files.items()}
    encoded[f"{net}_weights.bin"] = image.data
    return Sources(net, encoded, (f"{net}.c",), image)


def _weights_assembly(net: str, image: WeightImage) -> str:
    return f"""\
/* Links the weight image {net}_weights.bin into the firmware, or, with NN_WEIGHTS_RESERVED defined,
 * reserves room for it: a program so linked has the same addresses whatever the weights are.
 * Of layout {image.layout.hex()}. */
#ifndef NN_WEIGHTS_SECTION
#define NN_WEIGHTS_SECTION .nn_weights
#endif
    .section NN_WEIGHTS_SECTION, "a", %progbits
    .balign 16
    .global {net}_weights
    .type {net}_weights, %object
    .size {net}_weights, {len(image.data)}
{net}_weights:
#ifdef NN_WEIGHTS_RESERVED
    .space {len(image.data)}
#else
    .incbin "{net}_weights.bin"
#endif
    .balign 16

    .section .note.GNU-stack, "", %progbits"""


def _emit_step(network: Network, step: Step, loads: loading.Loading, index: int) -> list[str]:
    """Returns the code for one step that computes a whole operator, with its markers and traces. `index` is
    its region.
    """
    graph = network.graph
    op = graph.ops[step.op]
    kernel = network.kernels[step.op]
    if kernel is None:
        raise PlanError("an alias has no step", operator=op.place)
    sliced = next((load for load in network.plan.loads if load.op == step.op and load.channels), None)
    call = Call(network, kernel, step)
    traces = [_trace_tensor(network, t) for t in op.outputs if t in network.holders or t in network.states]
    body = lines(call) if sliced is None else loads.in_slices(network, sliced, kernel, index)
    return [f"NN_MARK_BEGIN({step.op});", *body, "NN_MARK_END();", *traces]


def _trace_tensor(network: Network, tensor: int) -> str:
    """Returns the statement that traces a whole tensor, which may be some channels of another one."""
    tensors, part = network.graph.tensors, parts(network.graph).get(tensor)
    of = tensors[tensor]
    if part is None:
        return f"NN_TRACE_TENSOR({tensor}, {network.address(tensor)}, {of.size});"
    pitch, first = tensors[part.whole].pixel_bytes, part.first * of.dtype.size
    address = f"{network.address(part.whole)} + {first}" if first else network.address(part.whole)
    return f"NN_TRACE_PART({tensor}, {address}, {of.size}, {of.pixel_bytes}, {pitch});"


def _emit_region(
    network: Network, region: Region, index: int, loads: loading.Loading, moves: Sequence[Move]
) -> tuple[list[str], list[str]]:
    """Returns the names of the arenas that a region's function takes, and the function's lines.

    `moves` copy tensors at its start; `network` is the one after them.
    """
    graph = network.graph
    text, repeated = [], repeated_ops(graph)
    for position in region.ops:
        op = graph.ops[position]
        note = f"; again what operator {repeated[position]} did" if position in repeated else ""
        text.append(f"/* Operator {position}: {op.kind}, {_describe_shapes(graph, op)}{note} */")
    body = []
    for move in moves:  # copies a tensor to its new place
        source, target = network.plan.buffers[move.source], network.plan.buffers[move.target]
        places = f"{network.place(target.offset)}, {network.place(source.offset)}"
        body.append(f"/* Makes room: {network.describe_tensor(source.tensors[0])} */")
        body.append(f"memmove({places}, {source.size});")
    body += loads.prologue(index)
    if region.is_streamed:
        body += emit_streamed_region(network, region, loading.StreamedLoads(network, index))
    else:
        step = network.timeline.step(network.timeline.starts[index + 1] - 1)
        body += [*whole_image(network, region), *_emit_step(network, step, loads, index)]
    result, end = ("int", ["return 0;"]) if network.takes_rows(region) else ("void", [])
    names = arenas(body)
    parameters = ", ".join(f"int8_t *const {name}" for name in names) or "void"
    head = f"static {result} region_{index}({parameters}) {{"
    return names, [*text, head, *indent_lines([*body, *end]), "}", ""]


_SHAPES_SHOWN = 2


def _describe_shapes(graph: Graph, op: Op) -> str:
    """Returns the shapes of an operator's input and output activations, such as "1x8x8x3 -> 1x4x4x16"; at
    most two for each side.
    """
    activations = [t for t in op.as_seen.inputs if t >= 0 and not graph.tensors[t].is_constant]
    sides = []
    for side in (activations, op.outputs):
        texts = [shape(graph.tensors[t].shape) for t in side[:_SHAPES_SHOWN]]
        sides.append(", ".join([*texts, *(["..."] if len(side) > _SHAPES_SHOWN else [])]))
    return " -> ".join(sides)


def _memory_map(network: Network) -> list[str]:
    """Returns the lines of a comment with the place and the lifetime of each buffer in the arena."""
    rows, second = [], network.plan.second_at
    for b in sorted(network.plan.buffers, key=lambda b: (b.first, b.last, b.offset)):
        place = f"2+{b.offset - second}" if 0 < second <= b.offset else str(b.offset)
        # names of tensors change with training, so they are only in <net>_arena.json
        of = network.describe_tensor(b.tensors[0]) if b.tensors else f"operator {b.op}"
        content = of if b.kind is BufferKind.TENSOR else f"{b.kind} of {of}"
        rows.append((place, str(b.size), f"{b.first}-{b.last}", content))
    head = ("offset", "bytes", "steps", "holds")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(3)]
    text = [
        "/* The arena by time; a step is a kernel call, counted over the whole invoke. An operator stands",
        " * for its output, whose name in the model is in the file",
        f" * {network.net}_arena.json.",
        *([" * Offsets behind 2+ are those of the second arena."] if network.is_spread else []),
        " *",
    ]
    for row in (head, *rows):
        cells = [f"{cell:>{width}}" for cell, width in zip(row[:3], widths, strict=True)]
        text.append((" *   " + "  ".join([*cells, row[3]]))[:COLUMNS].rstrip())
    return [*text, " */", ""]


def _emit_source(network: Network) -> str:
    plan, loads = network.plan, loading.Loading(network)
    functions, arena_names, current = list[str](), list[list[str]](), network
    for index, (region, start) in enumerate(zip(plan.regions, network.timeline.starts, strict=False)):
        moves = [move for move in plan.moves if plan.buffers[move.target].first == start]
        current = current.after(moves)
        names, lines_ = _emit_region(current, region, index, loads, moves)
        arena_names.append(names)
        functions += lines_
    first, *second = plan.arenas
    sizes = f"arenas of {first} and {second[0]} bytes" if second else f"arena of {first} bytes"
    callees: list[KernelVariant | Routine] = [
        *filter(None, network.kernels),
        *plan_routines(plan, network.target),
    ]
    headers = {header for callee in callees for header in callee.headers}  # nn.h does not include them
    # identifies the plan and the weights' layout in the firmware image
    begin = f'NN_IDENTITY_NETWORK("{network.net}", "{network.plan_digest}",'
    end = f'"{network.image.layout.hex()}");'
    fits = len(begin) + 1 + len(end) <= COLUMNS
    return "\n".join(
        [
            banner(network, f"{plan.strategy} plan, {sizes}"),
            f'#include "{network.net}.h"',
            "",
            '#include "nn.h"',
            *(f'#include "{header}"' for header in sorted(headers)),
            *(f'#include "{header}"' for header in headers_of_checks(network.checks)),
            '#include "nn_identity.h"',
            '#include "nn_profile.h"',
            '#include "nn_trace.h"',
            '#include "nn_view.h"',
            *(["", "#include <string.h>"] if plan.loads or plan.moves or plan.states or plan.hop else []),
            "",
            *plan_check(network),
            *([f"{begin} {end}"] if fits else [begin, " " * begin.index('"') + end]),
            "",
            *_memory_map(network),
            state(network),
            *([loads.declarations()] if plan.loads else []),
            *state_memory(network),
            *callers(network),
            *bordered(network),
            *functions,
            *join_continuations(interface(network, arena_names)),
        ]
    )
