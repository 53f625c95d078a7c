"""Emitted C for constants that come while a streamed region runs: by turns, or to one place after the other.

A group asks before it makes rows: where another group ran since its own constants came to the memory that
all groups share, they are brought again. Constants on dead rows of the region's input come with certain rows.
"""

from __future__ import annotations

from functools import cached_property

from buildtool.base.errors import PlanError
from buildtool.emit.image import pieces
from buildtool.emit.network import Network
from buildtool.plan.schedule.turns import group_of, parts
from buildtool.plan.types import Group, Load, Region


class Turns:
    """The constants that come while one of a network's streamed regions runs."""

    def __init__(self, network: Network, index: int) -> None:
        self.network = network
        self.region: Region = network.plan.regions[index]
        self._run, self._start = network.timeline.runs[index], network.timeline.starts[index]
        own = [load for load in network.plan.loads if load.op in self.region.ops]
        self._by_turns = [load for load in own if load.by_turns]
        self._wandering: dict[int, list[Load]] = {}
        for load in own:
            if load.op in network.wandering and not load.by_turns:
                self._wandering.setdefault(load.op, []).append(load)

    def declarations(self) -> list[str]:
        """What says whose turn it is, and where constants are."""
        lines = []
        if self._by_turns:
            lines += ["/* The group that ran last. */", "int32_t turn = -1;"]
        for op, loads in self._wandering.items():
            offsets = ", ".join(str(self.network.plan.buffers[load.buffer].offset) for load in loads)
            rows = ", ".join(str(row) for row in self._rows[op])
            lines += [
                f"/* Operator {op}: its constants come to these places of the arena with these rows. */",
                f"static const uint32_t places_{op}[] = {{{offsets}}};",
                f"static const int32_t rows_{op}[] = {{{rows}}};",
                f"const int8_t *constants_{op} = {self._first(op)};",
                f"int32_t place_{op} = 0;",
            ]
        return lines

    def _first(self, op: int) -> str:
        """C for where an operator's constants are before they come to the first of its places."""
        at = [self.network.plan.buffers[load.buffer].offset for load in self._by_turns if load.op == op]
        return f"arena + {at[0]}" if at else "NULL"

    def before(self, group: Group, row: str) -> list[str]:
        """Before a group makes rows from `row` on."""
        place = self.region.groups.index(group)
        brought = [load for load in self._by_turns if load.op in group.ops]
        lines = [f"turn = {place};"] if self._by_turns and not brought else []
        if brought:
            lines += [f"if (turn != {place}) {{", f"    turn = {place};"]
            for load in brought:
                offset = self.network.plan.buffers[load.buffer].offset
                own = self._load(load.op, "", offset)
                if load.op in self._wandering:
                    own = [f"if ({row} < rows_{load.op}[0]) {{", *("    " + line for line in own), "}"]
                lines += ["    " + line for line in own]
            lines += ["    loaded();", "}"]
        for op in group.ops:
            if op in self._wandering:
                count = len(self._wandering[op])
                lines += [
                    f"if (place_{op} < {count} && {row} == rows_{op}[place_{op}]) {{",
                    f"    constants_{op} = arena + places_{op}[place_{op}];",
                    *("    " + line for line in self._load(op, f"places_{op}[place_{op}]", 0)),
                    "    loaded();",
                    f"    place_{op}++;",
                    "}",
                ]
        return lines

    def _load(self, op: int, base: str, offset: int) -> list[str]:
        """Begins to bring an operator's constants to `base` (C, "": the arena's start) and so many bytes."""
        network = self.network
        found = []
        for start, length, at in pieces(network.graph, network.image.places, op):
            terms = [term for term in ("arena", base, str(offset + at)) if term not in ("", "0")]
            found.append(f"load({' + '.join(terms)}, {start}, {length});")
        return found

    @cached_property
    def _rows(self) -> dict[int, list[int]]:
        """Operator -> the rows of its group with which its constants come to another place."""
        found = {}
        for op, loads in self._wandering.items():
            group = group_of(self.region, op)
            begins = {
                self._start + part.step: part.y0 for part in parts(self._run, self.network.timeline, group)
            }
            firsts = [self.network.plan.buffers[load.buffer].first for load in loads]
            if any(first not in begins for first in firsts):
                place = self.network.graph.ops[op].place
                raise PlanError("its constants come while its group makes rows", operator=place)
            found[op] = [begins[first] for first in firsts]
        return found
