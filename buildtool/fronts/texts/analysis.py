"""The answer of `analyze` as text: the network, then a verdict for each board."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import Spelling, in_requests
from buildtool.fronts.texts import fitting
from buildtool.fronts.texts.table import Cell, count, layer, table

if TYPE_CHECKING:
    from buildtool.schema.analysis import AnalysisAnswer, Interface, NoPlan, Verdict

PLACE_WIDTH = 64
DETAILED = 2  # boards at most whose memories are listed part by part


def text(answer: AnalysisAnswer, spelling: Spelling = in_requests, name: Callable[[str], str] = str) -> str:
    """Whether the network fits and what would help where it does not; then what it is, and each board.

    `spelling` writes options with their values, `name` an option alone.
    """
    opening = fitting.lines(answer, spelling, name)
    return "\n".join([*opening, "", *_network(answer), "", _boards(answer["boards"])])


def _network(answer: AnalysisAnswer) -> list[str]:
    network = answer["network"]
    kinds = ", ".join(f"{number} {kind}" for kind, number in _most_first(network["kinds"]))
    lines = [
        f"{answer['model']}: {count(answer['file_bytes'], 'byte')} on disk",
        f"  operators         {network['operators']} ({answer['operators_in_file']} in the file): {kinds}",
        *(f"  input             {_interface(tensor)}" for tensor in network["inputs"]),
        *(f"  output            {_interface(tensor)}" for tensor in network["outputs"]),
        f"  work              {count(network['macs'], 'multiply-accumulate')}",
        f"  weights           {count(network['weight_bytes'], 'byte')}",
        f"  activations       {count(network['activation_bytes'], 'byte')}",
        f"  largest live set  {count(network['live_bound_bytes'], 'byte')}",
    ]
    if network["live_bound_operator"]:
        lines[-1] += f", at {layer(network['live_bound_operator'], PLACE_WIDTH)}"
    if network["state_bytes"]:
        lines.append(
            f"  state             {count(network['state_bytes'], 'byte')} between invokes, in no arena"
        )
    return lines


def _most_first(kinds: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(kinds.items(), key=lambda item: (-item[1], item[0]))


def _interface(tensor: Interface) -> str:
    quantised = (
        "" if tensor["scale"] is None else f", scale {tensor['scale']:.6g}, zero point {tensor['zero_point']}"
    )
    order = f", the file's dimensions {' '.join(map(str, tensor['order']))}" if tensor["order"] else ""
    return f"{tensor['name']}: {tensor['type']} {tensor['shape']}{order}{quantised}"


def _boards(boards: Sequence[Verdict | NoPlan]) -> str:
    titles = ["board", "fits", "RAM needed", "of", "flash needed", "of", "binds", "counted", "most RAM at"]
    rows: list[list[Cell]] = []
    for board in boards:
        if "error" in board:
            rows.append([board["board"], "no plan", *[None] * 7])
            continue
        sizes = [size for need in board["needs"][:2] for size in (need["required"], need["available"])]
        place = layer(board["binding_operator"], PLACE_WIDTH)
        rows.append([board["board"], _fits(board), *sizes, board["binds"], _counted(board), place])
    known = [board for board in boards if "error" not in board]
    details = [line for board in known if len(boards) <= DETAILED for line in _parts(board)]
    return "\n".join([table(titles, rows), *_legend(known), *details])


def _counted(board: Verdict) -> str:
    words = {"linked": "exactly", "bound": "at most", "estimated": "about"}
    return words.get(board["counted"]["how"], "without code")


def _legend(boards: Sequence[Verdict]) -> list[str]:
    """What the table's figures are."""
    lines = ["Bytes of the memory that holds the arena (RAM), and of the one that holds the weights (flash)."]
    exact = sorted({b["counted"]["compiler"] for b in boards if b["counted"]["how"] == "linked"})
    if exact:
        lines.append(f"exactly: of the linked test firmware ({', '.join(exact)}).")
    bounds = sorted({b["counted"]["compiler"] for b in boards if b["counted"]["how"] == "bound"})
    if bounds:
        lines.append(
            f"at most: an upper bound, from the sizes recorded for {', '.join(bounds)}; the linked firmware"
            " takes up to a tenth less. Name a board, and its firmware is linked and counted exactly."
        )
    alike = sorted({b["counted"]["compiler"] for b in boards if b["counted"]["how"] == "estimated"})
    if alike:
        lines.append(
            f"about: no compiler for the core is known here; its code is estimated as {' or '.join(alike)}."
        )
    without = [b for b in boards if b["counted"]["how"] == "uncounted"]
    if without:
        lines.append("without code: arena, stack and weights only.")
        lines += [f"  {b['board']}: {b['counted']['note']}" for b in without if b["counted"]["note"]]
    return lines


def _parts(board: Verdict) -> list[str]:
    """What lies in each memory of a board."""
    rows: list[list[Cell]] = []
    for need in board["needs"]:
        rows.append([f"{need['what']} ({need['memory']})", need["required"], need["available"]])
        rows += [[f"  {part['name']}", part["bytes"], None] for part in need["parts"]]
    return ["", table([f"on {board['board']}", "bytes needed", "of"], rows)]


def _fits(board: Verdict) -> str:
    excess = [f"{need['excess']:,} {need['what']}" for need in board["needs"] if need["excess"]]
    stack = board["stack"]
    if stack is not None and stack["required"] > stack["available"]:
        excess.append(f"{stack['required'] - stack['available']:,} stack")
    return "yes" if not excess else f"no: {' and '.join(excess)} too many"
