"""What a folder of networks is to the files that describe it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from buildtool.schema.builds import BundledNetwork, License


@dataclass(frozen=True)
class Folder:
    """The networks of a folder by name; all are for one core. Paths are relative to the folder."""

    networks: Mapping[str, BundledNetwork]

    @property
    def each(self) -> Iterator[tuple[str, BundledNetwork]]:
        """Name and network, in the names' order."""
        return iter(sorted(self.networks.items()))

    @property
    def any(self) -> BundledNetwork:
        """A network, for what all have in common: core, defines and exact flags."""
        return next(self.each)[1]

    def all(self, key: Literal["kernels", "sources", "include_kernels"]) -> list[str]:
        """What the networks list under a key, each once, sorted."""
        return sorted({name for _, network in self.each for name in network[key]})

    @property
    def licenses(self) -> list[License]:
        """Those of all networks, each text once."""
        found: dict[tuple[str, str], set[str]] = {}
        for _, network in self.each:
            for one in network["licenses"]:
                found.setdefault((one["text"], one["spdx"]), set()).update(one["folders"])
        return [
            {"spdx": spdx, "text": text, "folders": sorted(names)}
            for (text, spdx), names in sorted(found.items())
        ]
