"""Which source file code is of, from the debug information of an image that was compiled with it (-g)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

_MOST_BYTES = 1 << 26  # of .debug_info: beyond it reading takes minutes


class DebugFiles:
    """The source files of addresses of code; those of variables would take reading every variable."""

    def __init__(self, elf: Any) -> None:
        found: list[tuple[int, int, str]] = []
        try:
            info = elf.get_section_by_name(".debug_info")
            if info is not None and 0 < info["sh_size"] <= _MOST_BYTES:
                found = sorted(_ranges(elf.get_dwarf_info()))
        except Exception:  # of damaged debug information pyelftools raises whatever it comes to
            found = []
        self._ranges, self._begins = found, [begin for begin, _, _ in found]

    def file(self, address: int) -> str:
        """The file that the code at an address is of; "" where nothing says it."""
        index = bisect_right(self._begins, address) - 1
        if index < 0 or address >= self._ranges[index][1]:
            return ""
        return self._ranges[index][2]


def _ranges(dwarf: Any) -> Iterator[tuple[int, int, str]]:
    """(first address, end, file's name) of each part of a unit that was compiled at once."""
    lists = dwarf.range_lists()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        name = top.attributes.get("DW_AT_name")
        if top.tag != "DW_TAG_compile_unit" or name is None:
            continue
        file = name.value.decode("utf-8", "replace").rpartition("/")[2]
        low, high, at = (top.attributes.get(f"DW_AT_{key}") for key in ("low_pc", "high_pc", "ranges"))
        if at is not None and lists is not None:
            base = low.value if low is not None else 0
            yield from ((begin, end, file) for begin, end in _listed(lists, at, unit, base) if begin < end)
        elif low is not None and high is not None:
            end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
            yield low.value, end, file


def _listed(lists: Any, at: Any, unit: Any, base: int) -> Iterator[tuple[int, int]]:
    """The addresses of a list of ranges."""
    for entry in lists.get_range_list_at_offset(at.value, cu=unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        else:
            offset = 0 if entry.is_absolute else base
            yield offset + entry.begin_offset, offset + entry.end_offset
