"""Points of the front run: exact in every tensor, with the planned work, and nothing outside of its buffer.

Random networks, several points of each one's front, in all image modes and hand-offs; every plan as it
is, and once more with its buffers side by side, a gap of untouchable bytes around each.
"""

from __future__ import annotations

import dataclasses

import pytest
from graphs import small_networks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nativebatch import JUNK, differences, prepare, run

from buildtool.base.errors import UsageError
from buildtool.graph.macs import pixel_macs
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import IN_PLACE
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search

GAP = 64  # bytes of guard between buffers

_batches = settings(
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow, HealthCheck.large_base_example],
)


@st.composite
def choices(draw):
    """Settings of a front; which of its ways; the seed of the inputs."""
    asked = Settings(
        in_place=draw(st.sampled_from(("rows", *IN_PLACE))),
        image=draw(st.sampled_from(["overwritable", "resident", "stream"])),
        hand_off=draw(st.sampled_from([None, 1, 3, 4, 100])),
        max_f=6.0,
    )
    return asked, draw(st.booleans()), draw(st.floats(0, 1)), draw(st.booleans()), draw(st.integers(0, 99))


def _planner(asked, by_cost, place, lean, apart):
    """Makes the plan of a point: a front's way at `place` (0 to 1), in lean or cheap forms."""

    def plan(graph, target):
        try:
            found = front(graph, target, asked)
        except UsageError:  # an image that cannot be streamed
            found = front(graph, target, dataclasses.replace(asked, image="overwritable"))
        ways = list(Search(found.space.cost_columns).falling()) if by_cost else [p.way for p in found.points]
        way = ways[round(place * (len(ways) - 1))]
        made = found.lean(way) if lean else found.cheap(way)
        return _with_gaps(made) if apart else made

    return plan


def _with_gaps(plan):
    """The same, every buffer alone between guards (behind the last one is the sanitizer's red zone)."""
    buffers, at = [], GAP
    for buffer in plan.buffers:
        buffers.append(dataclasses.replace(buffer, offset=at))
        at += round_up(buffer.size, plan.alignment) + GAP
    return dataclasses.replace(plan, buffers=tuple(buffers), overlaps=(), arena_bytes=at - GAP)


def _executed(job, one):
    """Multiply-accumulates of the kernel calls traced."""
    total = 0
    for op in job.graph.ops:
        tensor = op.outputs[0]
        channels = job.graph.tensors[tensor].nhwc[3] * job.graph.tensors[tensor].dtype.size
        pixels, rest = divmod(one.computed.get(tensor, 0), channels)
        assert not rest
        total += pixel_macs(job.graph, op, pixels)
    return total


def _untouched(job, one, junk):
    """Bytes of the arena that belong to no buffer are as they were."""
    owned = bytearray(job.plan.arena_bytes)
    for buffer in job.plan.buffers:
        owned[buffer.offset : buffer.offset + buffer.size] = b"\1" * buffer.size
    assert len(one.arena) == len(owned)
    return all(byte == junk for byte, mine in zip(one.arena, owned, strict=True) if not mine)


def _check(drawn, folder):
    jobs = []
    for graph, (*choice, seed) in drawn:
        for apart in (False, True):
            jobs.append(prepare(graph, f"n{len(jobs)}", seed=seed, planner=_planner(*choice, apart)))
    for job, runs in zip(jobs, run(jobs, folder), strict=True):
        assert differences(job, runs) == [], (job.plan, job.source)
        for one, junk, image in zip(runs, JUNK, job.inputs, strict=True):
            assert _executed(job, one) == job.plan.macs, (job.plan, job.source)
            assert _untouched(job, one, junk), (job.plan, job.source)
            if job.plan.image == "resident":
                assert one.inputs_after == [array.tobytes() for array in image]
    return jobs


def _networks(count, blocks):
    return st.lists(
        st.tuples(small_networks(firmware=True, max_blocks=blocks), choices()), min_size=count, max_size=count
    )


@settings(_batches, max_examples=1)
@given(drawn=_networks(6, 4))
def test_points_of_small_networks_run_as_planned(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("points"))


@pytest.mark.slow
@settings(_batches, max_examples=8)
@given(drawn=_networks(12, 7))
def test_points_of_networks_run_as_planned(drawn, tmp_path_factory):
    _check(drawn, tmp_path_factory.mktemp("points"))
