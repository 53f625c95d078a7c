"""Plans, links, runs and compares a network on every board: `python -m benchmarks.board_table`.

The network is ds_cnn. It has the least memory on boards that its fastest plan does not fit; on boards that no
plan of it fits, the network is a dense layer. It takes minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from buildtool.api import handle, open_session
from buildtool.base.errors import BuildtoolError, PlanError, ToolError
from buildtool.base.session import Session
from buildtool.graph.tflite.writer import write_model
from buildtool.target.registry import board_names, load_board
from buildtool.zoo.drawn import NetBuilder

LEAST = {"objective": "ram", "image": "stream"}


def dense(folder: Path) -> str:
    """Writes a network of one dense layer to a file; returns the file's path."""
    net = NetBuilder(4, "dense")
    path = folder / "dense.tflite"
    path.write_bytes(write_model(net.graph([net.dense(net.input((1, 24)), 3)])))
    return str(path)


def machine(name: str) -> str:
    """Returns what runs the board's programs."""
    board = load_board(name)
    if board.emulator is None:
        return "nothing"
    what = board.emulator.machine or board.emulator.kind
    return f"{what}, of the same core" if board.is_stand_in else what


def row(name: str, small: str, session: Session) -> list[str]:
    """Returns a board's row: how far the network came on it. `small` is the file of the dense layer."""
    board = load_board(name)
    head = [name, board.title, ", ".join(board.toolchains)]
    for network, options in (("ds_cnn", {}), ("ds_cnn", LEAST), (small, {})):
        request = {"model": network, "board": name, "options": options}
        try:
            handle({"kind": "plan", **request}, session)
            answer = handle({"kind": "validate", "inputs": 2, "tensors": True, **request}, session)
        except (PlanError, ToolError) as error:  # too large; or there is no compiler, or no emulator
            if "was not found" in error.text or "has no emulator" in error.text:
                return [*head, "planned" if "was not found" in error.text else "linked", ""]
            continue
        what = Path(network).stem + (", least memory" if options else "")
        verdict = "equal" if answer["exact"] else "DIFFERS"
        return [*head, f"run in {machine(name)}", f"{what}: {verdict}"]
    return [*head, "does not fit", ""]


def main() -> None:
    """Prints the table."""
    session, rows = open_session(), []
    with tempfile.TemporaryDirectory() as folder:
        small = dense(Path(folder))
        for name in board_names():
            rows.append(row(name, small, session))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print("| board | what it is | toolchains | how far | compared with LiteRT |")
    print("| --- | --- | --- | --- | --- |")
    for name, *cells in rows:
        print(f"| `{name}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    try:
        main()
    except BuildtoolError as error:
        raise SystemExit(str(error)) from None
