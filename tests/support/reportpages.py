"""Reports of three networks for tests, and hostile names that try to be more than text."""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.fronts.texts.html.page import page

# Whole and streamed, within a limit and with the least memory, also on a board with too little flash.
REPORTS: dict[str, dict[str, Any]] = {
    "mobilenetv2": {"board": "cortex-m4", "options": {"ram": 50 * 1024}},
    "mcunet_vww5": {"board": "cortex-m4", "options": {"ram": 12 * 1024, "image": "stream"}},
    "squeezenet": {"board": "nucleo-f412zg", "options": {"image": "stream", "objective": "ram"}},
}
REPORTS["mobilenetv2"]["model"] = "mobilenetv2:size=64,alpha=0.35"
SESSION = Session()  # all reports of a process share it, and so their plans
HOSTILE = (
    "</script><script>window.injected=1</script>",
    "<img src=x onerror=window.injected=2>",
    "\"><svg onload=window.injected=3>' onfocus='window.injected=4",
    "a & b &amp; c < d -->]]>",
    "\u202edrow\u0000\x1b[31m\u2028line\nend",
    "\u05e9\u05db\u05d1\u05d4/\u0637\u0628\u0642\u0629",
    "\U0001f9e0/\u5c42/e\u0301",
    "x" * 10_000,
)


@functools.cache
def answer(name: str) -> dict[str, Any]:
    return handle({"kind": "report", "model": name, **REPORTS[name]}, SESSION)


def planned(name: str) -> dict[str, Any]:
    """Returns the plan of a report, from a request of kind `plan`."""
    return handle({"kind": "plan", "model": name, **REPORTS[name]}, SESSION)


def written(made: dict[str, Any], path: Path) -> Path:
    path.write_bytes(page(made))  # type: ignore[arg-type]
    return path


def hostile(made: dict[str, Any]) -> dict[str, Any]:
    """Replaces the names of all tensors, operators, the network and the board by those of HOSTILE."""
    names = [made["model"], made["board"], made["title"], *(op["name"] for op in made["operators"])]
    names += [t for buffer in made["buffers"] for t in buffer["tensor_names"]]
    return renamed(
        made, {name: HOSTILE[i % len(HOSTILE)] + str(i) for i, name in enumerate(dict.fromkeys(names))}
    )


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def data_inside(file: bytes) -> dict[str, Any]:
    """Returns the data inside a page, read as a browser does."""
    begin = file.index(b'id="buildtool-report">') + len(b'id="buildtool-report">')
    data: dict[str, Any] = json.loads(file[begin : file.index(b"</script", begin)])
    return data


class Picture(NamedTuple):
    """A part of a page, from the start of one element to the end of another, up to `most` units high.

    `opened`: the region whose steps are shown.
    """

    report: str
    first: str
    last: str
    width: int = 1280
    dark: bool = False
    opened: int | None = None
    most: float = 2000


# Name of a file in docs/report -> what it shows.
PICTURES = {
    "mobilenetv2": Picture("mobilenetv2", ".top", "#picture"),
    "mobilenetv2-dark": Picture("mobilenetv2", ".top", "#picture", dark=True),
    "mcunet_vww5": Picture("mcunet_vww5", "#arena", "#steps", opened=0),
    "squeezenet": Picture("squeezenet", ".top", "#picture", dark=True),
    "front": Picture("mcunet_vww5", "#front", "#plot"),
    "network": Picture("mobilenetv2", "#network", "#network", most=640),
    "phone": Picture("mcunet_vww5", ".top", "#picture", width=390),
}


def unpacked(symbols: Sequence[Sequence[int]], sequence: Sequence[int]) -> list[tuple[int, ...]]:
    """Unpacks steps: (operator, first row, last row + 1, first column, last column + 1)."""
    before: dict[int, tuple[int, int]] = {}
    steps: list[tuple[int, ...]] = []
    for number in expanded(sequence):
        op, dy, rows, dx, columns = symbols[number]
        y0, x0 = before.get(op, (0, 0))
        before[op] = y0, x0 = y0 + dy, x0 + dx
        steps.append((op, y0, y0 + rows, x0, x0 + columns))
    return steps


def expanded(sequence: Sequence[int]) -> list[int]:
    """Unpacks the numbers that `repeated` has packed."""
    numbers: list[int] = []
    tokens = iter(sequence)
    for token in tokens:
        if token >= 0:
            numbers.append(token)
            continue
        for _ in range(next(tokens)):
            numbers.append(numbers[token])
    return numbers
