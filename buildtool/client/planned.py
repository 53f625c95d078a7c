"""The lines that every build prints about a network that it has planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgpack

if TYPE_CHECKING:
    from buildtool.schema.builds import EmitAnswer, NetworkNeeds

_Channels = set[tuple[int, int]]  # (tensor, channel)


def planned_line(needs: NetworkNeeds) -> str:
    """Returns "wake: arena 11,840 of 65,536 bytes, weights 32,864, F 1.000", and more where there is."""
    limit = f"{needs['limit_bytes']:,} bytes"
    limit += f" (the chip has {needs['chip_bytes']:,})" if needs["chip_bytes"] else ""
    state = f", state {needs['state_bytes']:,}" if needs["state_bytes"] else ""
    arena = f"{needs['net']}: arena {needs['arena_bytes']:,} of {limit}{state}"
    left_out = f", {needs['channels_left_out']:,} of {needs['channels']:,} channels left out"
    figures = f"{arena}, weights {needs['weights_bytes']:,}, F {needs['f']:.3f}"
    return figures + (left_out if needs["channels_left_out"] else "")


def emitted_lines(answer: EmitAnswer, folder: Path) -> str:
    """Returns the line about a plan. A second line says if a network was planned anew for its weights.

    `folder` has the files that were emitted before, if any.
    """
    name = f"{answer['net']}.plan"
    try:
        before = _left_out((folder / name).read_bytes())
        now = _left_out(answer["files"][name])
    except (OSError, ValueError, LookupError, TypeError):  # there is no plan, or one of another version
        return planned_line(answer)
    if before[0] != now[0] or before[1] == now[1]:
        return planned_line(answer)
    gone, back = len(now[1] - before[1]), len(before[1] - now[1])
    text = f"{gone:,} more are left out, {back:,} are computed again"
    changed = (
        f"{answer['net']}: planned anew, as other channels are constant or not read in these weights: {text}"
    )
    return f"{planned_line(answer)}\n{changed}"


def _left_out(plan: bytes) -> tuple[tuple[int, int], _Channels]:
    """Returns a plan's schema and number of operators, and the channels that it leaves out."""
    schema, fields = msgpack.unpackb(plan)
    kernels, left_out = fields[5], fields[-1]
    return (schema, len(kernels)), {
        (tensor, channel) for tensor, channels in left_out for channel in channels
    }
