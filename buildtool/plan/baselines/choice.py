"""Which of a strategy's plans is taken under limits."""

from __future__ import annotations

from collections.abc import Iterable

from buildtool.plan.types import Plan


def chosen(plans: Iterable[Plan], ram: int | None, max_f: float | None) -> Plan | None:
    """With `ram` (bytes of the arena) the plan of the least work that fits, else the one of the least arena.

    None where no plan keeps both limits; `max_f` is on the work over the network's own.
    """
    kept = [p for p in plans if (ram is None or p.arena_bytes <= ram) and (max_f is None or p.f <= max_f)]
    if ram is not None:
        return min(kept, key=lambda p: (p.macs, p.arena_bytes), default=None)
    return min(kept, key=lambda p: (p.arena_bytes, p.macs), default=None)
