"""What a plan records about a network on a sliding window: plain data without code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """Rows of a tensor that are kept from one hop to the next: those from row `first` of the window on.

    They end at `Moments.kept_end`: later rows are new in this window, or depend on where the window ends.
    `tensor` is the tensor's number in the network that runs on the whole window.
    """

    tensor: int
    first: int


@dataclass(frozen=True)
class Hop:
    """How a network runs on a sliding window.

    `rows`: the rows by which the window moves at a hop.
    `kept`: the rows that are kept, in ascending order of tensors.
    `sums`: positions of the poolings over all moments that keep their sums or maxima.
    `in_columns`: whether convolutions and poolings of images of one column run on images of one row, with
    moments as columns. Kernels then compute several columns together, but these images do not pass row by row
    to the next operator.
    """

    rows: int
    kept: tuple[Kept, ...] = ()
    sums: tuple[int, ...] = ()
    in_columns: bool = False
