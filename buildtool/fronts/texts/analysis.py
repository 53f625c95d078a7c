"""The answer to `analyze` as text: the network and a verdict for each board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, Spelling, from_data, in_requests
from buildtool.fronts.texts.table import (
    Cell,
    count,
    floats_text,
    four_bits_text,
    layer,
    removed_text,
    shorten,
    table,
)

if TYPE_CHECKING:
    from buildtool.schema.analysis import AnalysisAnswer, Cure, Interface, NetworkAnswer, NoPlan, Verdict
    from buildtool.schema.boards import Price

PLACE_WIDTH = 64
DETAILED = 2  # with more boards, the parts of memories are not listed
SPARE = ("most RAM at", "counted", "binds")  # columns, the first to go on narrow lines
EACH = 2  # with more boards, one sentence says which fit


def text(answer: AnalysisAnswer, spelling: Spelling = in_requests, name: Callable[[str], str] = str) -> str:
    """Returns whether the network fits, what would help, and tables of the network and the boards.

    `spelling` writes an option with its value. `name` writes an option alone.
    """
    boards, opening = answer["boards"], list[str]()
    if len(boards) > EACH:
        fitting = [board["board"] for board in boards if board["fits"]]
        names = f"{': ' if fitting else ''}{', '.join(fitting)}"
        opening.append(f"{answer['model']} fits {len(fitting)} of {len(boards)} boards{names}")
        for board in boards:
            if not board["fits"]:
                reason = from_data(board["error"]).text if "error" in board else _missing(board)
                opening.append(f"  {board['board']}: {reason}")
    else:
        for board in boards:
            opening += [*([""] if opening else []), *_verdict(answer["model"], board, spelling, name)]
    return "\n".join([*opening, "", *_network(answer), "", _boards(boards)])


def _network(answer: AnalysisAnswer) -> list[str]:
    network = answer["network"]
    operators, in_file = str(network["operators"]), answer["operators_in_file"]
    operators += f" ({in_file} in the file)" if in_file != network["operators"] else ""
    weights = count(network["weight_bytes"], "byte")
    every = ", with all channels" if _has_removed(answer["boards"]) else ""
    lines = [
        f"{answer['model']}: {count(answer['file_bytes'], 'byte')} on disk",
        f"  operators         {operators}: {_kinds(network['kinds'])}",
        *(f"  input             {_interface(tensor)}" for tensor in network["inputs"]),
        *(f"  output            {_interface(tensor)}" for tensor in network["outputs"]),
        f"  work              {count(network['macs'], 'multiply-accumulate')}{every}",
        f"  weights           {weights}{every}, before packing for the kernels",
        f"  activations       {count(network['activation_bytes'], 'byte')} in all",
        f"  largest live set  {count(network['live_bound_bytes'], 'byte')}",
    ]
    if network["live_bound_layer"]:
        lines[-1] += f", at {shorten(network['live_bound_layer'], PLACE_WIDTH)}, if every operator runs whole"
    if network["state_bytes"]:
        lines.append(
            f"  state             {count(network['state_bytes'], 'byte')} between invokes, in no arena"
        )
    return lines


def _kinds(kinds: Mapping[str, int]) -> str:
    """Returns the number of operators of each kind as text, the most frequent kind first."""
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0])))


def _interface(tensor: Interface) -> str:
    quantised = (
        "" if tensor["scale"] is None else f", scale {tensor['scale']:.6g}, zero point {tensor['zero_point']}"
    )
    order = f", the file's dimensions {' '.join(map(str, tensor['order']))}" if tensor["order"] else ""
    return f"{tensor['name']}: {tensor['type']} {tensor['shape']}{order}{quantised}"


_COUNTED = {"linked": "exactly", "bound": "at most", "estimated": "about"}
_MEANINGS = (
    ("linked", "of the linked test firmware ({}).", ", "),
    (
        "bound",
        "an upper bound, from the sizes recorded for {}; the linked firmware takes up to a tenth less. "
        "Name a board, and its firmware is linked and counted exactly.",
        ", ",
    ),
    ("estimated", "no compiler for the core is known here; its code is estimated as {}.", " or "),
)  # how, sentence about the compilers, text between their names


def _boards(boards: Sequence[Verdict | NoPlan]) -> str:
    titles = ["board", "fits", "RAM needed", "of", "flash needed", "of", "binds", "counted", "most RAM at"]
    rows: list[list[Cell]] = []
    for board in boards:
        if "error" in board:
            rows.append([board["board"], "no plan", *[None] * 7])
            continue
        sizes = [size for need in board["needs"][:2] for size in (need["required"], need["available"])]
        place = shorten(board["binding_layer"], PLACE_WIDTH)
        excess = " and ".join(f"{size:,} {what}" for size, what, _ in _excesses(board))
        fits = f"no: {excess} too many" if excess else "yes"
        counted = _COUNTED.get(board["counted"]["how"], "without code")
        rows.append([board["board"], fits, *sizes, board["binds"], counted, place])
    planned = [board for board in boards if "error" not in board]
    details = [line for board in planned if len(boards) <= DETAILED for line in _parts(board)]
    return "\n".join([table(titles, rows, spare=SPARE), *_legend(planned), *details])


def _legend(boards: Sequence[Verdict]) -> list[str]:
    """Returns lines that explain the figures of the table."""
    lines = ["RAM is the memory that holds the arena, flash the one that holds the packed weights."]
    for how, sentence, separator in _MEANINGS:
        compilers = sorted({b["counted"]["compiler"] for b in boards if b["counted"]["how"] == how})
        if compilers:
            lines.append(f"{_COUNTED[how]}: {sentence.format(separator.join(compilers))}")
    without = [b for b in boards if b["counted"]["how"] == "uncounted"]
    if without:
        lines.append("without code: arena, stack and weights only.")
        lines += [f"  {b['board']}: {b['counted']['note']}" for b in without if b["counted"]["note"]]
    if boards and len(boards) <= EACH:
        own = "those of the network without removed channels" if _has_removed(boards) else "the network's own"
        lines.append(f"F: the plan's multiply-accumulates, divided by {own}. Costs are estimates.")
    return lines


def _has_removed(boards: Sequence[Verdict | NoPlan]) -> bool:
    return any("error" not in board and board["removed"] is not None for board in boards)


def _parts(board: Verdict) -> list[str]:
    """Returns the lines of a table that shows what takes the bytes of each memory of a board."""
    rows: list[list[Cell]] = []
    for need in board["needs"]:
        rows.append([need["name"], need["required"], need["available"]])
        rows += [[f"  {part['name']}", part["bytes"], None] for part in need["parts"]]
    return ["", table([f"on {board['board']}", "bytes needed", "of"], rows)]


def _excesses(board: Verdict) -> list[tuple[int, str, str]]:
    """Returns (missing bytes, kind, name) for each memory or limit that is too small."""
    excesses = [(need["excess"], need["what"], need["name"]) for need in board["needs"] if need["excess"]]
    stack = board["stack"]
    if stack is not None and stack["required"] > stack["available"]:
        excesses.append((stack["required"] - stack["available"], "stack", "the stack"))
    return excesses


def _verdict(
    model: str, board: Verdict | NoPlan, spelling: Spelling, name: Callable[[str], str]
) -> Iterator[str]:
    if "error" in board:
        yield f"{model} has no plan for {board['board']}:"
        yield from (f"  {line}" for line in from_data(board["error"]).message(spelling, name).splitlines())
        return
    unsure = {"estimated": " (its code is estimated)", "uncounted": " (without its code)"}
    about = f"{board['board']}{unsure.get(board['counted']['how'], '')}"
    free = [
        f"{need['name']} {need['available'] - need['required']:,}"
        for need in board["needs"]
        if need["what"] in ("RAM", "flash")
    ]
    fits = f"fits {about}; bytes that are left: {', '.join(free)}"
    yield f"{model} {fits if board['fits'] else f'does not fit {about}: {_missing(board)}'}"
    yield f"  the fullest memory: {board['binds']}{_share(board)}"
    yield f"  the plan: {_price(board, board['cost_unit'])}"
    if board["removed"] is not None:
        yield f"    channels: {removed_text(board['removed'])}"
    if board["four_bits"] is not None:
        yield f"    flash: {four_bits_text(board['four_bits'])}"
    if board["floats"] is not None:
        yield f"    floats: {floats_text(board['floats'])}"
    place = shorten(board["binding_layer"], PLACE_WIDTH)
    least = "; no placement needs less" if board["arena_bytes"] == board["arena_bound_bytes"] else ""
    yield f"    most bytes are live at {place}: {board['binding_bytes']:,}{least}"
    if board["fits"]:
        if (cure := board["smaller"]) is not None:
            yield f"  the next smaller plan: {cure_words(cure, spelling)}"
        if (cure := board["smallest"]) is not None:
            yield f"  the smallest plan: {cure_words(cure, spelling)}"
        if board["smaller"] is not None:
            yield "  'buildtool front' lists all plans, by memory and work"
        return
    if board["cures"]:
        yield "  what makes it fit, each planned and counted, the cheapest first:"
        yield from (f"    {line}" for line in _cures(board["cures"], spelling).splitlines())
    for hint in (Hint(hint["text"], tuple(hint["settings"].items())) for hint in board["advice"]):
        yield f"  try: {hint.spelled(spelling)}"


def _share(board: Verdict) -> str:
    """Returns how much of the fullest memory is used, such as ", 4.2 % used"."""
    for need in board["needs"]:
        if need["name"] == board["binds"] and need["available"]:
            return f", {100 * need['required'] / need['available']:.1f} % used"
    return ""


def _missing(board: Verdict) -> str:
    return ", ".join(f"{size:,} bytes too many for {name}" for size, _, name in _excesses(board))


def _cures(cures: Sequence[Cure], spelling: Spelling) -> str:
    """Returns a table of cures (settings that help) with cost and free memory.

    Costs are in milliseconds if all are known.
    """
    timed = all(cure["estimated_ms"] is not None for cure in cures)
    rows: list[list[Cell]] = [
        [
            _words(cure, spelling),
            cure["arena_bytes"],
            f"{cure['f']:.3f}",
            f"{cure['estimated_ms']:,.1f}" if timed else f"{cure['cost']:,.0f} {cure['cost_unit']}",
            None if cure["cost_ratio"] is None else f"{cure['cost_ratio']:.3f}",
            *[f"{left['memory']} {left['bytes']:,}" for left in cure["left"][:1]],
        ]
        for cure in cures
    ]
    return table(["options", "arena bytes", "F", "est. ms" if timed else "cost", "times", "bytes left"], rows)


def cure_words(cure: Cure, spelling: Spelling) -> str:
    """Returns a line with a cure's options, its arena and its cost."""
    ratio = "" if cure["cost_ratio"] is None else f" ({cure['cost_ratio']:.3f} times this one's)"
    return f"{_words(cure, spelling)}: {_price(cure, cure['cost_unit'] + ratio)}"


def _price(price: Price, unit: str) -> str:
    """Returns a plan's arena, its work and its cost in a unit."""
    ms = "" if price["estimated_ms"] is None else f", about {price['estimated_ms']:,.1f} ms"
    cost = f"cost {price['cost']:,.0f} {unit}{ms}"
    kept = f" and {price['kept_bytes']:,} kept from hop to hop" if price["kept_bytes"] else ""
    return f"{price['arena_bytes']:,} bytes of arena{kept}, F {price['f']:.3f}, {cost}"


def _words(cure: Cure, spelling: Spelling) -> str:
    return " ".join(spelling(option, value) for option, value in cure["settings"].items())


_WEIGHTS = {
    "flash": "weights stay in flash and are not counted",
    "load": "weights are in memory from the first operator that reads them to the last",
}
_OPERATORS = {
    "separate": "every operator of the file has an output of its own",
    "fused": "batch normalisation and activation are part of the operator before them",
}


def network_text(answer: NetworkAnswer) -> str:
    """Returns the memory that a network needs: without sharing, at its fullest operator, and as placed."""
    order = "the file's order"
    if answer["order_status"]:
        proven = (
            "no order needs less"
            if answer["order_status"] == "optimal"
            else "the best one found within the limits"
        )
        order = f"reordered ({proven})"

    def share(part: int) -> str:
        return f"{count(part, 'byte')} ({100 * part / max(answer['total_bytes'], 1):.1f} % of all)"

    planned = "too many values to place"
    if answer["planned_bytes"] is not None:
        planned = share(answer["planned_bytes"])
    lines = [
        f"{answer['model']}: {answer['operators']} operators: {_kinds(answer['kinds'])}",
        *(f"  input             {layer(t['name'], PLACE_WIDTH)}: {count(t['bytes'], 'byte')}"
          for t in answer["inputs"]),
        *(f"  output            {layer(t['name'], PLACE_WIDTH)}: {count(t['bytes'], 'byte')}"
          for t in answer["outputs"]),
        f"  activations       {count(answer['activation_bytes'], 'byte')}",
        f"  weights           {count(answer['weight_bytes'], 'byte')}",
        f"  all in memory     {count(answer['total_bytes'], 'byte')}",
        f"  largest live set  {share(answer['live_bound_bytes'])}, "
        f"at {shorten(answer['live_bound_layer'], PLACE_WIDTH)}",
        f"  planned           {planned}",
        f"  - {_WEIGHTS[answer['weights']]}",
        f"  - {_OPERATORS[answer['counted_operators']]}; {order}",
        "  - inputs and outputs are counted, no output shares memory with an input",
    ]  # fmt: skip
    return "\n".join(lines)
