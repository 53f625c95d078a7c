"""Computes the stack that a function of a linked image needs: its own frame, and the largest need of its
callees.

This is an upper bound for any input, as every call that the code could make counts. Not included are
interrupts, and functions of the application that the network calls back (a yield hook, a row source, a
loader).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from buildtool.base.errors import PlanError, ToolError
from buildtool.firmware.sizes import open_elf
from buildtool.firmware.stack import riscv, thumb, xtensa
from buildtool.firmware.stack.body import Body, Code
from buildtool.schema.builds import StackSize
from buildtool.target.types import Board

# Functions of emitted code that call the application's hooks, row sources and loaders.
_CALLS_BACK = re.compile(
    r".*_(init|invoke)|region_\d+|between_regions|abandon|reset_state|load(ed|_channels)?"
)
_WEIGHTS = "_weights"  # the end of the name of a weight image's symbol
_THUMB = 1  # the lowest bit of an address of Thumb code


class Stacks:
    """Computes the stack that functions of a linked image need (Arm's M profile, RISC-V, Xtensa's call0 ABI).

    `vector_bytes` is the size of a RISC-V vector register, 0 without vectors.
    """

    def __init__(self, elf: Any, vector_bytes: int = 0) -> None:
        self._machine = elf["e_machine"]
        if not is_known(elf):
            raise ToolError(f"code for {self._machine} cannot be read, so its stack is not known")
        self._vector_bytes, self._is_64 = vector_bytes, elf.elfclass == 64
        self._entry = self._plain(elf["e_entry"])  # it is not called, but a constant may equal its address
        table = elf.get_section_by_name(".symtab")
        symbols = list(table.iter_symbols()) if table is not None else []
        self._literals = _find_literal_ranges(symbols)
        self.functions: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        self._names: dict[int, str] = {}
        for symbol in symbols:
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                address = self._plain(symbol["st_value"])
                if symbol["st_info"]["bind"] != "STB_LOCAL" or symbol.name not in self.functions:
                    self.functions[symbol.name] = address
                self._sizes[address] = max(self._sizes.get(address, 0), symbol["st_size"])
                self._names[address] = symbol.name
        objects = [symbol for symbol in symbols if symbol["st_info"]["type"] == "STT_OBJECT"]
        self._objects = {symbol["st_value"]: symbol["st_size"] for symbol in objects}
        self._weights = sorted(
            (int(s["st_value"]), int(s["st_value"] + s["st_size"]))
            for s in objects
            if s.name.endswith(_WEIGHTS) and f"{s.name.removesuffix(_WEIGHTS)}_invoke" in self.functions
        )
        self._sections = [
            (int(s["sh_addr"]), s.data())
            for s in elf.iter_sections()
            if s["sh_flags"] & 2 and s["sh_type"] == "SHT_PROGBITS"
        ]
        self._constants = [
            (start, data)
            for start, data in self._sections
            if not any(start <= address < start + len(data) for address in self._sizes)
        ]
        self._body = functools.cache(self._read)
        self._called = functools.cache(self._find_called)
        self._needs: dict[int, int | None] = {}

    def _plain(self, address: int) -> int:
        return address & ~_THUMB if self._machine == "EM_ARM" else address

    def need(self, name: str) -> int | None:
        """Returns the bytes of stack for a call of the function `name`; None if they are not known."""
        return self._find_need(self.functions[name], ())

    def size(self, name: str) -> int:
        """Returns the bytes of code of the function `name`."""
        return self._sizes[self.functions[name]]

    def frame(self, name: str) -> int:
        """Returns the bytes of stack that the function `name` takes, without the functions that it calls."""
        return self._body(self.functions[name]).frame

    def reached(self, name: str) -> dict[str, int]:
        """Returns the bytes of code of every function that a call of `name` may run, including `name`
        itself.
        """
        sizes: dict[str, int] = {}
        waiting: list[tuple[int, tuple[int, ...]]] = [(self.functions[name], ())]  # with the calls to it
        while waiting:
            address, path = waiting.pop()
            if address not in self._sizes or self._names[address] in sizes:
                continue
            sizes[self._names[address]] = self._sizes[address]
            body, path = self._body(address), (*path, address)
            further = {
                *body.calls,
                *body.tails,
                *(self._find_pointer_targets(path) if body.is_indirect else ()),
            }
            waiting += [(target, path) for target in sorted(further)]
        return sizes

    def _find_need(self, address: int, path: tuple[int, ...]) -> int | None:
        """Returns the bytes of stack for a call of the function at `address`; None if they are not known.

        `path` has the addresses of the functions whose calls lead to this one, the outermost first.
        """
        if address in self._needs:
            return self._needs[address]
        if address in path:
            return None  # recursion
        if address not in self._sizes:
            return None if _read_bytes(self._sections, address, 1) else 0
        body = self._body(address)
        path = (*path, address)
        needs = [self._find_need(target, path) for target in sorted(body.calls)]
        if body.is_indirect:  # a call by address does not lead back to a function of the path
            pointed = (
                t for t in sorted(self._find_pointer_targets(path)) if self._called(t).isdisjoint(path)
            )
            needs += [self._find_need(target, path) for target in pointed]
        tails = [self._find_need(target, path) for target in sorted(body.tails)]
        total = None
        if not body.unknown and None not in needs and None not in tails:
            total = max(body.frame + max((n for n in needs if n), default=0), *(n or 0 for n in tails), 0)
        # A result that depends on the callers, which may have computed the called address, is not kept.
        if len(path) == 1 or not any(self._body(inner).is_indirect for inner in self._called(address)):
            self._needs[address] = total
        return total

    def _find_called(self, address: int) -> set[int]:
        """Returns the addresses of a function and of all functions that it calls by name, at any depth."""
        addresses, waiting = set[int](), [address]
        while waiting:
            at = waiting.pop()
            if at not in addresses and at in self._sizes:
                addresses.add(at)
                waiting += (*self._body(at).calls, *self._body(at).tails)
        return addresses

    def _read(self, address: int) -> Body:
        size = self._sizes[address]
        if not _read_bytes(self._sections, address, 1):
            return Body(unknown=True)
        data = _read_bytes(self._sections, address, size)
        code = Code(address, data, _clip_ranges(self._literals, address, address + size))
        if self._machine == "EM_ARM":
            return thumb.read_body(code)
        if self._machine == "EM_XTENSA":
            return xtensa.read_body(code, self._read_word)
        return riscv.read_body(code, self._vector_bytes, self._is_64)

    def _read_word(self, address: int) -> int | None:
        word = _read_bytes(self._sections, address, 4)
        return int.from_bytes(word, "little") if len(word) == 4 else None

    def _find_pointer_targets(self, path: tuple[int, ...]) -> set[int]:
        """Returns the functions that the last function of a call path may call through a pointer, as
        addresses.

        If functions of the path compute addresses, these are the functions at such addresses, and those in
        tables at such addresses. Otherwise they are all functions that constant data point to. Network code
        that only calls back functions of the application has no such targets.
        """
        values = set[int]().union(*(self._body(address).taken for address in path))
        functions = self._keep_functions(values)
        for value in values:
            table = _read_bytes(self._constants, value, self._objects.get(value, 4))
            functions |= self._find_in_data(value, table)
        if not functions and not _CALLS_BACK.fullmatch(self._names[path[-1]]):
            functions = self._constant_targets
        return functions

    @functools.cached_property
    def _constant_targets(self) -> set[int]:
        """The addresses of functions that constant data point to. Weights are not read as pointers."""
        functions = set[int]()
        for start, data in self._constants:
            end = start + len(data)
            edges = [start, *itertools.chain(*_clip_ranges(self._weights, start, end)), end]
            for low, high in zip(edges[::2], edges[1::2], strict=True):
                functions |= self._find_in_data(low, data[low - start : high - start])
        return functions

    def _find_in_data(self, start: int, data: bytes) -> set[int]:
        """Returns the addresses of functions that appear in `data`, as aligned 32-bit words.

        `start` is the address of the data.
        """
        places = range(-start % 4, len(data) - 3, 4)
        return self._keep_functions(int.from_bytes(data[at : at + 4], "little") for at in places)

    def _keep_functions(self, values: Iterable[int]) -> set[int]:
        if self._machine == "EM_ARM":
            values = (value & ~_THUMB for value in values if value & _THUMB)
        # A small constant is no pointer to the function that an image of kernels alone has at 0.
        return {value for value in values if value in self._sizes and value not in (0, self._entry)}


def _read_bytes(sections: Iterable[tuple[int, bytes]], address: int, size: int) -> bytes:
    """Returns `size` bytes at an address: fewer at the end of its section, none outside all sections."""
    for start, data in sections:
        if start <= address < start + len(data):
            return bytes(data[address - start : address - start + size])
    return b""


def is_known(elf: Any) -> bool:
    """Whether this module can read the code of the image's core."""
    return elf["e_machine"] == "EM_RISCV" or (
        elf["e_machine"] in ("EM_ARM", "EM_XTENSA") and elf.elfclass == 32
    )


def _find_literal_ranges(symbols: list[Any]) -> list[tuple[int, int]]:
    """Returns the address ranges of data in Arm code: from a mapping symbol $d to the next mapping symbol."""
    marks = sorted(
        (int(s["st_value"]), s.name[:2] == "$d")
        for s in symbols
        if s.name[:2] in ("$t", "$d", "$a") and (len(s.name) == 2 or s.name[2] == ".")
    )
    pairs = itertools.pairwise([*marks, (1 << 32, False)])
    return [(start, end) for (start, is_data), (end, _) in pairs if is_data and end > start]


def _clip_ranges(ranges: list[tuple[int, int]], low: int, high: int) -> tuple[tuple[int, int], ...]:
    """Returns the parts of sorted ranges that are in [low, high)."""
    first, last = max(0, bisect.bisect_left(ranges, (low, 0)) - 1), bisect.bisect_left(ranges, (high, 0))
    return tuple((max(start, low), min(end, high)) for start, end in ranges[first:last] if end > low)


# ---- the needs of an image's networks, and the stack that its linker script reserves ------------------


_START = "main"  # the first function of a test firmware


def stack_report(
    data: bytes, board: Board, networks: Sequence[str], others: Sequence[str] = ()
) -> list[StackSize]:
    """Returns the stack that each network in an image needs for an invoke, then that of the functions
    `others`.

    The list is empty for cores whose code cannot be read. Raises ToolError if the image's code is damaged.
    """
    elf = open_elf(data)
    if board.is_native or not is_known(elf):
        return []
    from elftools.common.exceptions import ELFError

    try:
        stacks = Stacks(elf, board.core.vector_bits // 8)
        functions = [*(f"{network}_invoke" for network in networks), *others]
        return [
            {"function": function, "needed": stacks.need(function), "reserved": board.stack_bytes}
            for function in functions
            if function in stacks.functions
        ]
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ToolError(f"the firmware image's code cannot be read: {error}", hint="link it again") from None


def refuse_unless_enough(data: bytes, board: Board, network: str) -> None:
    """Raises PlanError if a test firmware may need more stack than the board's file reserves.

    The stack is counted from `main`, so that the firmware's own frames are included.
    """
    rows = stack_report(data, board, [network], [_START])
    needed = max((one["needed"] for one in rows if one["needed"] is not None), default=0)
    if needed <= board.stack_bytes:
        return
    own = next((one["needed"] for one in rows if one["function"] != _START), None)
    inside = f" ({network}_invoke {own:,} of them)" if own is not None else ""
    raise PlanError(
        f"the firmware of '{network}' takes up to {needed:,} bytes of stack{inside}, '{board.name}' reserves "
        f"{board.stack_bytes:,}: {needed - board.stack_bytes:,} too many",
        hint=f"stack_bytes = {needed} or more in the board's file (it is in memory '{board.data}'); "
        "or a board with a larger stack: analyze names some",
    )
