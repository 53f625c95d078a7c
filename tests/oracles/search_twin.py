"""search.c in Python, node for node. place/search.py explains the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.plan.place.instance import Instance, Int32s
from buildtool.plan.place.search import Outcome, Verdict

_WORD = (1 << 64) - 1
_NONE = 1 << 30
_ROUNDS = 4  # limit for raising late items

_Key = tuple[int, int]


@dataclass(frozen=True)
class _Part:
    """Waiting items, in order, that share no time with the other waiting ones.

    `offset`: of the last placed item. `before`: how many of the items come before that one in the order.
    """

    items: tuple[int, ...]
    offset: int
    before: int
    parent: int  # the node whose choice split it off, or -1


@dataclass
class _Node:
    """A part being searched: its choices, the next one, and the state to restore before it."""

    part: _Part
    key: _Key
    choices: list[int]
    trail: int
    agenda: int
    next: int = 0
    placed: int = -1  # the item being tried


def _ints(values: Int32s) -> list[int]:
    return [int(value) for value in values]


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _WORD
    return x ^ (x >> 31)


def _at_least(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


class PythonSearch:
    """Runs on one instance at one capacity (in units). Later runs know the failed states of earlier ones."""

    def __init__(
        self,
        instance: Instance,
        capacity: int,
        table_bits: int,
        allowed: Sequence[int] | None = None,
    ) -> None:
        self._count, self._sections, self._capacity = len(instance.items), instance.sections, capacity
        self._allowed = allowed
        self._first, self._last = _ints(instance.first), _ints(instance.last)
        self._size, self._alignment = _ints(instance.size), _ints(instance.alignment)
        self._pinned, self._floor = _ints(instance.pinned), _ints(instance.floor)
        self._low, self._loose = _ints(instance.low), _ints(instance.loose)
        self._twin = _ints(instance.twin)
        start = _ints(instance.start)
        links = list(
            zip(_ints(instance.neighbour), _ints(instance.above), _ints(instance.below), strict=True)
        )
        self._links = [links[start[i] : start[i + 1]] for i in range(self._count)]
        self._shares: list[list[tuple[int, range, int]]] = [[] for _ in range(self._count)]
        for output, source, first, last, units in zip(
            _ints(instance.share_output),
            _ints(instance.share_input),
            _ints(instance.share_first),
            _ints(instance.share_last),
            _ints(instance.share_units),
            strict=True,
        ):
            self._shares[output].append((source, range(first, last), units))
            self._shares[source].append((output, range(first, last), units))
        self._table: dict[int, _Key] = {}
        self._shift = 64 - table_bits

    # ---- a run -----------------------------------------------------------------------------------

    def run(self, order: Sequence[int], limit: int, crowded: bool = False) -> Outcome:
        """See `Search`."""
        self._crowded = crowded
        self._rank = [0] * self._count
        for rank, item in enumerate(order):
            self._rank[item] = rank
        self._level = [self._lowest(item, floor) for item, floor in enumerate(self._floor)]
        self._offset = [0] * self._count
        self._bound, self._state = list(self._level), [0] * self._count
        self._rest, self._waiting = [0] * self._sections, [False] * self._count
        for item in range(self._count):
            self._count_rest(item, 1)
            self._waiting[item] = True
        self._trail: list[tuple[int, int]] = []
        self._nodes: list[_Node] = []
        self._agenda: list[_Part] = []
        visited = 0
        alive = self._split(order, 0, -1, -1)
        while alive and self._agenda and visited < limit:
            part = self._agenda.pop()
            visited += 1
            index = len(self._nodes)
            alive = self._go_on(index if self._open(part) else part.parent)
        verdict = Verdict.LIMIT if self._agenda else Verdict.FOUND
        return Outcome(verdict if alive else Verdict.IMPOSSIBLE, tuple(self._offset), visited)

    def _open(self, part: _Part) -> bool:
        """Adds a node for a part. False if the part cannot be placed."""
        inspected = self._inspect(part)
        if inspected is None:
            return False
        key, limit = inspected
        if self._table.get(key[0] >> self._shift) == key:
            return False
        choices = self._choose(part, limit) if self._is_consistent(part) else []
        if not choices:
            self._table[key[0] >> self._shift] = key
            return False
        self._nodes.append(_Node(part, key, choices, len(self._trail), len(self._agenda)))
        return True

    def _go_on(self, index: int) -> bool:
        """Goes back to the nearest node from `index` that has a choice left, and takes that choice."""
        while index >= 0:
            node = self._nodes[index]
            self._take_back(index)
            if node.next == len(node.choices):
                self._table[node.key[0] >> self._shift] = node.key
                index = node.part.parent
                continue
            item = node.placed = node.choices[node.next]
            node.next += 1
            if self._place(item) and self._split(node.part.items, self._offset[item], item, index):
                return True
        return False

    def _choose(self, part: _Part, limit: int) -> list[int]:
        """Returns the items that may be placed next, lowest first, then by rank."""
        level = self._level
        choices = [
            i
            for i in part.items
            if self._state[i] == 0
            and level[i] < limit
            and not (self._twin[i] >= 0 and self._waiting[self._twin[i]])
        ]
        return sorted(choices, key=lambda i: level[i])  # stable: part.items are by rank

    # ---- placing ---------------------------------------------------------------------------------

    def _place(self, item: int) -> bool:
        """Places an item at its level. False if a neighbour then no longer fits."""
        offset = self._level[item]
        fits = True
        self._offset[item] = offset
        self._count_rest(item, -1)
        self._waiting[item] = False
        for other, above, _ in self._links[item]:
            level = _at_least(offset + above, self._alignment[other])
            if self._waiting[other] and self._level[other] < level:
                level = self._lowest(other, level)
                self._trail.append((other, self._level[other]))
                self._level[other] = level
                fits = fits and level + self._size[other] <= self._capacity
        return fits

    def _lowest(self, item: int, value: int) -> int:
        """Returns the lowest allowed offset of an item from `value` on, else one above the capacity."""
        lowest = _at_least(value, self._alignment[item])
        if self._allowed is None:
            return lowest
        offsets = self._allowed[item] >> lowest
        return lowest + (offsets & -offsets).bit_length() - 1 if offsets else self._capacity + 1

    def _take_back(self, index: int) -> None:
        """Undoes all placements from node `index` on and drops the nodes after it."""
        node = self._nodes[index]
        while len(self._trail) > node.trail:
            item, level = self._trail.pop()
            self._level[item] = level
        for later in reversed(self._nodes[index:]):
            if later.placed >= 0:
                self._waiting[later.placed] = True
                self._count_rest(later.placed, 1)
                later.placed = -1
        del self._nodes[index + 1 :]
        del self._agenda[node.agenda :]

    def _count_rest(self, item: int, sign: int) -> None:
        """Changes the units to be placed by an item's size, less what it shares with waiting ones."""
        for section in range(self._first[item], self._last[item]):
            self._rest[section] += sign * self._size[item]
        for other, sections, units in self._shares[item]:
            if self._waiting[other]:
                for section in sections:
                    self._rest[section] -= sign * units

    def _split(self, items: Sequence[int], offset: int, placed: int, parent: int) -> bool:
        """Puts the waiting ones of `items` on the agenda, in parts. False if one cannot be placed.

        `placed`: the item that was just placed, at `offset`; -1 at the start of a run.
        """
        waiting = [i for i in items if self._waiting[i]]
        crossing = [0] * self._sections
        for i in waiting:
            crossing[self._first[i]] += 1
            crossing[self._last[i] - 1] -= 1
        number, running, part = [0] * self._sections, 0, 0
        for section, change in enumerate(crossing):
            number[section] = part
            running += change
            part += running == 0
        parts: dict[int, list[int]] = {}
        before: dict[int, int] = {}
        for i in items:
            if i == placed:
                before = {n: len(members) for n, members in parts.items()}
            elif self._waiting[i]:
                parts.setdefault(number[self._first[i]], []).append(i)
        # whether no waiting item spans the placed item's time: a part may have ended there
        anew = self._crowded and (placed < 0 or number[self._first[placed]] != number[self._last[placed] - 1])
        for n, members in sorted(parts.items()):
            ordered, first = (self._by_crowd(members), 0) if anew else (members, before.get(n, 0))
            if len(ordered) > 1:
                self._agenda.append(_Part(tuple(ordered), offset, first, parent))
            elif not self._settle(ordered[0], offset, first):
                return False
        return True

    def _by_crowd(self, items: Sequence[int]) -> list[int]:
        """Sorts items by the most waiting units in one of their sections, then by rank."""
        most = {i: max(self._rest[x] for x in range(self._first[i], self._last[i])) for i in items}
        return sorted(items, key=lambda i: (-most[i], self._rank[i]))

    def _settle(self, item: int, offset: int, before: int) -> bool:
        """Places an item without neighbours at its level. False if it does not fit."""
        level = self._offset[item] = self._level[item]
        return (
            not self._is_passed(item, 0, offset, before)
            and level + self._size[item] <= self._capacity
            and (self._pinned[item] < 0 or self._pinned[item] == level)
        )

    # ---- what a state implies --------------------------------------------------------------------

    def _is_passed(self, item: int, place: int, offset: int, before: int) -> bool:
        level = self._level[item]
        return level < offset or (level == offset and place < before and not self._loose[item])

    def _inspect(self, part: _Part) -> tuple[_Key, int] | None:
        """Returns the state's key, and the limit for the next offset. None: the state cannot succeed."""
        lowest = limit = _NONE
        a = b = 0
        for place, i in enumerate(part.items):
            level, size, pinned = self._level[i], self._size[i], self._pinned[i]
            passed = self._is_passed(i, place, part.offset, part.before)
            if level + size > self._capacity or (pinned >= 0 and (passed or level != pinned)):
                return None
            if not passed:
                lowest = min(lowest, level)
            if pinned < 0:
                limit = min(limit, level + size)
            self._bound[i] = level
            self._state[i] = int(passed)
            word = _mix((i << 32 | level << 1 | passed) * 0x9E3779B97F4A7C15 + 1 & _WORD)
            a += word
            b += (word ^ (word >> 32)) * 0xD6E8FEB86659FD93
        return ((a & _WORD, b & _WORD), limit) if lowest < limit else None

    def _is_consistent(self, part: _Part) -> bool:
        first = min(self._first[i] for i in part.items)
        last = max(self._last[i] for i in part.items)
        return self._lift_passed(part) and self._lift_late(part, first, last) and self._is_within(part)

    def _raise(self, item: int, value: int) -> bool:
        """Raises an item's bound. False if it cannot lie that high."""
        if value <= self._bound[item]:
            return True
        self._bound[item] = self._lowest(item, value)
        return self._pinned[item] < 0 and self._bound[item] + self._size[item] <= self._capacity

    def _lift_passed(self, part: _Part) -> bool:
        """Raises passed items: each lies on a neighbour, and a neighbour takes its present place."""
        bound = self._bound
        passed = [i for i in part.items if self._state[i]]
        support = min(bound[i] + self._low[i] for i in part.items if not self._state[i])
        if not all(self._raise(i, support) for i in passed):
            return False
        for i in passed:
            blocked, support = False, _NONE
            for other, above, below in self._links[i]:
                if self._waiting[other]:
                    blocked = blocked or bound[other] < self._level[i] + above
                    support = min(support, bound[other] + below)
            if not blocked or not self._raise(i, support):
                return False
        return True

    def _lift_late(self, part: _Part, first: int, last: int) -> bool:
        """Raises items that are too high to be the lowest of a section: each lies on one that can be."""
        changed, rest = True, self._rest
        for _ in range(_ROUNDS):
            if not changed:
                break
            changed = False
            top = dict.fromkeys(range(first, last), _NONE)
            for i in part.items:
                room, end = self._capacity - self._bound[i], self._bound[i] + self._low[i]
                for section in range(self._first[i], self._last[i]):
                    if rest[section] <= room and end < top[section]:
                        top[section] = end
            for i in part.items:
                room, sections = self._capacity - self._bound[i], range(self._first[i], self._last[i])
                need = max((top[x] for x in sections if rest[x] > room), default=0)
                if need > self._bound[i]:
                    if not self._raise(i, need):
                        return False
                    self._state[i] |= 2
                    changed = True
        return True

    def _is_within(self, part: _Part) -> bool:
        """Whether every section has room above each threshold for the items that cannot lie lower."""
        sums = [0] * self._sections
        counted = set()
        for i in sorted(part.items, key=lambda i: -self._bound[i]):
            for other, sections, units in self._shares[i]:
                if other in counted:
                    for section in sections:
                        sums[section] -= units
            room = self._capacity - self._bound[i]
            for section in range(self._first[i], self._last[i]):
                sums[section] += self._size[i]
                if sums[section] > room:
                    return False
            counted.add(i)
        return True
