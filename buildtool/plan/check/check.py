"""Proves that a plan is legal for a graph and a target, without trusting its source.

The checker trusts no statement of the plan about itself. It computes lifetimes from the steps again and
replays overlaps row by row. It runs a streamed plan on a model of its memory, in which every byte has a tag
of its content. It makes its own timeline of the plan's regions.

It shares with the planner:
- `schedule.run`, the order of the steps, which is the meaning of a plan's regions. With a missing or
  misplaced step there, planner and checker would agree on the wrong order. But the checker finds a step that
  then reads a missing row, or an output that is never complete. A trace build shows that the emitted C makes
  the same steps.
- The catalogue: the kernel for a shape, its scratch, its overlap contract. The kernels' own tests find a
  wrong contract or too little scratch; the checker does not.
- Digests, and `graph.macs`: the checker would confirm a wrong count of work.
- The lower bound of the arena, on which no safety depends.

It does not share: what an operator reads for a window of its output (`reads` here, `receptive` there),
which tensors are aliases, lifetimes, how far an output may lie over an input (`hazard` here, `overlap` and
`assemble.overlaps` there), ring and window sizes, or offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from buildtool.base.errors import PlanError, TargetError
from buildtool.base.expression import evaluate
from buildtool.base.modes import Image
from buildtool.graph.macs import pixel_macs, total_macs
from buildtool.graph.numbering import is_numbered
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import parts, views
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph, Op
from buildtool.plan.assemble.arrivals import constants
from buildtool.plan.check.contents import check_contents, check_loads
from buildtool.plan.check.hazard import Life, check_coverage, lives_in_steps, unsafe
from buildtool.plan.check.reads import sums_up
from buildtool.plan.check.replay import replay
from buildtool.plan.check.states import arena_groups, check_states
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.viewing import fits_words
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Step
from buildtool.target.catalogue import (
    ALIGNMENT,
    channel_bytes,
    constants_bytes,
    contract_for,
    element_types,
    features,
    operands,
    scratch_bytes,
    takes_parts,
    writes_parts,
)
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target, Windows

_MOST_ALIGNMENT = 4096  # bytes, which compilers and linkers promise everywhere
_MOST_AT_ONCE = 1 << 30  # rows, columns or channels: the emitted C adds them in 32 bits


def check(plan: Plan, graph: Graph, target: Target, *, made_for_it: bool = True) -> None:
    """Raises PlanError, which names the operator or tensor, unless `plan` is legal.

    `made_for_it`: whether the plan has to be made for exactly this target. Otherwise the targets may differ
    in costs, in memories that are still large enough, and in kernels that still fit.

    Plans of whole operators are checked by lifetimes and by the kernels' overlap contracts. Streamed plans,
    and plans in which tensors move, are replayed on a model of their memory.
    """
    _check_identity(plan, graph, target, made_for_it)
    _check_numbers(plan, graph)
    kernels = _check_kernels(plan, graph, target)
    _check_alignment_of_views(graph)
    check_contents(plan, graph)
    if not 0 <= plan.arena_bound_bytes <= plan.arena_bytes:
        raise PlanError(f"the plan's lower bound is {plan.arena_bound_bytes}, its arena {plan.arena_bytes}")
    streamed = plan.moves or plan.image == Image.STREAM or any(region.is_streamed for region in plan.regions)
    if streamed:
        listed = [op for region in plan.regions for op in region.ops]
        if listed != [i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]:
            raise PlanError("the regions do not hold every operator once, in the graph's order")
    _check_windows(plan, graph, kernels)
    timeline = Timeline.of(graph, plan.regions, plan.image)
    check_loads(plan, timeline)
    check_states(plan, graph, timeline)
    _check_brought(plan, graph, target, kernels)
    if streamed:
        _check_placement(plan, target, exact=False)
        _check_scratch(plan, graph, kernels, timeline.columns, exact=made_for_it)
        _check_macs(plan, graph, replay(plan, timeline, kernels).items())
        return
    steps = [Step(*line) for line in timeline.steps.tolist()]
    check_coverage(steps, graph)
    groups = arena_groups(graph)
    lives = lives_in_steps(steps, graph, groups, plan.image)
    holders = _check_tensor_buffers(plan, graph, groups, lives)
    _check_scratch_lives(plan, graph, steps, _check_scratch(plan, graph, kernels, {}, exact=made_for_it))
    _check_placement(plan, target, exact=True)
    allowed = _check_overlaps(plan, graph, kernels, steps, lives, holders)
    _check_conflicts(plan, allowed)
    _check_macs(plan, graph, ((s.op, (s.y1 - s.y0) * (s.x1 - s.x0)) for s in steps))
    most = min(arena_problem(plan.buffers, plan.overlaps, plan.alignment).bound.bytes, plan.arena_bytes)
    if not 0 <= plan.arena_bound_bytes <= most:
        raise PlanError(f"the plan's lower bound is {plan.arena_bound_bytes}, at most {most} is true")


def _check_identity(plan: Plan, graph: Graph, target: Target, made_for_it: bool) -> None:
    """Raises PlanError if the plan is not for this graph or not for this target.

    `made_for_it`: as in `check`.
    """
    if not is_numbered(graph):  # the plan says which tensors lie where by number
        raise PlanError("the network's tensors are not numbered in the order of their first mention")
    for differs, what in (
        (plan.topology != topology_digest(graph), "a network of another topology"),
        (plan.second_passes != graph.second_passes, "other second passes than the network has"),
        (plan.views != views(graph), "other views than the network has"),
        (made_for_it and plan.target != planning_digest(target), "another board or other kernels"),
    ):
        if differs:
            raise PlanError(f"the plan is for {what}", hint="plan again")
    if plan.image not in tuple(Image):
        raise PlanError(f"image mode '{plan.image}' is unknown", hint="known: " + ", ".join(Image))
    if not 1 <= plan.alignment <= _MOST_ALIGNMENT or plan.alignment % target.board.alignment:
        raise PlanError(
            f"alignment {plan.alignment} is not a multiple of the board's {target.board.alignment}"
            f" up to {_MOST_ALIGNMENT}"
        )


def _check_numbers(plan: Plan, graph: Graph) -> None:
    """Raises PlanError if C cannot compute with the plan's numbers, or if the plan is much too long.

    Some checks compare all pairs, so a plan may not have many more parts than its network needs.
    """
    groups = [group for region in plan.regions for group in region.groups]
    at_once = [n for group in groups for n in (group.rows_per_step, group.hand_off)]
    for number in (*at_once, *(load.channels for load in plan.loads)):
        if not 0 <= number <= _MOST_AT_ONCE:
            raise PlanError(f"no step makes {number} rows, columns or channels")
    if len({move.target for move in plan.moves}) < len(plan.moves):
        raise PlanError("two tensors move to one place")
    most = 4 * (len(graph.tensors) + len(graph.ops))
    for what, count, limit in (
        ("groups", len(groups), len(graph.ops)),
        ("overlaps", len(plan.overlaps), most),
        ("buffers", len(plan.buffers), most + len(plan.loads) + len(plan.moves)),
    ):
        if count > limit:
            raise PlanError(f"the plan has {count} {what}, and the network has no use for more than {limit}")


def _check_kernels(plan: Plan, graph: Graph, target: Target) -> list[KernelVariant | None]:
    """Returns the kernels, one per operator, with None for aliases.

    Raises PlanError if an operator has no suitable kernel, or if an alias has one.
    """
    if len(plan.kernels) != len(graph.ops):
        raise PlanError(f"the plan names {len(plan.kernels)} kernels for {len(graph.ops)} operators")
    variants = {(variant.op, variant.name): variant for variant in target.kernels}
    chosen: list[KernelVariant | None] = []
    for op, name in zip(graph.ops, plan.kernels, strict=True):
        if op.kind in ALIAS_KINDS:
            if name:
                raise PlanError(f"an alias has kernel '{name}'", operator=op.place)
            chosen.append(None)
            continue
        variant = variants.get((str(op.kind), name))
        if variant is None:
            raise PlanError(f"the target has no kernel '{name}' for {op.kind}", operator=op.place)
        if variant.types != element_types(graph, op):
            raise PlanError(f"kernel '{name}' is not for tensors of these types", operator=op.place)
        if not evaluate(variant.when, features(graph, op)):
            raise PlanError(f"kernel '{name}' does not serve this shape", operator=op.place)
        if op.seen and not takes_parts(graph, variant, op):
            raise PlanError(f"kernel '{name}' reads no part of a wider tensor's channels", operator=op.place)
        if op.outputs[0] in parts(graph) and (sums_up(graph, op) or not writes_parts(graph, variant, op)):
            raise PlanError(f"kernel '{name}' writes no part of a wider tensor's channels", operator=op.place)
        chosen.append(contract_for(variant, graph, op))
    return chosen


def _check_alignment_of_views(graph: Graph) -> None:
    """Raises PlanError if the pixels of a part are less aligned than those of a tensor of its own.

    Kernels may load words, as far as the number of channels allows.
    """
    for t, part in parts(graph).items():
        tensor, whole = graph.tensors[t], graph.tensors[part.whole]
        if not fits_words(part.first * tensor.dtype.size, tensor.pixel_bytes, whole.pixel_bytes):
            text = f"as a part of '{whole.name}' its pixels are less aligned than kernels may expect"
            raise PlanError(text, tensor=tensor.name)


def _check_brought(plan: Plan, graph: Graph, target: Target, kernels: Sequence[KernelVariant | None]) -> None:
    """Raises PlanError unless all constants of an operator are loaded, in slices that its kernel can compute.

    If weights are not read in place, every operator with constants needs a load.
    """
    beside: dict[int, list[int]] = {}  # operator -> bytes of each constant operand
    needed: dict[int, int] = {}  # operator -> bytes of all its constants
    loaded = {load.op for load in plan.loads}
    blocks = constants(graph, kernels) if plan.loads else {}
    all_come = bool(target.board.memory(target.board.weights).bandwidth)
    if loaded and not all_come:
        raise PlanError("the plan loads constants, but the board reads them in place")
    for position, kernel in enumerate(kernels):
        op = graph.ops[position]
        if kernel is None or (position not in loaded and not all_come):
            continue
        read = (t for t in operands(kernel, graph, op) if graph.tensors[t].is_constant)
        beside[position] = [-(-graph.tensors[t].size // ALIGNMENT) * ALIGNMENT for t in read]
        needed[position] = sum(beside[position]) + constants_bytes(kernel, graph, op)
    for load in plan.loads:
        op, kernel, size = graph.ops[load.op], kernels[load.op], needed.get(load.op, 0)
        if load.size != size:
            raise PlanError(f"the plan loads {load.size} of {size} bytes of constants", operator=op.place)
        if load.channels and (kernel is None or beside[load.op] or not _is_slice(load, kernel, graph, op)):
            text = f"kernel '{plan.kernels[load.op]}' computes no slices of {load.channels} channels"
            raise PlanError(text, operator=op.place)
        block, there = blocks.get(load.op), plan.buffers[load.buffer].size
        if load.channels and (block is None or there < load.slots * block.slice_bytes(load.channels)):
            raise PlanError(f"a buffer of {there} bytes is too small for slices", operator=op.place)
    for position, size in needed.items():
        if position not in loaded and (beside[position] or size):
            place = graph.ops[position].place
            raise PlanError("its constants are not loaded into the arena", operator=place)


def _is_slice(load: Load, kernel: KernelVariant, graph: Graph, op: Op) -> bool:
    """Returns whether a kernel can compute an operator's output in slices of the load's channels.

    The factors of a group of channels belong together: a slice lies within a group, or has whole groups.
    """
    cut, output = channel_bytes(kernel, graph, op), graph.tensors[op.outputs[0]].nhwc
    if cut is None or output[0] != 1 or load.channels % cut.step:
        return False
    return load.channels % cut.group == 0 or cut.group % load.channels == 0


def _check_windows(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None]) -> None:
    """Raises PlanError if a kernel computes only whole tensors, but its operator runs row by row."""
    for position in (p for region in plan.regions if region.is_streamed for p in region.ops):
        kernel, op = kernels[position], graph.ops[position]
        if kernel is not None and kernel.windows is Windows.WHOLE and not sums_up(graph, op):
            raise PlanError(
                f"kernel '{kernel.name}' computes whole tensors only, the plan runs it row by row",
                operator=op.place,
                hint="strategy=best or strategy=layerwise",
            )


def _check_tensor_buffers(
    plan: Plan, graph: Graph, groups: Mapping[int, int], lives: Mapping[int, Life]
) -> dict[int, int]:
    """Returns group of tensors that share bytes -> its buffer's position.

    Raises PlanError if the buffer of an activation is too small or does not live long enough. `groups`: see
    `alias_groups`. `lives`: group -> the steps in which it is needed. `check_contents` checks that each
    activation has a buffer.
    """
    holder: dict[int, int] = {}
    for index, buffer in enumerate(plan.buffers):
        if buffer.tensors and buffer.kind is not BufferKind.TENSOR:
            raise PlanError(f"buffer '{buffer.name}' holds different tensors")
        holder.update(dict.fromkeys(buffer.tensors, index))
    for t, group in groups.items():
        tensor = graph.tensors[t]
        buffer, (first, last) = plan.buffers[holder[t]], lives[group]
        if buffer.size < tensor.size:
            raise PlanError(f"the buffer has {buffer.size} of {tensor.size} bytes", tensor=tensor.name)
        if buffer.first > first or buffer.last < last:
            life = f"the buffer lives from step {buffer.first} to {buffer.last}"
            raise PlanError(f"{life}, needed from {first} to {last}", tensor=tensor.name)
    return {group: holder[group] for group in groups.values()}


def _check_scratch(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    columns: Mapping[int, int],
    exact: bool,
) -> dict[int, Buffer]:
    """Returns operator -> its buffer of scratch.

    Raises PlanError if a kernel that needs scratch does not have exactly one buffer, or if this is too small.
    The emitted calls use this buffer, and pass its size to the kernel. `columns`: as in Timeline. `exact`:
    whether a buffer must have no more bytes than the kernel needs.
    """
    scratch: dict[int, Buffer] = {}
    for buffer in (b for b in plan.buffers if b.kind is BufferKind.SCRATCH and 0 <= b.op < len(graph.ops)):
        if scratch.setdefault(buffer.op, buffer) is not buffer:
            raise PlanError("its bytes of scratch lie in two buffers", operator=graph.ops[buffer.op].place)
    for position, (op, kernel) in enumerate(zip(graph.ops, kernels, strict=True)):
        needed = scratch_bytes(kernel, graph, op, columns.get(position)) if kernel else 0
        size = scratch[position].size if position in scratch else 0
        if size < needed or (exact and size > needed):
            raise PlanError(f"its kernel needs {needed} bytes of scratch, it has {size}", operator=op.place)
    return scratch


def _check_scratch_lives(
    plan: Plan, graph: Graph, steps: Sequence[Step], scratch: Mapping[int, Buffer]
) -> None:
    """Raises PlanError unless an operator's scratch is live in each of its steps.

    `scratch`: operator -> its buffer.
    """
    for number, step in enumerate(steps):
        buffer = scratch.get(step.op)
        if buffer and not buffer.first <= number <= buffer.last:
            raise PlanError("its scratch is not live when it runs", operator=graph.ops[step.op].place)


def _check_placement(plan: Plan, target: Target, exact: bool) -> None:
    """Raises PlanError unless offsets are aligned, and the arena contains its buffers and fits its memories.

    `exact`: whether the arena has to end where its last buffer ends.
    """
    top, second, board = 0, plan.second_at, target.board
    if second < 0 or second % plan.alignment or (second and second >= plan.arena_bytes):
        raise PlanError(f"the second arena begins at {second} of {plan.arena_bytes} bytes")
    for b in plan.buffers:
        if b.size < 0 or b.first < 0 or b.last < b.first:
            raise PlanError(f"buffer '{b.name}' has {b.size} bytes, steps {b.first} to {b.last}")
        if b.offset < 0 or b.offset % plan.alignment:
            raise PlanError(f"buffer '{b.name}' lies at {b.offset}, not aligned to {plan.alignment}")
        if b.offset < second < b.offset + b.size:
            raise PlanError(f"buffer '{b.name}' lies across both memories")
        top = max(top, b.offset + b.size)
    least = second + plan.alignment if second else 0  # an empty arena has `alignment` bytes
    needed = max(-(-top // plan.alignment) * plan.alignment, least)
    if plan.arena_bytes < needed or (exact and plan.arena_bytes != needed):
        raise PlanError(f"the arena has {plan.arena_bytes} bytes, but its buffers end at {top}")
    if second and not board.second:
        raise PlanError(
            f"the plan lies in two memories, the arena of board '{board.name}' in '{board.arena}' alone",
            hint="name both with the option that says where the arena is",
        )
    for name, size in zip(board.holders, plan.arenas, strict=False):
        try:
            memory = board.memory(name)
        except KeyError:
            raise TargetError(f"board '{board.name}' has no memory '{name}'") from None
        if size > memory.size:
            text = f"the arena has {size} bytes, memory '{memory.name}' has {memory.size}"
            raise PlanError(text, hint="see the limits that `fit` reports")


def _check_overlaps(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    steps: Sequence[Step],
    lives: Mapping[int, Life],
    holders: Mapping[int, int],
) -> set[tuple[int, int]]:
    """Returns the pairs (output, input) of buffers that may overlap.

    Raises PlanError if a declared overlap does not follow the kernel's contract, or if the offsets do not
    obey it. `lives` and `holders`: by group of tensors that share bytes, the steps in which it is needed, and
    its buffer.
    """
    groups = arena_groups(graph)
    running: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        running.setdefault(step.op, []).append(number)
    needed_later = {groups[t] for t in graph.outputs if t in groups}
    if plan.image == Image.RESIDENT:
        needed_later |= set(graph.inputs)
    allowed = set()
    for overlap in plan.overlaps:
        if not 0 <= overlap.op < len(graph.ops):
            raise PlanError(f"an overlap names operator {overlap.op} of {len(graph.ops)}")
        op, kernel = graph.ops[overlap.op], kernels[overlap.op]
        sources = [t for t in op.inputs if t in groups and holders[groups[t]] == overlap.input]
        written = holders.get(groups.get(op.outputs[0], -1))
        if len(sources) != 1 or written != overlap.output or kernel is None:
            raise PlanError("an overlap names buffers other than its output and one input", operator=op.place)
        group, mine, name = groups[sources[0]], running[overlap.op], graph.tensors[sources[0]].name
        if lives[group][1] != mine[-1] or group in needed_later:
            text = "its output lies over an input that is read later"
            raise PlanError(text, operator=op.place, tensor=name)
        output, source = plan.buffers[overlap.output], plan.buffers[overlap.input]
        shift = source.offset - output.offset
        for apart in (overlap.distance, max(shift, overlap.distance)):
            why = unsafe(graph, op, sources[0], kernel.overlap, apart)
            if why:
                raise PlanError(f"its output lies {apart} bytes below its input: {why}", operator=op.place)
        together = range(max(output.first, source.first), min(output.last, source.last) + 1)
        if shift >= overlap.distance and set(mine).issuperset(together):
            allowed.add((overlap.output, overlap.input))
    return allowed


def _check_conflicts(plan: Plan, allowed: set[tuple[int, int]]) -> None:
    """Raises PlanError if two live buffers share a byte.

    `allowed`: pairs of buffers whose overlap is proven to be safe.
    """
    order = sorted((i for i, b in enumerate(plan.buffers) if b.size), key=lambda i: plan.buffers[i].first)
    for place, i in enumerate(order):
        a = plan.buffers[i]
        for j in order[place + 1 :]:
            b = plan.buffers[j]
            if b.first > a.last:
                break
            if a.touches(b) and (i, j) not in allowed and (j, i) not in allowed:
                raise PlanError(
                    f"buffers '{a.name}' and '{b.name}' overlap in step {max(a.first, b.first)}",
                    hint="the plan is damaged; plan again",
                )


def _check_macs(plan: Plan, graph: Graph, made: Iterable[tuple[int, int]]) -> None:
    """Raises PlanError if the plan states wrong multiply-accumulates.

    `made`: pairs (operator, number of pixels that it makes).
    """
    macs = sum(pixel_macs(graph, graph.ops[op], pixels) for op, pixels in made)
    if (plan.macs, plan.macs_layerwise) != (macs, total_macs(graph)):
        raise PlanError(f"the plan declares {plan.macs} MACs, its steps execute {macs}")
