"""Makes a project for XMOS's XTC tools from a network, packs its weights in the tools' flash container, and
compiles it.

The project is a small application around the network, built by CMake. It is compiled if the tools are in
PATH. It has never been built with the real tools: its commands follow XMOS's application note, and a result
that does not begin as an .xe file does is refused.
"""

from __future__ import annotations

import re
import shlex
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.errors import Hint, ToolError
from buildtool.target.hardware import MemoryKind
from buildtool.target.plugin import Exported, VendorBuild

ROOT = Path(__file__).resolve().parent / "xtc"
APP = "app.xe"  # the project's program, in its folder build/

# The commands that build, flash and run a project by hand, in its folder.
LINES = (
    'cmake -G "Unix Makefiles" -B build',
    "xmake -C build",
    "xflash --target XK-EVK-XU316 --data ../{net}_weights.bin build/app.xe",
    "xrun --xscope build/app.xe",
)
COMPILER = "xcc"
BUILD = ("xmake", "cmake")  # the first comes with the compiler
TOOLS = (COMPILER, *BUILD)
HINT = "source XMOS's SetEnv, which puts the XTC tools in PATH, or remove them from PATH"
MAGIC = b"XMOS"  # how an .xe file begins
TIMEOUT = 600.0  # seconds for one of the tools
_SHOWN = 2000  # characters of a tool's output that an error shows
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
    """Returns the name of the project's folder, which lies beside the network's files. `net` is the network's
    name in C.
    """
    return f"{net}_xtc"


def project(exported: Exported) -> dict[str, bytes]:
    """Returns the files of the project by name, and the weights in the vendor's flash container.

    Returns no files if the weights are not loaded from flash, because the application's loader reads only
    flash.
    """
    net, board = exported.net, exported.board
    header = exported.files[f"{net}.h"].decode()
    if f"{net}_set_loader(" not in header or board.memory(board.weights).kind is not MemoryKind.ROM:
        return {}
    streamed = f"{net.upper()}_ROW_BYTES" in header
    image = int(found[1]) if (found := re.search(r"Input (\d+) is an image of", header)) else -1
    inputs = len(set(re.findall(r"_INPUT(\d+)_BYTES", header)))
    words = {
        "rows": _ROWS if streamed else "",
        "input": _SET_ROWS * streamed + "".join(_INPUT.format(i) for i in range(inputs) if i != image),
        "sources": "\n".join(f"  ${{FILES}}/kernels/{path}" for path in exported.kernels),
        "includes": " ".join(f"${{FILES}}/kernels/{path}" for path in exported.includes),
        "defines": " ".join(exported.board.core.defines),
    }
    words |= {"net": net, "NET": net.upper()}  # last: the other texts contain them
    files = {}
    for path in sorted(ROOT.iterdir()):
        text = path.read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        files[f"{folder(net)}/{path.name}"] = text.encode()
    weights = exported.files[f"{net}_weights.bin"]
    return {**files, f"{net}_xmos_flash.bin": pack([Entry(weights)])}


# ---- the flash container ------------------------------------------------------------------------
#
# Networks and their weights, in the format of the vendor's flash reader:
#
#     offset      bytes
#     0           32 bytes: a pattern by which the reader adjusts its sampling
#     32          4 bytes: the version, 1, 2 and their complements
#     36 + 16 i   four offsets of network i from the container's start: its model's length, its parameters,
#                 its operators, its code to execute in place
#     then        for each network: the model's length, model, parameters, operators, code to execute in place
#
# Numbers have 32 bits, little-endian. There is no padding and no checksum. In the file the two halves of each
# byte are exchanged, because the flash is read four bits at a time.

PATTERN = bytes.fromhex("ff000f0f0f0f0f0fff00ff00ff00ff0031f7ce0831f7ce089c639c639c639c63")
VERSION = bytes((1, 2, 0xFE, 0xFD))
HEAD = len(PATTERN) + len(VERSION)
_OFFSETS, _LENGTH = struct.Struct("<4I"), struct.Struct("<I")
_SWAPPED = bytes((byte & 15) << 4 | byte >> 4 for byte in range(256))


@dataclass(frozen=True)
class Entry:
    """A network in the flash container. `model` is a file for the vendor's interpreter, and may be empty."""

    params: bytes
    model: bytes = b""
    operators: bytes = b""
    xip: bytes = b""


def pack(entries: Sequence[Entry]) -> bytes:
    """Returns the bytes of the flash container. Raises ToolError if it would need offsets of more than 32
    bits.
    """
    head, body = bytearray(PATTERN + VERSION), bytearray()
    start = HEAD + _OFFSETS.size * len(entries)
    for entry in entries:
        model = start + len(body)
        params = model + _LENGTH.size + len(entry.model)
        operators = params + len(entry.params)
        xip = operators + len(entry.operators)
        if xip + len(entry.xip) >= 1 << 32:
            raise ToolError("a flash container must be smaller than 4 GB")
        head += _OFFSETS.pack(model, params, operators, xip)
        body += _LENGTH.pack(len(entry.model)) + entry.model + entry.params + entry.operators + entry.xip
    return bytes(head + body).translate(_SWAPPED)


# ---- its compilation --------------------------------------------------------------------------------


def is_there() -> bool:
    """Whether the vendor's compiler is in PATH."""
    return shutil.which(COMPILER) is not None


def by_hand(net: str) -> ToolError:
    """Returns the error for a request to run on the kit; its hints are the commands to run instead."""
    lines = ("buildtool build MODEL --board xcore --out DIR", f"cd DIR/{folder(net)}", *LINES)
    return ToolError(
        "XMOS's XTC tools make the chip's program, flash it and run it; buildtool cannot",
        hint=[Hint(line.format(net=net)) for line in lines],
    )


def commands() -> list[list[str]]:
    """Returns the commands that compile a project, to be run in its folder. Raises ToolError if a program is
    missing.
    """
    for name in TOOLS:
        if shutil.which(name) is None:
            hint = "apt-get install cmake" if name == "cmake" else HINT
            raise ToolError(f"'{COMPILER}' is in PATH and '{name}' is not: nothing is compiled", hint=hint)
    return [shlex.split(line) for line in LINES[:2]]


def compile_project(net: str, place: Path, tell: Callable[[str], None]) -> VendorBuild | None:
    """Compiles the project in `place` to an .xe file; returns None if XTC or the project is missing.

    Raises ToolError with the messages of XTC's tools if they fail.
    """
    where = place / folder(net)
    if not is_there() or not where.is_dir():
        return None
    lines = commands()
    for line in lines:
        tell(f"{line[0]} in {where.name}, with XMOS's XTC tools")
        _run(line, where)
    program = where / "build" / APP
    data = program.read_bytes() if program.is_file() else b""
    if not data.startswith(MAGIC):
        what = f"a {APP} that is not a program for the chip" if data else f"no {APP}"
        raise ToolError(f"xmake ended without an error and made {what}", hint=HINT)
    return VendorBuild({f"{net}.xe": data}, f"XTC's {COMPILER}")


def _run(line: Sequence[str], where: Path) -> None:
    try:
        process = subprocess.run(
            line, cwd=where, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{line[0]} was still running after {TIMEOUT:g} s and was ended") from None
    except OSError as error:
        raise ToolError(f"{line[0]} cannot be started: {error.strerror}", hint=HINT) from None
    if process.returncode:
        output = (process.stderr + process.stdout).strip()[-_SHOWN:]
        raise ToolError(
            f"'{' '.join(line)}' failed with exit status {process.returncode}:\n{output}", hint=HINT
        )
