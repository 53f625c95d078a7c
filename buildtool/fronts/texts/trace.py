"""What a plan's trace has, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count

if TYPE_CHECKING:
    from buildtool.schema.plans import TraceAnswer


def text(answer: TraceAnswer, out: str) -> str:
    """Where it is, how large it is, and what its time is."""
    (data,) = answer["files"].values()
    numbers = (
        f"{count(answer['steps'], 'step')} in {count(answer['slices'], 'slice')}",
        count(answer["buffers"], "buffer"),
        count(len(data), "byte"),
    )
    return "\n".join(
        [
            f"written: {out}: {', '.join(numbers)}",
            f"  {answer['time']}",
            "  open it with https://ui.perfetto.dev or chrome://tracing",
        ]
    )
