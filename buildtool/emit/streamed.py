"""Writes the C of a region that runs row by row: a loop over the rows of each group, which contains the loop
of its input.

Before a group computes rows, the inner loop computes the rows of the previous group that they need. The
innermost loop uses rows of the region's input, or asks the application for rows of the input image. Branches
advance together (see `rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from buildtool.emit.arguments import geometry, invocation, part_view, whole_view
from buildtool.emit.ctext import block, plus
from buildtool.emit.loading import StreamedLoads
from buildtool.emit.network import Network
from buildtool.emit.rows import advance, counters, row_tables, table_high, times
from buildtool.emit.windowed import operands_of, window_call
from buildtool.graph.partviews import parts
from buildtool.graph.types import Graph
from buildtool.plan.schedule.advances import Link
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.bands import first_row
from buildtool.plan.schedule.bands import lines as lines_of
from buildtool.plan.schedule.delivery import portions
from buildtool.plan.schedule.inner import meets_input
from buildtool.plan.schedule.pace import Pace
from buildtool.plan.schedule.receptive import axes, columns, fed_in_parts
from buildtool.plan.schedule.schedule import column_ranges, first_column, hand_offs, is_driven, links
from buildtool.plan.types import Group, Region, Scheme
from buildtool.target.types import Argument, Role

_COUNTERS = 4  # declarations per line
_ROW_SOURCE = ("nn_row_source *const deliver = row_source;", "void *const context = row_context;")


def emit_streamed_region(network: Network, region: Region, coming: StreamedLoads) -> list[str]:
    """Returns the body of the function for a region that runs row by row. `coming` writes the loads of
    constants.
    """
    chain, delivered = links(region, network.graph), network.takes_rows(region)
    names = [
        name
        for link in chain
        for name in (counters(link.branches) if link.branches else _row_counter(network, link.group))
    ]
    return [
        *_geometries(network, region),
        *_views(network, region),
        *row_tables(chain, delivered),
        f"/* Rows made by each group{', rows of the image' * delivered}. */",
        *_zeros(names),
        *([*_zeros(["delivered"]), *_ROW_SOURCE] if delivered else []),
        *coming.declarations(),
        "",
        *_Loops(network, chain, delivered, coming).all(),
    ]


def _zeros(every: Sequence[str]) -> list[str]:
    """Returns lines that declare counters with the value 0, several per line.

    An item of `every` is a counter's name, or a name with another first value ("x = 2").
    """
    rows = (every[i : i + _COUNTERS] for i in range(0, len(every), _COUNTERS))
    values = ([name if "=" in name else f"{name} = 0" for name in row] for row in rows)
    return ["int32_t " + ", ".join(row) + ";" for row in values]


def _row_counter(network: Network, group: Group) -> list[str]:
    """Returns the declaration of a group's row counter, for `_zeros`.

    It is the counter's name, with its first value if that is not 0.
    """
    begin, name = first_row(network.graph, group), f"row_{group.ops[-1]}"
    return [f"{name} = {begin}" if begin else name]


def whole_image(network: Network, region: Region) -> list[str]:
    """Returns code that gets all rows of the input image from the application, for a region of one step.

    It is empty if the region does not read this image.
    """
    if not network.takes_rows(region):
        return []
    t = network.delivered.tensor
    image = network.graph.tensors[t]
    count, size = portions(network.graph)
    body = _ask_for_row("y", f"{network.address(t)} + y * {size}")
    return [*_ROW_SOURCE, *block(f"for (int32_t y = 0; y < {image.nhwc[1] * count}; y++)", body)]


def _ask_for_row(row: str, place: str) -> list[str]:
    """Returns statements that ask the application for the row number `row` at the address `place`, and end
    the invoke on an error.
    """
    return [f"const int code = deliver(context, {row}, {place});", *block("if (code != 0)", ["return code;"])]


def _running(graph: Graph, region: Region) -> list[int]:
    """Returns the operators of a region that have calls: all but those in front of an operator that reads
    nothing but padding.
    """
    return [
        position
        for group in region.groups
        for place, position in enumerate(group.ops)
        if group.scheme is Scheme.BRANCHES or any(call[0] == place for call in hand_offs(group, graph))
    ]


def _geometries(network: Network, region: Region) -> list[str]:
    lines = []
    for position in _running(network.graph, region):
        op = network.graph.ops[position]
        kernel = network.kernels[position]
        if kernel and Argument.GEOMETRY in kernel.call and not fed_in_parts(network.graph, op):
            lines += geometry(network.graph, op.as_seen, f"geometry_{position}")
    return lines


def _views(network: Network, region: Region) -> list[str]:
    """Returns lines that declare a view of every tensor of the region: of the whole tensor, or of its ring
    buffer.
    """
    graph = network.graph
    lines, running = [], _running(graph, region)
    tensors = [t for p in running for t in (*operands_of(network, p), *graph.ops[p].outputs)]
    channel_parts = {t: parts(graph)[t] for t in tensors if t in parts(graph)}
    wholes = dict.fromkeys(channel_parts[t].whole if t in channel_parts else t for t in tensors)
    for t in wholes:
        if fed_in_parts(graph, graph.ops[region.ops[-1]]) and t in graph.ops[region.ops[-1]].outputs:
            continue
        of, name, holder = graph.tensors[t], network.describe_tensor(t), network.holders.get(t)
        _, height, width, channels = of.nhwc
        view = network.address(t, next((p for p in region.ops if t in graph.ops[p].inputs), -1))
        if holder is not None and holder.rows:
            ring_columns = holder.columns or width
            name = f"{holder.rows} of {height} rows, {ring_columns} of {width} columns: {name}"
            strides = f"{ring_columns * of.pixel_bytes}, {of.pixel_bytes}"
            view = f"{{{view}, {strides}, {holder.rows}, {ring_columns}, 0, {height}, {width}, {channels}}}"
        else:
            view = whole_view(view, height, width, channels, of.dtype)
        lines += [f"/* {name} */", f"const nn_view tensor_{t} = {view};"]
    makers = {graph.ops[p].outputs[0]: p for p in region.ops}
    for t, rows in (kept for group in region.groups for kept in lines_of(graph, group).items()):
        of, buffer = graph.tensors[t], network.lines(makers[t])
        _, height, width, channels = of.nhwc
        if buffer is None:
            continue  # all columns are in the window
        columns = buffer.columns or width
        lines += [
            f"/* {rows} of {height} rows that are read again: {network.describe_tensor(t)} */",
            f"const nn_view lines_{t} = {{{network.place(buffer.offset)}, {columns * of.pixel_bytes}, "
            f"{of.pixel_bytes}, {rows}, {columns}, 0, {height}, {width}, {channels}}};",
        ]
    for t, (wider, first) in channel_parts.items():
        count = graph.tensors[t].nhwc[3]
        lines.append(f"/* Channels {first} to {first + count - 1}: {network.describe_tensor(t)} */")
        part = part_view(f"&tensor_{wider}", str(first), str(count), graph.tensors[t].dtype)
        lines.append(f"const nn_view tensor_{t} = {part};")
    return lines


def _step_end(pace: Pace, row: str) -> str:
    """Returns C for one past the last row of the step that begins with the row `row`: pace.end."""
    end = f"nn_least({pace.height}, {row} + {pace.step})"
    if pace.last > pace.step:
        end = f"{pace.height} - {row} <= {pace.last} ? {pace.height} : {row} + {pace.step}"
    return end if pace.first == pace.step else f"{row} == 0 ? {pace.end(0)} : {end}"


def _high(variable: str, axis: Axis) -> str:
    """Returns C for one past the last input row that the first `variable` output rows need: axis.high."""
    return plus(times(variable, axis.stride), axis.kernel - axis.stride - axis.pad)


def _least(size: int, axis: Axis, expression: str) -> str:
    """Returns C for the value of an expression, but at most one past the last of `size` elements that windows
    read. It is only the expression if windows read up to the last element.
    """
    return expression if axis.reach(size) == size else f"nn_least({axis.reach(size)}, {expression})"


def _from(variable: str, axis: Axis) -> str:
    """Returns C for the first input column that the output column `variable` or a later one reads; it may be
    below 0.
    """
    first = _first(variable, axis)
    return f"nn_most({axis.begin}, {first})" if axis.begin > max(0, -axis.pad) else first


def _low(variable: str, axis: Axis) -> str:
    return f"nn_most(0, {_first(variable, axis)})" if axis.pad else _first(variable, axis)


def _first(variable: str, axis: Axis) -> str:
    """Returns C for the first input row that the output row number `variable` needs: axis.low."""
    return plus(times(variable, axis.stride), -axis.pad)


@dataclass(frozen=True)
class _Loops:
    """Writes the loops over the rows of a region's groups. `asks` says whether the region gets its input
    image row by row from the application.
    """

    network: Network
    chain: Sequence[Link]
    asks: bool
    coming: StreamedLoads

    def all(self) -> list[str]:
        """Returns the loop of the last group, which contains the loops of all others.

        If the first group cannot run as rows of the image arrive, all these rows are fetched before it.
        """
        network = self.network
        if not self.asks or is_driven(self.chain[0].group, network.graph):
            return self.of(len(self.chain) - 1, str(self.chain[-1].height))
        rows = network.graph.tensors[network.delivered.tensor].nhwc[1]
        return [*self.of(-1, str(rows)), *replace(self, asks=False).all()]

    def of(self, index: int, need: str) -> list[str]:
        """Returns the loop that goes on until `need` rows of the group `index` are computed; for -1, until
        that many input rows have been fetched.
        """
        if index < 0:
            if not self.asks:
                return []
            view = f"tensor_{self.network.delivered.tensor}"
            count, size = portions(self.network.graph)
            if count > 1:  # the row is delivered in portions
                asks = _ask_for_row("x", f"nn_out_data(&{view}) + x * {size}")
                body = [*block(f"for (int32_t x = 0; x < {count}; x++)", asks), "delivered++;"]
                return block(f"while (delivered < {need})", body)
            body = [
                f"const int32_t place = delivered % {view}.ring_rows * {view}.row_stride;",
                *_ask_for_row("delivered", f"nn_out_data(&{view}) + place"),
                "delivered++;",
            ]
            return block(f"while (delivered < {need})", body)
        link = self.chain[index]
        last = link.group.ops[-1]
        if link.branches:
            lines = advance(
                link.branches,
                lambda rows: self.of(index - 1, rows),
                lambda position, y0, y1: [
                    *self.coming.before(link.group, y0),
                    *window_call(self.network, position, _whole_rows(self.network, position, y0, y1)),
                ],
            )
            return block(f"while (row_{last} < {need})", lines)
        row, start, end = f"row_{last}", f"from_{last}", f"to_{last}"
        if isinstance(link.axis, AxisTable):
            reach = table_high(end, last, link.axis, link.input_height, some=True)
        else:
            reach = _high(end, link.axis)
        body = [
            f"const int32_t {start} = {row};",
            f"const int32_t {end} = {_step_end(link.pace, row)};",
            *self.of(index - 1, f"nn_least({link.input_height}, {reach})"),
            *self.coming.before(link.group, start),
            *_group(self.network, link.group, start, end),
            f"{row} = {end};",
        ]
        return block(f"while ({row} < {need})", body)


def _whole_rows(network: Network, position: int, start: str, end: str) -> str:
    """Returns C for the window with all columns of an operator's rows [start, end)."""
    return f"{{{start}, {end}, 0, {columns(network.graph, network.graph.ops[position])}}}"


def _group(network: Network, group: Group, start: str, end: str) -> list[str]:
    """Returns the statements that compute rows [start, end) of a group's output."""
    graph = network.graph
    width = columns(graph, graph.ops[group.ops[-1]])
    if len(group.ops) == 1 and not group.hand_off:
        window = _whole_rows(network, group.ops[0], start, end)
        return block("", window_call(network, group.ops[0], window))
    last, kept = group.ops[-1], lines_of(graph, group)
    if not group.hand_off:
        calls = [(group.ops[place], x0, x1) for place, x0, x1 in hand_offs(group, graph)]
        group = replace(group, ops=tuple(position for position, _, _ in calls))
        lines = _row_ranges(network, group, start, end)
        for position, x0, x1 in calls:
            window = f"{{low_{position}, high_{position}, {x0}, {x1}}}"
            call = window_call(network, position, window, x1 - x0 < width)
            lines += block(_if_rows(group, graph, position), call)
        return block("", lines)
    lines = (_band_rows if group.in_bands else _row_ranges)(network, group, start, end)
    leaping = _leaping(group, graph)
    lines += ["/* Columns made by each operator. */", *_zeros([f"x_{p}" for p in group.ops])]
    body = [f"const int32_t end_{last} = nn_least({width}, x + {group.hand_off});"]  # after this call
    for before, most, needs in _readers(network, group, 1):
        ends = [_least(most, axis, _high(f"end_{p}", axis)) for p, axis in needs]
        reach = _fold("nn_most", ends)
        body.append(f"const int32_t end_{before} = nn_least({most}, {reach});")
    begins = {p: f"from_{p}" if p in leaping else f"x_{p}" for p in group.ops}
    for before, _, needs in _readers(network, group, 1):
        if before in leaping:
            needed = _fold("nn_least", [_from(begins[p], axis) for p, axis in needs])
            body.append(f"const int32_t from_{before} = nn_most(x_{before}, {needed});")
    for position in group.ops:
        columns_made = f"{begins[position]}, end_{position}"
        call = window_call(network, position, f"{{low_{position}, high_{position}, {columns_made}}}", True)
        if group.in_bands:
            rows = kept.get(graph.ops[position].outputs[0], 0)
            keeps = _swap_call if group.scheme is Scheme.SWAPS else _band_call
            call = keeps(network, position, rows, columns_made, call)
        elif has_rows := _if_rows(group, graph, position):
            call = block(has_rows, call)
        call = [*call, f"x_{position} = end_{position};"]
        body += block(f"if ({begins[position]} < end_{position})", call)
    loop = f"for (int32_t x = {first_column(group, graph)}; x < {width}; x += {group.hand_off})"
    return block("", [*lines, *block(loop, body)])


def _row_ranges(network: Network, group: Group, start: str, end: str) -> list[str]:
    """Returns lines that declare the rows that each operator of a group computes for rows [start, end) of the
    last one.
    """
    last, all_meet = group.ops[-1], meets_input(network.graph, group.ops)
    lines = [f"const int32_t low_{last} = {start}, high_{last} = {end};"]
    for before, height, needs in _readers(network, group, 0):
        if not all_meet:
            ((reader, axis),) = needs
            low, high = _first(f"low_{reader}", axis), _high(f"high_{reader}", axis)
            low, high = (f"nn_least({axis.reach(height)}, nn_most({axis.begin}, {x}))" for x in (low, high))
            lines += [
                f"const int32_t low_{before} = {low};",
                f"const int32_t high_{before} = low_{reader} < high_{reader} ? {high} : low_{before};",
            ]
            continue
        low = _fold("nn_least", [_low(f"low_{p}", axis) for p, axis in needs])
        high = _fold("nn_most", [_high(f"high_{p}", axis) for p, axis in needs])
        lines.append(f"const int32_t low_{before} = {low};")
        lines.append(f"const int32_t high_{before} = nn_least({height}, {high});")
    return lines


def _if_rows(group: Group, graph: Graph, position: int) -> str:
    """Returns C before the call of an operator in a group that makes rows of padding alone: it may then have
    no rows to compute. It is empty if the operator always has some.
    """
    always = position == group.ops[-1] or group.in_bands or meets_input(graph, group.ops)
    return "" if always else f"if (low_{position} < high_{position})"


def _band_rows(network: Network, group: Group, start: str, end: str) -> list[str]:
    """Returns lines that declare the rows that each operator of a group of bands computes in a step.

    Such a group keeps rows from step to step. So an operator computes the rows from those that it has
    computed before up to those that are needed for rows [start, end) of the last operator.
    """
    last, before, after = group.ops[-1], start, end
    lines = [f"const int32_t low_{last} = nn_most(0, {start}), high_{last} = nn_most(0, {end});"]
    if group.scheme is Scheme.SWAPS and any(network.lines(p) for p in group.ops):
        steps = plus(start, -first_row(network.graph, group))
        steps = steps if group.rows_per_step == 1 else f"({steps}) / {group.rows_per_step}"
        lines.append(f"const int32_t turn = {steps};")
    for position, height, ((_, axis),) in _readers(network, group, 0):
        most = axis.reach(height)
        lines += [
            f"const int32_t made_{position} = nn_least({most}, {_high(before, axis)});",
            f"const int32_t need_{position} = nn_least({most}, {_high(after, axis)});",
            f"const int32_t low_{position} = nn_most(0, made_{position});",
            f"const int32_t high_{position} = nn_most(0, need_{position});",
        ]
        before, after = f"made_{position}", f"need_{position}"
    return lines


def _band_call(
    network: Network, position: int, kept: int, columns_made: str, call: Sequence[str]
) -> list[str]:
    """Returns an operator's call in a group of bands, and copies of the rows that are kept for the next step.

    The next step reads the last `kept` rows of the operator's output again. Before the call, the kept rows of
    the step before are copied from their line buffer into the operator's window; after it, the new ones are
    copied back. The call is left out if there are no rows to compute. `columns_made` is C for the columns of
    the call.
    """
    low, high = f"low_{position}", f"high_{position}"
    if not kept:
        return block(f"if ({low} < {high})", call)
    tensor, keep = network.graph.ops[position].outputs[0], network.target.routine(Role.KEEP)

    def copy(source: str, to: str, first: str, end: str) -> list[str]:
        arguments = {Argument.IN: f"&{source}", Argument.OUT: f"&{to}", Argument.WINDOW: "&rows"}
        return [
            f"const int32_t kept = {first};",
            f"const nn_window rows = {{kept, {end}, {columns_made}}};",
            invocation(keep, arguments),
        ]

    window, lines = f"tensor_{tensor}", f"lines_{tensor}"
    return [
        *block("", copy(lines, window, f"nn_most(0, {low} - {kept})", low)),
        *block(
            f"if ({low} < {high})",
            [*call, *block("", copy(window, lines, f"nn_most({low}, {high} - {kept})", high))],
        ),
    ]


def _swap_call(
    network: Network, position: int, kept: int, columns_made: str, call: Sequence[str]
) -> list[str]:
    """Returns an operator's call in a group that swaps the rows that it keeps from step to step.

    A kept row is partly in the window, partly in a line buffer. Before the call, the columns that leave the
    window and those that come in change places. The arguments are as in `_band_call`.
    """
    low, high = f"low_{position}", f"high_{position}"
    lines = block(f"if ({low} < {high})", call)
    if not kept or network.lines(position) is None:
        return lines
    tensor = network.graph.ops[position].outputs[0]
    arguments = {Argument.IN: f"&tensor_{tensor}", Argument.OUT: f"&lines_{tensor}"}
    arguments |= {Argument.WINDOW: "&columns", Argument.TURN: "turn"}
    swap = invocation(network.target.routine(Role.SWAP), arguments)
    return [f"const nn_window columns = {{{low}, {high}, {columns_made}}};", swap, *lines]


def _leaping(group: Group, graph: Graph) -> frozenset[int]:
    """Returns the operators of a group that skip columns between two hand-offs (calls on some columns),
    because nothing reads these columns.
    """
    leaping = set()
    for position, (low, high) in zip(group.ops, column_ranges(group, graph), strict=True):
        if low[0] > 0 or (low[1:] > high[:-1]).any():
            leaping.add(position)
    return frozenset(leaping)


def _readers(network: Network, group: Group, side: int) -> Iterator[tuple[int, int, list[tuple[int, Axis]]]]:
    """Yields all operators of a group except the last one, in reverse order.

    Each is (position, number of output rows, [(position, axis) of each reader in the group]). If `side` is 1,
    the numbers and axes are those of columns.
    """
    ops = network.graph.ops
    for before in reversed(group.ops[:-1]):
        tensor = ops[before].outputs[0]
        readers = [(p, axes(network.graph, ops[p])[side]) for p in group.ops if tensor in ops[p].inputs]
        yield before, network.graph.tensors[tensor].nhwc[1 + side], readers


def _fold(function: str, expressions: Sequence[str]) -> str:
    """Returns C that applies a function of two arguments, minimum or maximum, to all expressions."""
    return reduce(lambda a, b: f"{function}({a}, {b})", dict.fromkeys(expressions))
