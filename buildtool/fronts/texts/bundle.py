"""What was put into a folder of networks, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count, of_state

if TYPE_CHECKING:
    from buildtool.schema.builds import BundleAnswer


def text(answer: BundleAnswer, folder: str, changed: Sequence[str], removed: Sequence[str]) -> str:
    """The memories that the network needs, how many files there are, and where to read on."""
    network = answer["network"]
    stack = network["stack_bytes"]
    lines = [
        f"{answer['net']} for {network['board']}",
        f"arena: {count(network['arena_bytes'], 'byte')}" + of_state(network.get("state_bytes", 0)),
        f"weights: {count(network['weights_bytes'], 'byte')}",
        f"stack of an invoke: {'not known' if stack is None else count(stack, 'byte')}",
        "",
    ]
    kernels = count(len(network["kernels"]), "file")
    lines.append(f"{folder}: {count(len(changed), 'file')} written, {len(removed)} removed")
    lines.append(f"the network uses {kernels} of kernels; README.md says how to compile and call it")
    return "\n".join(lines)
