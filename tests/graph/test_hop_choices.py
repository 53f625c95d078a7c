"""Choices of what is kept from hop to hop, beside all that there are."""

import pytest
from listeningnets import listening_network

from buildtool.base.distinct import undominated
from buildtool.base.errors import UsageError
from buildtool.graph.hop.choices import choices, keep_all
from buildtool.graph.hop.moments import analyse
from buildtool.graph.hop.needs import find_needs


def _every(analysis):
    """Returns the needs of all choices: each decision in all ways, in the order in which they are asked."""
    found, open_ends = [], [()]
    while open_ends:
        given, asked = open_ends.pop(), []

        def decide(ways, given=given, asked=asked):
            asked.append(ways)
            return given[len(asked) - 1] if len(asked) <= len(given) else 0

        def choose(_, wanted, decide=decide):
            at = decide(len(wanted) + 1)
            return wanted[at][0] if at < len(wanted) else None

        found.append(find_needs(analysis, choose, lambda _, decide=decide: not decide(2)))
        for i in range(len(given), len(asked)):
            zeros = (0,) * (i - len(given))
            open_ends += [(*given, *zeros, way) for way in range(1, asked[i])]
    return found


@pytest.mark.parametrize("seed", [7, 14, 21, 38, 42, 45])
def test_both_ends_are_those_of_all_choices_and_others_are_near(seed):
    try:
        analysis = analyse(listening_network(seed), 1)
    except UsageError:
        analysis = analyse(listening_network(seed), 2)
    found = [(one.work, one.state_bytes) for one in choices(analysis)]
    best = [
        (one.work, one.state_bytes)
        for one in undominated(_every(analysis), lambda one: (one.work, one.state_bytes))
    ]
    assert (found[0], found[-1]) == (best[0], best[-1])
    assert (keep_all(analysis).work, keep_all(analysis).state_bytes) == best[0]
    for work, memory in best:
        assert min(kept for done, kept in found if done <= work) <= 1.8 * memory
