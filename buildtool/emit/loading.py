"""Writes the C that loads constants from slow memory into the arena.

A region first waits for its own constants. Then it begins to load those of the next region, which arrive
while this region computes. Some constants are loaded while a region runs row by row, see `StreamedLoads`.
"""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.emit.arguments import (
    geometry,
    invocation,
    operand_view,
    part_view,
    view_arguments,
    whole_view,
)
from buildtool.emit.ctext import block
from buildtool.emit.image import pieces
from buildtool.emit.network import Network
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.arrivals import constants
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import slices_in_place
from buildtool.plan.schedule.timeline import group_of, parts
from buildtool.plan.types import Group, Load, Region
from buildtool.target.catalogue import features
from buildtool.target.types import Argument, KernelVariant


class Loading:
    """Writes the code that loads a network's constants, region by region."""

    def __init__(self, network: Network) -> None:
        self.network = network
        plan = network.plan
        self.blocks = constants(network.graph, network.kernels) if plan.loads else {}
        firsts = {first: index for index, first in enumerate(network.timeline.starts[:-1])}
        self.begun: list[list[Load]] = [[] for _ in plan.regions]  # loads that begin with a region
        self.needed: list[list[Load]] = [[] for _ in plan.regions]
        region_of = {op: i for i, region in enumerate(plan.regions) for op in region.ops}
        for load in plan.loads:
            if load.by_turns or load.op in network.relocated_constants:
                continue  # loaded while their region runs: see StreamedLoads
            self.begun[firsts[plan.buffers[load.buffer].first]].append(load)
            self.needed[region_of[load.op]].append(load)

    def prologue(self, index: int) -> list[str]:
        """Returns the statements at the start of the region `index`.

        They wait for the region's constants, and begin to load constants of later regions.
        """
        own = [load for load in self.begun[index] if load in self.needed[index]]
        lines = [line for load in own for line in self._begin(load)]
        if self.needed[index]:
            lines.append("loaded();")
        if not any(load.channels for load in self.needed[index]):
            lines += self.ahead(index)
        return lines

    def ahead(self, index: int) -> list[str]:
        """Returns only the statements of the region `index` that begin to load later regions' constants."""
        later = [load for load in self.begun[index] if load not in self.needed[index]]
        return [line for load in later for line in self._begin(load)]

    def _begin(self, load: Load) -> list[str]:
        network = self.network
        buffer = network.plan.buffers[load.buffer]
        if load.channels:
            channels = min(load.channels, _channels(network, load))
            return [f"load_channels(&block_{load.op}, arena + {buffer.offset}, 0, {channels});"]
        return [
            f"load(arena + {buffer.offset + place}, {start}, {length});"
            for start, length, place in pieces(network.graph, network.image.places, load.op)
        ]

    def in_slices(self, network: Network, load: Load, kernel: KernelVariant, index: int) -> list[str]:
        """Returns the code for an operator that is computed in slices of its output channels.

        Each slice's constants are loaded before it is computed. `network` is a result of `Network.after`;
        `index` is the operator's region.
        """
        graph = network.graph
        op = graph.ops[load.op].as_seen
        buffer = network.plan.buffers[load.buffer]
        source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
        channels, count = _channels(network, load), load.channels
        rows, columns = (1, result.elements // channels) if _is_dense(op.kind) else result.nhwc[1:3]
        pixels = rows * columns
        to, slot = f"arena + {buffer.offset}", buffer.size // load.slots
        now = to if load.slots == 1 else f"{to} + part * {slot}"
        later = to if load.slots == 1 else f"{to} + (1 - part) * {slot}"
        begin = [
            "if (next > 0) {",
            f"    load_channels(&block_{load.op}, {later}, (uint32_t)c + {count}, (uint32_t)next);",
            *(["} else {", *("    " + line for line in self.ahead(index))] if self.ahead(index) else []),
            "}",
        ]
        arguments = {
            **view_arguments(["in"], "out"),
            **network.common_arguments(load.op),
            Argument.GEOMETRY: "&geometry",
            Argument.CONSTANTS: now,
            Argument.WINDOW: "&window",
            Argument.CHANNEL: "c",
        }
        by_channels = slices_in_place(graph, op)  # slices of the input, too
        read = "read" if by_channels else "in"
        part_in, part_out = (
            part_view(f"&{of}", "c", "count", t.dtype) for of, t in ((read, source), ("all", result))
        )
        body = [
            f"const int32_t count = nn_least({count}, {channels} - c);",
            f"const int32_t next = nn_least({count}, {channels} - c - count);",
            "if (c > 0) {",
            "    loaded();",
            "}",
            *([f"range_from({now} + {at}, c);"] if (at := self.blocks[load.op].range) else []),
            *(begin if load.slots == 2 else []),
            *([f"const nn_view in = {part_in};"] if by_channels else []),
            f"const nn_view out = {part_out};",
            invocation(kernel, arguments),
        ]
        body += begin if load.slots == 1 else ["part = 1 - part;"]

        def whole(tensor: int) -> str:
            of = graph.tensors[tensor]
            view = (1, pixels, of.elements // pixels) if _is_dense(op.kind) else of.nhwc[1:]
            return whole_view(network.address(tensor), *view, of.dtype)

        def made(tensor: int) -> str:
            of = graph.tensors[tensor]
            return whole_view(network.address(tensor), rows, columns, of.elements // pixels, of.dtype)

        return [
            *(geometry(graph, op, "geometry") if Argument.GEOMETRY in kernel.call else []),
            f"static const nn_window window = {{0, {rows}, 0, {columns}}};",
            *operand_view(graph, op.inputs[0], read, whole),
            *operand_view(graph, op.outputs[0], "all", made),
            *(["int32_t part = 0;"] if load.slots == 2 else []),
            *block(f"for (int32_t c = 0; c < {channels}; c += {count})", body),
        ]

    def declarations(self) -> str:
        """Returns the variables and helper functions at file scope; "" if nothing is loaded."""
        if not self.network.plan.loads:
            return ""
        blocks, loads = [], self.network.plan.loads
        for load in loads:
            if load.channels:
                of, start = self.blocks[load.op], self.network.image.places.constants[load.op]
                channels, unit = round_up(of.channels, of.padded), of.row_unit(load.channels)
                numbers = (start, of.head, channels, of.factors, of.weights, unit, of.group)
                fields = ", ".join(map(str, numbers))
                blocks.append(f"static const constants_block block_{load.op} = {{{fields}}};")
        ranges = _RANGES if any(load.channels and self.blocks[load.op].range for load in loads) else ""
        return _STATE + (_SLICES + ranges + "\n".join(blocks) + "\n" if blocks else "")


class StreamedLoads:
    """Writes the code that loads constants while a region runs row by row.

    Groups may share memory for constants. Before a group computes rows, it loads its constants again if
    another group has run in the meantime. Constants may also lie in unused rows of the region's input. Then
    they are loaded to several places, one after the other, each time before a certain row.
    """

    def __init__(self, network: Network, index: int) -> None:
        self.network = network
        self.region: Region = network.plan.regions[index]
        self._run, self._start = network.timeline.runs[index], network.timeline.starts[index]
        own = [load for load in network.plan.loads if load.op in self.region.ops]
        self._by_turns = [load for load in own if load.by_turns]
        self._wandering: dict[int, list[Load]] = {}
        for load in own:
            if load.op in network.relocated_constants and not load.by_turns:
                self._wandering.setdefault(load.op, []).append(load)

    def declarations(self) -> list[str]:
        """Returns the variables that say which group ran last, and where constants are now."""
        lines = ["/* The group that ran last. */", "int32_t turn = -1;"] if self._by_turns else []
        buffers = self.network.plan.buffers
        for op, loads in self._wandering.items():
            offsets = ", ".join(str(buffers[load.buffer].offset) for load in loads)
            rows = ", ".join(str(row) for row in self._rows(op, loads))
            # where the constants are before their first place
            first = [buffers[load.buffer].offset for load in self._by_turns if load.op == op]
            lines += [
                f"/* Operator {op}: its constants come to these places of the arena with these rows. */",
                f"static const uint32_t places_{op}[] = {{{offsets}}};",
                f"static const int32_t rows_{op}[] = {{{rows}}};",
                f"const int8_t *constants_{op} = {f'arena + {first[0]}' if first else 'NULL'};",
                f"int32_t place_{op} = 0;",
            ]
        return lines

    def before(self, group: Group, row: str) -> list[str]:
        """Returns the statements that must run before a group computes rows from `row` (C) on."""
        place = self.region.groups.index(group)
        loads = [load for load in self._by_turns if load.op in group.ops]
        lines = [f"turn = {place};"] if self._by_turns and not loads else []
        if loads:
            reload = [f"turn = {place};"]
            for load in loads:
                offset = self.network.plan.buffers[load.buffer].offset
                own = self._load(load.op, "", offset)
                if load.op in self._wandering:
                    own = block(f"if ({row} < rows_{load.op}[0])", own)
                reload += own
            lines += block(f"if (turn != {place})", [*reload, "loaded();"])
        for op in group.ops:
            if op in self._wandering:
                count = len(self._wandering[op])
                lines += block(
                    f"if (place_{op} < {count} && {row} == rows_{op}[place_{op}])",
                    [
                        f"constants_{op} = arena + places_{op}[place_{op}];",
                        *self._load(op, f"places_{op}[place_{op}]", 0),
                        "loaded();",
                        f"place_{op}++;",
                    ],
                )
        return lines

    def _load(self, op: int, base: str, offset: int) -> list[str]:
        """Returns statements that begin to load the constants of the operator `op`.

        They go to the address arena + `base` + `offset`; `base` is C, or "" for 0.
        """
        network = self.network
        lines = []
        for start, length, at in pieces(network.graph, network.image.places, op):
            terms = [term for term in ("arena", base, str(offset + at)) if term not in ("", "0")]
            lines.append(f"load({' + '.join(terms)}, {start}, {length});")
        return lines

    def _rows(self, op: int, loads: Sequence[Load]) -> list[int]:
        """Returns for each of `loads` the row with which an operator's group begins to compute after it.

        `loads`: those of the operator `op`, which copy its constants to one place after the other.
        """
        timeline = self.network.timeline
        group = parts(self._run, timeline, group_of(self.region, op))
        begins = {self._start + part.step: part.y0 for part in group}
        firsts = [self.network.plan.buffers[load.buffer].first for load in loads]
        return [begins[first] for first in firsts]


def _is_dense(kind: OpKind) -> bool:
    return kind is OpKind.FULLY_CONNECTED


def _channels(network: Network, load: Load) -> int:
    """Returns the number of output channels of the operator whose constants `load` copies."""
    return features(network.graph, network.graph.ops[load.op])["cout"]


_STATE = """\
static nn_loader loader; /* without functions: the weights are copied from where init found them */

/* Begins to bring bytes of the weight image into the arena. */
static void load(int8_t *to, uint32_t from, uint32_t bytes) {
    if (loader.begin != NULL) {
        loader.begin(loader.context, to, from, bytes);
    } else {
        memcpy(to, weights + from, bytes);
    }
}

/* Returns when all is there. */
static void loaded(void) {
    if (loader.wait != NULL) {
        loader.wait(loader.context);
    }
}
"""

_SLICES = """
/* An operator's constants in the weight image: a head, then factors and weights of `channels`; the
 * weights of a multiple of `unit` channels come together, and so do the factors of `group` channels. */
typedef struct {
    uint32_t from, head, channels, factors, weights, unit, group;
} constants_block;

static uint32_t whole_lines(uint32_t bytes) {
    return (bytes + 15U) / 16U * 16U;
}

/* Begins to bring `count` channels: the block that a kernel of this many channels reads. */
static void load_channels(const constants_block *block, int8_t *to, uint32_t first,
                          uint32_t count) {
    const uint32_t there = whole_lines(block->head + block->factors * block->channels);
    const uint32_t together = first / block->group * block->group;
    const uint32_t groups = (first - together + count + block->group - 1U) / block->group;
    const uint32_t left = block->channels - together, most = block->group * groups;
    const uint32_t factors = block->factors * (most < left ? most : left);
    const uint32_t here = whole_lines(block->head + factors);
    count = (count + block->unit - 1U) / block->unit * block->unit;
    load(to, block->from, block->head);
    if (factors > 0) {
        load(to + block->head, block->from + block->head + block->factors * together, factors);
    }
    load(to + here, block->from + there + block->weights * first, block->weights * count);
}

"""

_RANGES = """
/* Makes a range of output channels relative to channel `first`. */
static void range_from(int8_t *at, int32_t first) {
    int32_t range[2];
    memcpy(range, at, sizeof(range));
    for (int32_t i = 0; i < 2; i++) {
        range[i] = range[i] > first ? range[i] - first : 0;
    }
    memcpy(at, range, sizeof(range));
}

"""
