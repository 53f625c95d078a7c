"""A network as a CMake project for XMOS's XTC tools: a small application around it, and what builds that."""

from __future__ import annotations

import re
from pathlib import Path

from buildtool.target.hardware import MemoryKind
from buildtool.target.plugin import Exported
from buildtool_plugins.xcore.container import Entry, pack

ROOT = Path(__file__).resolve().parent / "xtc"
APP = "app.xe"  # what the project builds, in its folder build/

_ROWS = """
/* ---- the image, row by row --------------------------------------------------------------- */

static int deliver_row(void *context, int32_t row, int8_t *data) {
    (void)context;
    (void)row;
    memset(data, 0, @NET@_ROW_BYTES);
    return 0;
}
"""
_SET_ROWS = "    @net@_set_row_source(deliver_row, NULL);\n"
_INPUT = "    memset(@net@_input({0}), 0, @NET@_INPUT{0}_BYTES);\n"


def folder(net: str) -> str:
    """Where the project lies, beside the network's files."""
    return f"{net}_xtc"


def project(exported: Exported) -> dict[str, bytes]:
    """The project's files, and the weights in the vendor's flash container.

    Nothing for weights that are not loaded, or not from flash, which the application's loader reads.
    """
    net, board = exported.net, exported.board
    header = exported.files[f"{net}.h"].decode()
    if f"{net}_set_loader(" not in header or board.memory(board.weights).kind is not MemoryKind.ROM:
        return {}
    streamed = f"{net.upper()}_ROW_BYTES" in header
    words = {
        "rows": _ROWS if streamed else "",
        "input": _SET_ROWS if streamed else "".join(_INPUT.format(i) for i in range(_inputs(header))),
        "sources": "\n".join(f"  ${{FILES}}/kernels/{path}" for path in exported.kernels),
        "includes": " ".join(f"${{FILES}}/kernels/{path}" for path in exported.includes),
        "defines": " ".join(exported.board.core.defines),
    }
    words |= {"net": net, "NET": net.upper()}
    files = {f"{folder(net)}/{path.name}": _filled(path, words) for path in sorted(ROOT.iterdir())}
    weights = exported.files[f"{net}_weights.bin"]
    return {**files, f"{net}_xmos_flash.bin": pack([Entry(weights)])}


def _inputs(header: str) -> int:
    """How many inputs the network has."""
    return len(set(re.findall(r"_INPUT(\d+)_BYTES", header)))


def _filled(path: Path, words: dict[str, str]) -> bytes:
    text = path.read_text()
    for word, value in words.items():  # the names of the network last: they stand in the others
        text = text.replace(f"@{word}@", value)
    return text.encode()
