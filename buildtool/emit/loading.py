"""Emitted C for weights in slow memory: what is brought into the arena, and when.

A region begins with what it has to wait for; then what the next region needs is begun, so that it
comes while this one computes.
"""

from __future__ import annotations

from buildtool.base.errors import PlanError
from buildtool.emit import views
from buildtool.emit.geometry import geometry
from buildtool.emit.image import pieces
from buildtool.emit.invocation import invocation, view_arguments
from buildtool.emit.network import Network
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.constants import constants
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import slices_in_place
from buildtool.plan.types import Load
from buildtool.target.catalogue import features
from buildtool.target.types import Argument, KernelVariant


class Loading:
    """The loads of a network, by region."""

    def __init__(self, network: Network) -> None:
        self.network = network
        plan = network.plan
        self.blocks = constants(network.graph, network.kernels) if plan.loads else {}
        firsts = _first_steps(network)
        self.begun: list[list[Load]] = [[] for _ in plan.regions]  # when a region begins
        self.needed: list[list[Load]] = [[] for _ in plan.regions]
        region_of = {op: i for i, region in enumerate(plan.regions) for op in region.ops}
        for load in plan.loads:
            self._check(load)
            if load.by_turns or load.op in network.wandering:
                continue  # they come while their region runs: see turns
            begin = firsts.get(plan.buffers[load.buffer].first)
            if begin is None or begin > region_of[load.op]:
                raise PlanError("a load that begins in no region", operator=network.graph.ops[load.op].place)
            self.begun[begin].append(load)
            self.needed[region_of[load.op]].append(load)

    def _check(self, load: Load) -> None:
        """The plan was made for constants of these sizes."""
        graph, buffer = self.network.graph, self.network.plan.buffers[load.buffer]
        place, block = graph.ops[load.op].place, self.blocks.get(load.op)
        if block is None or block.size != load.size:
            raise PlanError(f"the plan loads {load.size} bytes of constants", operator=place)
        wanted = load.slots * block.slice_bytes(load.channels) if load.channels else block.size
        if buffer.size < wanted or (load.channels and not block.channels):
            raise PlanError(f"{buffer.size} bytes for constants of {wanted}", operator=place)

    def prologue(self, index: int) -> list[str]:
        """What a region begins with: its own constants, then those of regions after it."""
        own = [load for load in self.begun[index] if load in self.needed[index]]
        lines = [line for load in own for line in self._begin(load)]
        if self.needed[index]:
            lines.append("loaded();")
        if not any(load.channels for load in self.needed[index]):
            lines += self.ahead(index)
        return lines

    def ahead(self, index: int) -> list[str]:
        """Begins what later regions need."""
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
        """An operator that computes its output channels slice by slice; `network` as it is then."""
        graph = network.graph
        op = graph.ops[load.op].as_seen
        buffer = network.plan.buffers[load.buffer]
        source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
        channels, count = _channels(network, load), load.channels
        rows, columns = (1, result.elements // channels) if _dense(op.kind) else result.nhwc[1:3]
        pixels = rows * columns
        to, slot = f"arena + {buffer.offset}", buffer.size // load.slots
        now = to if load.slots == 1 else f"{to} + part * {slot}"
        then = to if load.slots == 1 else f"{to} + (1 - part) * {slot}"
        begin = [
            "if (next > 0) {",
            f"    load_channels(&block_{load.op}, {then}, (uint32_t)c + {count}, (uint32_t)next);",
            *(["} else {", *("    " + line for line in self.ahead(index))] if self.ahead(index) else []),
            "}",
        ]
        arguments = {
            **view_arguments(["in"], "out"),
            Argument.GEOMETRY: "&geometry",
            Argument.CONSTANTS: now,
            Argument.WINDOW: "&window",
            Argument.CHANNEL: "c",
            Argument.SCRATCH: network.scratch(load.op),
            Argument.SCRATCH_BYTES: network.scratch_bytes(load.op),
        }
        by_channels = slices_in_place(graph, op)  # of the input, too
        read = "read" if by_channels else "in"
        part_in, part_out = (
            views.part(f"&{of}", "c", "count", t.dtype) for of, t in ((read, source), ("all", result))
        )
        body = [
            f"const int32_t count = nn_least({count}, {channels} - c);",
            f"const int32_t next = nn_least({count}, {channels} - c - count);",
            "if (c > 0) {",
            "    loaded();",
            "}",
            *(begin if load.slots == 2 else []),
            *([f"const nn_view in = {part_in};"] if by_channels else []),
            f"const nn_view out = {part_out};",
            invocation(kernel, arguments),
        ]
        body += begin if load.slots == 1 else ["part = 1 - part;"]

        def whole(tensor: int) -> str:
            of = graph.tensors[tensor]
            view = (1, pixels, of.elements // pixels) if _dense(op.kind) else of.nhwc[1:]
            return views.whole(network.address(tensor), *view, of.dtype)

        def made(tensor: int) -> str:
            of = graph.tensors[tensor]
            return views.whole(network.address(tensor), rows, columns, of.elements // pixels, of.dtype)

        return [
            *(geometry(graph, op, "geometry") if Argument.GEOMETRY in kernel.call else []),
            f"static const nn_window window = {{0, {rows}, 0, {columns}}};",
            *views.operand(graph, op.inputs[0], read, whole),
            *views.operand(graph, op.outputs[0], "all", made),
            *(["int32_t part = 0;"] if load.slots == 2 else []),
            f"for (int32_t c = 0; c < {channels}; c += {count}) {{",
            *("    " + line for line in body),
            "}",
        ]

    def declarations(self) -> str:
        """State and helpers, at file scope."""
        if not self.network.plan.loads:
            return ""
        sliced = [load for load in self.network.plan.loads if load.channels]
        blocks = []
        for load in sliced:
            position = load.op
            block, start = self.blocks[position], self.network.image.constants[position]
            channels = round_up(block.channels, block.unit)
            numbers = (start, channels, block.factors, block.weights, block.unit, block.group)
            fields = ", ".join(map(str, numbers))
            blocks.append(f"static const constants_block block_{position} = {{{fields}}};")
        return _STATE + (_SLICES + "\n".join(blocks) + "\n" if sliced else "")


def _dense(kind: OpKind) -> bool:
    return kind is OpKind.FULLY_CONNECTED


def _channels(network: Network, load: Load) -> int:
    """Output channels of a sliced operator."""
    return features(network.graph, network.graph.ops[load.op])["cout"]


def _first_steps(network: Network) -> dict[int, int]:
    """First step -> the region that begins with it."""
    return {first: index for index, first in enumerate(network.timeline.starts[:-1])}


def prototype(network: Network) -> str:
    """The interface's function that takes a loader."""
    if not network.plan.loads:
        return ""
    return f"""
/* How constants come into the arena, from flash that cannot be read in place. Without one they are
 * copied from the weights given to {network.net}_init; with one, set before it, those may be NULL.
 * NN_ERROR_BUSY during an invoke. */
nn_status {network.net}_set_loader(nn_loader loader);
"""


def harness_macro(network: Network) -> str:
    """How the harness brings constants."""
    if not network.plan.loads:
        return ""
    return f"""\
#define HARNESS_SET_LOADER(loader) {network.net}_set_loader(loader)
"""


def check_image(network: Network) -> str:
    """Of init: sets `status`."""
    if not network.plan.loads:
        return """\
    const nn_status status = nn_image_check_with(image, &image_kind, memory, memory_bytes);"""
    return """\
    const nn_status status =
        image == NULL && loader.begin != NULL
            ? nn_image_check_loaded(&loader, memory, memory_bytes, &image_kind)
            : nn_image_check_with(image, &image_kind, memory, memory_bytes);"""


def read_quantization(network: Network) -> str:
    """Returns entry `first + index` of the image's table."""
    if not network.plan.loads:
        return """\
    const nn_quantization *table = (const void *)(weights + sizeof(nn_image_header));
    return table[first + index];"""
    return """\
    nn_quantization found;
    const uint8_t before = running; /* a hook may ask in the middle of an invoke */
    running = 1;
    load((int8_t *)&found, (uint32_t)(sizeof(nn_image_header) + sizeof found * (size_t)(first + index)),
         sizeof found);
    loaded();
    running = before;
    return found;"""


def set_loader(network: Network) -> str:
    """The function that takes a loader."""
    if not network.plan.loads:
        return ""
    return f"""
nn_status {network.net}_set_loader(nn_loader with) {{
    if (running) {{
        return NN_ERROR_BUSY;
    }}
    if (with.begin == NULL && weights == NULL) {{
        own_arena = NULL; /* the weights came by the loader before */
    }}
    loader = with;
    return NN_OK;
}}
"""


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
/* An operator's constants in the weight image: `channels` of so many bytes each, behind a head; there
 * are bytes for a multiple of `unit` channels, and factors of `group` channels come together. */
typedef struct {
    uint32_t from, channels, factors, weights, unit, group;
} constants_block;

static uint32_t whole_lines(uint32_t bytes) {
    return (bytes + 15U) / 16U * 16U;
}

/* Begins to bring `count` channels: the block that a kernel of so many channels reads. */
static void load_channels(const constants_block *block, int8_t *to, uint32_t first,
                          uint32_t count) {
    const uint32_t there = whole_lines(16U + block->factors * block->channels);
    const uint32_t together = first / block->group * block->group;
    const uint32_t groups = (first - together + count + block->group - 1U) / block->group;
    const uint32_t factors = block->factors * block->group * groups;
    const uint32_t here = whole_lines(16U + factors);
    count = (count + block->unit - 1U) / block->unit * block->unit;
    load(to, block->from, 16U);
    load(to + 16, block->from + 16U + block->factors * together, factors);
    load(to + here, block->from + there + block->weights * first, block->weights * count);
}

"""
