"""The steps of a region as few numbers: a streamed region repeats itself, often for thousands of steps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from buildtool.plan.schedule.schedule import Steps

_LEAST = 4  # of a repetition; a shorter one takes no less than its symbols
Symbol = TypeVar("Symbol", bound=Hashable)


def packed(steps: Steps) -> tuple[list[list[int]], list[int]]:
    """(symbols, sequence), as `RegionSteps` has them: see `unpacked`."""
    numbers: dict[tuple[int, ...], int] = {}
    before: dict[int, tuple[int, int]] = {}
    sequence = []
    for op, y0, y1, x0, x1 in steps.tolist():
        row, column = before.get(op, (0, 0))
        before[op] = y0, x0
        symbol = (op, y0 - row, y1 - y0, x0 - column, x1 - x0)
        sequence.append(numbers.setdefault(symbol, len(numbers)))
    return [list(symbol) for symbol in numbers], repeated(sequence)


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


def repeated(numbers: Sequence[int]) -> list[int]:
    """Numbers from 0 on, with what repeats itself as -d, n: the last d of them go on for n more.

    A place is compared with the last one at which the same numbers followed.
    """
    found: list[int] = []
    seen: dict[tuple[int, ...], int] = {}
    at = 0
    while at < len(numbers):
        key = tuple(numbers[at : at + _LEAST])
        start = seen.get(key)
        length = 0
        if start is not None and len(key) == _LEAST:
            while at + length < len(numbers) and numbers[start + length] == numbers[at + length]:
                length += 1
            found += [start - at, length]
        else:
            length = 1
            found.append(numbers[at])
        for place in range(at, at + length):
            seen[tuple(numbers[place : place + _LEAST])] = place
        at += length
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
