"""A window that lies in padding alone reads no rows: the operator runs as a whole, and not in a region."""

from __future__ import annotations

import pytest
from widecases import conv

from buildtool.plan.schedule.receptive import streams


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "around", "reads"),
    [
        ((1, 2), (1, 1), (4, 4), (1, 0), False),  # of its three rows it reads the one above
        ((1, 2), (1, 1), (1, 1), (1, 0), True),
        ((2, 1), (1, 1), (4, 4), (0, 1), False),
        ((3, 3), (3, 3), (2, 2), (1, 1), True),
        ((3, 3), (2, 2), (3, 3), (2, 2), True),  # the second window is in the image
    ],
)
def test_what_reads_no_row_does_not_stream(image, kernel, stride, around, reads):
    made = conv(image, 3, 4, kernel, stride=stride, around=around)
    assert streams(made.graph, made.op) is reads
