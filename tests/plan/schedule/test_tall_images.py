"""Images of very many rows run in one step: a plan by rows would list more steps than it is worth."""

import pytest
from zeronet import SAME_3X3, Net

from buildtool.base.errors import UsageError
from buildtool.plan.schedule.receptive import MOST_ROWS
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target


def tall(rows):
    net = Net((1, rows, 1, 1))
    x = net.conv(net.inputs[0], 2, (3, 3), pad=SAME_3X3)
    return net.graph(net.max_pool(x, (2, 1), (2, 1)))


def test_up_to_the_limit_rows_are_made_one_by_one():
    found = front(tall(MOST_ROWS), load_target("cortex-m4"), Settings())
    assert any(region.block_forms for point in found.points for region in point.way.regions)


def test_beyond_the_limit_there_is_one_step_an_operator():
    found = front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings())
    assert [[region.block_forms for region in point.way.regions] for point in found.points] == [[(), ()]]
    with pytest.raises(UsageError, match="not read row by row"):
        front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings(image="stream"))
