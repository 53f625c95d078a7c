"""All clients together: who makes room for another one, and how much they may hold.

Every client that asks only how the daemon is, or tells it to end, finds a place: of those that wait for no
answer the one that was silent for longest gives way.
"""

from __future__ import annotations

from buildtool.daemon.connection import Connection

MOST_CLIENTS = 128
MOST_WAITING = 112  # for answers; the other places are never taken by requests
MOST_BYTES = 64 << 20  # of answers that were not read yet, and of requests; one answer may have more


class Clients(set[Connection]):
    """The connections that are open."""

    def to_make_room(self) -> Connection | None:
        """The one to hang up on where another one comes: idle for longest, an editor's lease last of all."""
        idle = (client for client in self if client.job is None)
        return min(idle, key=lambda c: (c.leased, c.wants_to_write, c.used), default=None)

    @property
    def held(self) -> int:
        """Bytes of all that is not read or not answered yet; a frame that several wait for counts once."""
        frames = {id(frame): len(frame) for client in self for frame in client.frames()}
        return sum(frames.values()) + sum(client.held for client in self)

    def surplus(self) -> list[Connection]:
        """Those to hang up on so that all hold no more than MOST_BYTES: who has read nothing for longest.

        The one that is left may hold more: a single answer of a large network.
        """
        found: list[Connection] = []
        if self.held <= MOST_BYTES:
            return found
        rest = Clients(self)
        holders = [client for client in self if client.job is None and (client.held or client.wants_to_write)]
        for client in sorted(holders, key=lambda client: client.used)[:-1]:
            found.append(client)
            rest.discard(client)
            if rest.held <= MOST_BYTES:
                break
        return found

    def refusal(self, asking: Connection) -> str:
        """Why a client's request cannot wait for its answer here, in words; "" where it can."""
        waiting = [client for client in self if client.job is not None]
        if len(waiting) >= MOST_WAITING:
            return f"{len(waiting)} clients wait for answers already"
        if sum(client.asked_bytes for client in waiting) + asking.asked_bytes > MOST_BYTES // 2:
            return "the requests that wait for answers are too large together"
        return ""
