"""Reports that tests open, of three networks, and names that want to be more than text."""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.fronts.texts.html.page import page

# Whole and streamed, within a limit and with the least memory, on a board that has too little flash as well.
REPORTS: dict[str, dict[str, Any]] = {
    "mobilenetv2": {"board": "cortex-m4", "options": {"ram": 256 * 1024}},
    "mcunet_vww5": {"board": "cortex-m4", "options": {"ram": 12 * 1024, "image": "stream"}},
    "squeezenet": {"board": "nucleo-f412zg", "options": {"image": "stream", "objective": "ram"}},
}
SESSION = Session()  # of all reports of a process: they share what is planned
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
    """The answer to the request for one of REPORTS."""
    return handle({"kind": "report", "model": name, **REPORTS[name]}, SESSION)


def planned(name: str) -> dict[str, Any]:
    """The plan that a report is about, asked for by itself."""
    return handle({"kind": "plan", "model": name, **REPORTS[name]}, SESSION)


def written(made: dict[str, Any], path: Path) -> Path:
    """A report's page as a file."""
    path.write_bytes(page(made))  # type: ignore[arg-type]
    return path


def hostile(made: dict[str, Any]) -> dict[str, Any]:
    """An answer with the names of HOSTILE for every tensor, operator, network and board."""
    names = [made["model"], made["board"], made["title"], *(op["name"] for op in made["operators"])]
    names += [t for buffer in made["buffers"] for t in buffer["tensor_names"]]
    return renamed(
        made, {name: HOSTILE[i % len(HOSTILE)] + str(i) for i, name in enumerate(dict.fromkeys(names))}
    )


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """An answer with other names."""
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def data_inside(file: bytes) -> dict[str, Any]:
    """The data that a page has inside, found as a browser finds it."""
    begin = file.index(b'id="buildtool-report">') + len(b'id="buildtool-report">')
    found: dict[str, Any] = json.loads(file[begin : file.index(b"</script", begin)])
    return found


class Picture(NamedTuple):
    """A part of a page, from the beginning of one element to the end of another, `most` units high.

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
    "mcunet_vww5": Picture("mcunet_vww5", "#arena", "#steps", opened=0),
    "squeezenet": Picture("squeezenet", ".top", "#picture", dark=True),
    "front": Picture("mcunet_vww5", "#front", "#plot"),
    "network": Picture("mobilenetv2", "#network", "#network", most=640),
    "phone": Picture("mcunet_vww5", ".top", "#picture", width=390),
}


def unpacked(symbols: Sequence[Sequence[int]], sequence: Sequence[int]) -> list[tuple[int, ...]]:
    """The steps again: operator, rows from and to, columns from and to."""
    before: dict[int, tuple[int, int]] = {}
    found: list[tuple[int, ...]] = []
    for number in expanded(sequence):
        op, dy, rows, dx, columns = symbols[number]
        y0, x0 = before.get(op, (0, 0))
        before[op] = y0, x0 = y0 + dy, x0 + dx
        found.append((op, y0, y0 + rows, x0, x0 + columns))
    return found


def expanded(sequence: Sequence[int]) -> list[int]:
    """The numbers that `repeated` has packed."""
    found: list[int] = []
    tokens = iter(sequence)
    for token in tokens:
        if token >= 0:
            found.append(token)
            continue
        for _ in range(next(tokens)):
            found.append(found[token])
    return found
