"""The line that every build prints about a network that it has planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.schema.builds import NetworkNeeds


def planned_line(needs: NetworkNeeds) -> str:
    """Returns "wake: arena 11,840 of 65,536 bytes, weights 32,864, F 1.000", and more where there is."""
    limit = f"{needs['limit_bytes']:,} bytes"
    limit += f" (the chip has {needs['chip_bytes']:,})" if needs["chip_bytes"] else ""
    state = f", state {needs['state_bytes']:,}" if needs["state_bytes"] else ""
    arena = f"{needs['net']}: arena {needs['arena_bytes']:,} of {limit}{state}"
    left_out = f", {needs['channels_left_out']:,} of {needs['channels']:,} channels left out"
    figures = f"{arena}, weights {needs['weights_bytes']:,}, F {needs['f']:.3f}"
    return figures + (left_out if needs["channels_left_out"] else "")
