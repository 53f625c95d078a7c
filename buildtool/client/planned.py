"""The lines that every build prints about a network that it has planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from buildtool.schema.builds import EmitAnswer, NetworkNeeds


def planned_line(needs: NetworkNeeds) -> str:
    """Returns a line such as "wake: arena 11,840 of 65,536 bytes, weights 32,864, F 1.000".

    It also has the chip's memory, the state and the removed channels, where these are not 0.
    """
    limit = f"{needs['limit_bytes']:,} bytes"
    limit += f" (the chip has {needs['chip_bytes']:,})" if needs["chip_bytes"] else ""
    state = f", state {needs['state_bytes']:,}" if needs["state_bytes"] else ""
    arena = f"{needs['net']}: arena {needs['arena_bytes']:,} of {limit}{state}"
    removed = f", {needs['channels_removed']:,} of {needs['channels']:,} channels removed"
    figures = f"{arena}, weights {needs['weights_bytes']:,}, F {needs['f']:.3f}"
    return figures + (removed if needs["channels_removed"] else "")


def emitted_lines(answer: EmitAnswer, folder: Path) -> str:
    """Returns the line about a plan; a second line says if the network was planned again for new weights.

    `folder` has the files that were emitted before, if any.
    """
    name = f"{answer['net']}.plan"
    try:
        before = _read((folder / name).read_bytes())
        now = _read(answer["files"][name])
    except (OSError, ValueError, LookupError, TypeError):  # there is no plan, or a plan of another version
        return planned_line(answer)
    if before.kind != now.kind or before == now:
        return planned_line(answer)
    other = "channels can be removed" if before.removed != now.removed else "weights fit into four bits"
    return f"{planned_line(answer)}\n{answer['net']}: planned again, as other {other} with these weights"


class _Simplified(NamedTuple):
    """What a plan says about the weights that it was made for.

    - `kind`: the schema, the number of operators, and the moving window as text; plans that differ here are
      not compared.
    - `removed`: the channels that are not computed.
    - `narrowed`: the operators whose weights are stored in four bits.
    """

    kind: tuple[int, int, str]
    removed: set[tuple[int, int]]  # (tensor, channel)
    narrowed: list[list[int]]


def _read(plan: bytes) -> _Simplified:
    import msgpack  # few commands print about a plan

    schema, fields = msgpack.unpackb(plan)
    kernels, (removed, narrowed, hop) = fields[5], fields[-3:]
    pairs = {(tensor, channel) for tensor, channels in removed for channel in channels}
    return _Simplified((schema, len(kernels), repr(hop)), pairs, narrowed)
