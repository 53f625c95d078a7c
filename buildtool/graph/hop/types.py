"""Types of hops. They are data without code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """Rows of a tensor that are kept from one hop to the next, from row `first` of the window on.

    Those rows are kept whose values do not depend on where the window ends (see `moments.Span`). `tensor` is
    the tensor's number in the network that runs on the whole window.
    """

    tensor: int
    first: int


@dataclass(frozen=True)
class Hop:
    """How a network runs on a moving window.

    `rows`: rows by which the window moves. `kept`: kept rows, in ascending order of tensors. `sums`: poolings
    over all moments that keep their sums or maxima, as positions in the operators. `in_columns`: where an
    image has one column, its convolutions and poolings read moments as columns of one row: kernels compute
    columns together, but such images do not pass row by row to the next operator.
    """

    rows: int
    kept: tuple[Kept, ...] = ()
    sums: tuple[int, ...] = ()
    in_columns: bool = False
