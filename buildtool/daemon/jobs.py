"""Requests at work. Equal ones are computed once; one that nobody waits for any more is given up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buildtool.api import about
from buildtool.api.requests import needs
from buildtool.api.requests.parts import Needs

if TYPE_CHECKING:
    from buildtool.daemon.connection import Connection
    from buildtool.daemon.pool import Worker


@dataclass(eq=False)
class Job:
    """A request; `waiting`: whoever asked for it, nobody where it is prepared."""

    key: str
    request: Mapping[str, Any]
    environment: Mapping[str, str]
    cache: str
    waiting: list[Connection] = field(default_factory=list)
    worker: Worker | None = None
    begun: float = field(default_factory=time.monotonic)
    doing: str = "waiting for a free process"

    @property
    def about(self) -> str:
        """The network and the board, by which a worker is chosen that knows them."""
        return about(self.request)

    @property
    def is_pure(self) -> bool:
        """Whether the answer depends on files alone, whose digests come with the request or the answer."""
        known = needs(self.request) is Needs.NOTHING and not self.request.get("cmsis_nn")
        return known and self.cache == "on"

    def message(self) -> dict[str, Any]:
        """What its worker is told."""
        return {
            "request": self.request,
            "environment": self.environment,
            "cache": self.cache,
        }
