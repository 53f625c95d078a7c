"""The answer of `target`: the kernels of a target family against the reference."""

from __future__ import annotations

from typing import TypedDict


class FailedCase(TypedDict):
    """The first network on which a kernel failed.

    `name` and `model`: its file, `text`: what is wrong, `options`: those of `buildtool validate` that
    show it.
    """

    name: str
    text: str
    options: str
    model: bytes


class CheckedKernel(TypedDict):
    """A kernel on a board.

    `cases`: networks that were run, `among`: those of them in which it ran among others with little
    memory, `values`: different output values that were compared. `reached` is false where no network was
    found for which the board picks it. `failed`: None where all were equal.
    """

    board: str
    kernel: str
    operator: str
    symbol: str
    cases: int
    among: int
    values: int
    reached: bool
    failed: FailedCase | None


class CheckAnswer(TypedDict):
    """The kernels of a plugin's boards; `exact` says whether none failed."""

    plugin: str
    interface: int
    boards: list[str]
    kernels: list[CheckedKernel]
    exact: bool
