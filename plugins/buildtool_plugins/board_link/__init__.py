"""The C code with which test firmware on a board answers this machine over a link, and a chip's start-up
code.

The other modules of this package are this machine's side of the link.
"""

from __future__ import annotations

from pathlib import Path

from buildtool.base.errors import Hint, TargetError, UsageError, did_you_mean, suggest
from buildtool.target.types import Board, Wiring
from buildtool_plugins import baremetal, harness

ROOT = Path(__file__).resolve().parent
KINDS = ("serial", "rtt", "semihosting")
CYCLES = "NN_CYCLES"  # the markers in a network's code read the core's counter
_UART_EXAMPLE = """[uart]
    driver = "cmsdk_uart"
    base = 0x40004000
    clock_hz = 25000000"""


def wiring(board: Board, wire: str) -> Wiring:
    """Returns what test firmware needs in order to answer over the link `wire`.

    Raises UsageError if the board has no such link.
    """
    if wire not in KINDS:
        raise UsageError(f"there is no wire '{wire}'", option="wire", hint=did_you_mean(wire, KINDS))
    cflags: tuple[str, ...] = (f"-D{CYCLES}",)
    files = [baremetal.ROOT / "harness_io.c", ROOT / "cycles.c"]
    if wire == "semihosting":
        files = [harness.ROOT / "harness.c", *files]
    else:  # harness_io.c only measures the stack here; the linker drops the rest of it
        driver, more = _serial_driver(board) if wire == "serial" else (ROOT / "drivers" / "rtt.c", ())
        cflags = (*cflags, "-DNN_WIRE", *more)
        files = [ROOT / "board.c", ROOT / "frames.c", driver, *files]
    includes = (harness.ROOT, baremetal.ROOT, ROOT, ROOT / "drivers")
    return Wiring(cflags, tuple(map(str, files)), tuple(map(str, includes)), (CYCLES,))


def _serial_driver(board: Board) -> tuple[Path, tuple[str, ...]]:
    """Returns the driver of the board's serial port and the macros that configure it."""
    uart = board.uart
    if uart is None:
        text = f"the file of board '{board.name}' names no serial port"
        own_file = Hint(f"a .toml file that extends it, with\n    {_UART_EXAMPLE}")
        raise UsageError(text, option="wire", hint=[suggest("through a debug probe", wire="rtt"), own_file])
    values = {"WIRE_BASE": uart.base, "WIRE_CLOCK_HZ": uart.clock_hz, "WIRE_BAUD": uart.baud}
    macros = (*(f"-D{name}={value}u" for name, value in values.items()), *(f"-D{s}" for s in uart.settings))
    return _find_file(uart.driver, ROOT / "drivers", "uart.driver"), macros


def serial_port(board: Board) -> Wiring | None:
    """Returns the driver of the board's serial port, for an application; None if the board's file names no
    port.

    Besides the driver's own macros, it has WIRE_CORE_HZ: the clock of the core, in Hz, by the board's file.
    """
    if board.uart is None:
        return None
    driver, macros = _serial_driver(board)
    macros = (*macros, f"-DWIRE_CORE_HZ={board.clock_hz}u")
    return Wiring(macros, (str(driver),), (str(ROOT), str(ROOT / "drivers")))


def chip_code(board: Board, folder: Path) -> Wiring:
    """Returns the start-up code of the board's chip; an empty Wiring if the board's file has no [chip].
    `folder` has the family's files for chips.
    """
    if board.chip is None:
        return Wiring((), (), ())
    macros = ("CHIP_START", f"CHIP_CLOCK_HZ={board.clock_hz}u", *board.chip.settings)
    source = _find_file(board.chip.start, folder, "chip.start")
    return Wiring(tuple(f"-D{macro}" for macro in macros), (str(source),), (str(ROOT),))


def _find_file(name: str, folder: Path, key: str) -> Path:
    """Returns the path of a .c file: the user's own file, or the file in `folder` with this name. `key` is
    the key of the board's file, for errors.
    """
    path = Path(name) if name.endswith(".c") else folder / f"{name}.c"
    if not path.is_file():
        names = sorted(file.stem for file in folder.glob("*.c"))
        hint = f"there is no file {path}" if name.endswith(".c") else did_you_mean(name, names)
        raise TargetError(f"{key}: there is no '{name}'", hint=hint)
    return path
