"""The C code with which test firmware on a board answers over a wire, and with which a chip starts.

The host's side of a wire is in the modules beside.
"""

from __future__ import annotations

from pathlib import Path

from buildtool.base.errors import Hint, TargetError, UsageError, did_you_mean, suggest
from buildtool.target.types import Board, Wiring
from buildtool_plugins import baremetal, harness

ROOT = Path(__file__).resolve().parent
KINDS = ("serial", "rtt", "semihosting")
CYCLES = "NN_CYCLES"  # the markers in a network's code read the core's counter
_UART = """[uart]
    driver = "cmsdk_uart"
    base = 0x40004000
    clock_hz = 25000000"""


def wiring(board: Board, wire: str) -> Wiring:
    """The parts of a test firmware for a wire; UsageError for a wire that the board has not."""
    if wire not in KINDS:
        raise UsageError(f"there is no wire '{wire}'", option="wire", hint=did_you_mean(wire, KINDS))
    cflags: tuple[str, ...] = (f"-D{CYCLES}",)
    files = [baremetal.ROOT / "harness_io.c", ROOT / "cycles.c"]
    if wire == "semihosting":
        files = [harness.ROOT / "harness.c", *files]
    else:  # of harness_io.c the measurement of the stack is used, and nothing else is linked
        driver, more = _serial(board) if wire == "serial" else (ROOT / "drivers" / "rtt.c", ())
        cflags = (*cflags, "-DNN_WIRE", *more)
        files = [ROOT / "board.c", ROOT / "frames.c", driver, *files]
    includes = (harness.ROOT, baremetal.ROOT, ROOT, ROOT / "drivers")
    return Wiring(cflags, tuple(map(str, files)), tuple(map(str, includes)), (CYCLES,))


def _serial(board: Board) -> tuple[Path, tuple[str, ...]]:
    """The driver of the board's serial port, and its macros."""
    uart = board.uart
    if uart is None:
        text = f"the file of board '{board.name}' names no serial port"
        own_file = Hint(f"a .toml file that extends it, with\n    {_UART}")
        raise UsageError(text, option="wire", hint=[suggest("through a debug probe", wire="rtt"), own_file])
    values = {"WIRE_BASE": uart.base, "WIRE_CLOCK_HZ": uart.clock_hz, "WIRE_BAUD": uart.baud}
    macros = [f"-D{name}={value}u" for name, value in values.items()]
    return _file(uart.driver, ROOT / "drivers", "uart.driver"), (*macros, *(f"-D{s}" for s in uart.settings))


def chip_code(board: Board, folder: Path) -> Wiring:
    """What is compiled for the board's chip besides; nothing where its file names none."""
    if board.chip is None:
        return Wiring((), (), ())
    macros = ("CHIP_START", f"CHIP_CLOCK_HZ={board.clock_hz}u", *board.chip.settings)
    source = _file(board.chip.start, folder, "chip.start")
    return Wiring(tuple(f"-D{macro}" for macro in macros), (str(source),), (str(ROOT),))


def _file(name: str, folder: Path, key: str) -> Path:
    """A file of the user's, or one of `folder` by its name."""
    path = Path(name) if name.endswith(".c") else folder / f"{name}.c"
    if not path.is_file():
        known = sorted(found.stem for found in folder.glob("*.c"))
        hint = f"there is no file {path}" if name.endswith(".c") else did_you_mean(name, known)
        raise TargetError(f"{key}: nothing is called '{name}'", hint=hint)
    return path
