"""The answer of a plan for TensorFlow Lite Micro as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count

if TYPE_CHECKING:
    from buildtool.schema.builds import TflmAnswer


def text(answer: TflmAnswer, out: str) -> str:
    """What the arena takes, and what that counts."""
    over = answer["arena_bytes"] - answer["arena_bound_bytes"]
    bound = "no placement needs less" if not over else f"{over:,} over the largest live sum"
    return "\n".join(
        [
            f"{answer['model']} for TensorFlow Lite Micro: "
            f"{answer['placed_tensors']} of {answer['tensors']} tensors placed, as the file has them",
            f"arena    {count(answer['arena_bytes'], 'byte')} ({bound})",
            "         - inputs and outputs are in it, offsets and sizes are rounded up to 16 bytes",
            "         - kernels' scratch and TFLM's own structures come on top",
            f"written: {out}",
        ]
    )
