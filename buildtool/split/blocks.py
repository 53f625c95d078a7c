"""The blocks of a network: where it is cut at poolings and strides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Block:
    """A part of the network between two cuts, which one tensor enters and one leaves.

    `index` counts from 0; `name` is "block1" for the first. `layers`: its layers' names in order.
    `channels`: of the tensor that leaves it. `largest`: the largest splitting factor it allows (every branch
    has a channel of every layer). `groups`: numbers that a factor must divide, as those of grouped
    convolutions. `reason`: why it cannot be split, where `largest` is 1.
    """

    index: int
    name: str
    layers: tuple[str, ...]
    channels: int
    is_residual: bool
    largest: int
    groups: tuple[int, ...] = ()
    reason: str = ""

    def allows(self, factor: int) -> bool:
        """Whether this block can be split into so many branches."""
        return 1 <= factor <= self.largest and all(count % factor == 0 for count in self.groups)


def find_blocks(model: keras.Model) -> tuple[Block, ...]:
    """The blocks of a Keras 3 model (functional or Sequential) in order; its head belongs to none."""
    raise NotImplementedError
