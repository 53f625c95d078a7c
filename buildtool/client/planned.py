"""The lines that every build prints about a network that it has planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.schema.builds import EmitAnswer, NetworkNeeds

_Channels = set[tuple[int, int]]  # (tensor, channel)


def planned_line(needs: NetworkNeeds) -> str:
    """Returns "wake: arena 11,840 of 65,536 bytes, weights 32,864, F 1.000", and more where there is."""
    limit = f"{needs['limit_bytes']:,} bytes"
    limit += f" (the chip has {needs['chip_bytes']:,})" if needs["chip_bytes"] else ""
    state = f", state {needs['state_bytes']:,}" if needs["state_bytes"] else ""
    arena = f"{needs['net']}: arena {needs['arena_bytes']:,} of {limit}{state}"
    removed = f", {needs['channels_removed']:,} of {needs['channels']:,} channels removed"
    figures = f"{arena}, weights {needs['weights_bytes']:,}, F {needs['f']:.3f}"
    return figures + (removed if needs["channels_removed"] else "")


def emitted_lines(answer: EmitAnswer, folder: Path) -> str:
    """Returns the line about a plan. A second line says if a network was planned anew for its weights.

    `folder` has the files that were emitted before, if any.
    """
    name = f"{answer['net']}.plan"
    try:
        before = _removed((folder / name).read_bytes())
        now = _removed(answer["files"][name])
    except (OSError, ValueError, LookupError, TypeError):  # there is no plan, or one of another version
        return planned_line(answer)
    if before[0] != now[0] or before[1] == now[1]:
        return planned_line(answer)
    return (
        f"{planned_line(answer)}\n"
        f"{answer['net']}: planned again, as other channels can be removed with these weights"
    )


def _removed(plan: bytes) -> tuple[tuple[int, int], _Channels]:
    """Returns a plan's schema and number of operators, and the channels that it removes."""
    import msgpack  # few commands print about a plan

    schema, fields = msgpack.unpackb(plan)
    kernels, removed = fields[5], fields[-2]
    return (schema, len(kernels)), {(tensor, channel) for tensor, channels in removed for channel in channels}
