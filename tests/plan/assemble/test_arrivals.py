"""Constants that arrive while regions run: within their bytes, checked, and equal in every byte."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import replay_twin
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import plain_xcore
from needs import needs_shared
from planmutants import with_buffer, with_load

from buildtool.api import handle
from buildtool.base.errors import PlanError, UsageError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_model
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.arrivals import DeadRows, Demand, Site, Trail, begins, places, stacks
from buildtool.plan.check import check as checking
from buildtool.plan.check.check import check
from buildtool.plan.check.replay import replay
from buildtool.plan.schedule.timeline import Part, Timeline, load_steps
from buildtool.plan.types import BufferKind

SMALL = "mobilenetv2:size=64,alpha=0.35,classes=10"
TRAINED = "models/mobilenetv2_160.tflite"  # in ../shared
SESSION = Session()
slow = pytest.mark.slow


@cache
def made(model=SMALL, board="", **options):
    options = {"objective": Objective.RAM, "max_f": 1.0} | options
    return plan_model(model, board or plain_xcore(), PlanOptions(**options), SESSION)


def loads_of(plan, op):
    return [load for load in plan.loads if load.op == op]


def wandering(plan):
    """The operators whose constants lie at several places, one after the other."""
    return sorted({load.op for load in plan.loads if len(loads_of(plan, load.op)) > 1})


def by_turns(plan):
    return sorted({load.op for load in plan.loads if load.by_turns})


@slow
@pytest.mark.parametrize(
    ("board", "image", "most"), [("", "overwritable", 112_000), ("xcore", "resident", 172_500)]
)
def test_the_trained_network_in_few_bytes_with_its_weight_buffers(board, image, most):
    """XMOS's compiler needs at least 192,872 bytes without weights, at F 1.13.

    Kernels of the vector unit have larger constants: 14 bytes per channel besides the weights, padded.
    """
    plan = made(str(needs_shared(TRAINED)), board, image=image).plan
    assert plan.arena_bytes <= most
    assert plan.macs == plan.macs_layerwise


@slow
def test_the_trained_network_equals_the_reference_in_every_tensor():
    options = {"objective": "ram", "max_f": 1.0}
    request = {
        "kind": "validate",
        "model": str(needs_shared(TRAINED)),
        "board": plain_xcore(),
        "options": options,
        "toolchain": "clang",  # the model on the host: the plan is the same
    }
    answer = handle(request | {"inputs": 2, "tensors": True, "reference": "litert"}, SESSION)
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_high_water"] <= answer["arena_bytes"]


@slow
def test_the_plan_has_all_that_is_tested_here():
    plan = made().plan
    assert by_turns(plan) and wandering(plan)
    sliced = {load.op for load in plan.loads if load.channels}
    assert any(o.op in sliced for o in plan.overlaps)  # depthwise convolutions over their inputs


@slow
@pytest.mark.parametrize("run", [replay, replay_twin.replay])
def test_faults_in_what_comes_while_a_region_runs_are_found(run, monkeypatch):
    """The replay in C and its twin find them."""
    monkeypatch.setattr(checking, "replay", run)
    plans = made()
    graph, target, plan = plans.graph, plans.target, plans.plan
    check(plan, graph, target)
    op = wandering(plan)[0]
    first, *others = loads_of(plan, op)
    at, turned = others[0].buffer, by_turns(plan)[0]
    turn = plan.buffers[loads_of(plan, turned)[0].buffer]
    ring = next(
        b for b in plan.buffers if b.kind is BufferKind.RING and b.first < turn.last and b.last > turn.first
    )
    place = plan.buffers[at]
    faults = [
        # on rows that are still read, and where the output arrives before the constants are used up
        (with_buffer(plan, at, offset=place.offset + 1024), "read|arena"),
        (with_buffer(plan, others[-1].buffer, offset=plan.buffers[at].offset), "not in the arena when"),
        # loaded only once, although another group's constants use the same place in between
        (once(plan, turned), "not in the arena when"),
        (with_buffer(plan, loads_of(plan, turned)[0].buffer, offset=ring.offset), "arena|read|over"),
        # gaps and overlaps between the buffers of an operator
        (with_buffer(plan, at, first=place.first + 1), "do not live as long"),
        (with_buffer(plan, at, last=place.last + 1), "do not live as long"),
        (without(plan, others[-1]), "do not live as long"),
        (without(plan, *loads_of(plan, op)), "not loaded into the arena"),
        (with_load(plan, first, slots=2), "cannot hold|in slices"),
    ]
    for broken, says in faults:
        with pytest.raises(PlanError, match=says):
            check(broken, graph, target)


def once(plan, op):
    """The plan with an operator's constants loaded once instead of alternately."""
    return with_load(plan, loads_of(plan, op)[0], by_turns=False)


def without(plan, *gone):
    return replace(plan, loads=tuple(load for load in plan.loads if load not in gone))


@slow
@pytest.mark.parametrize("run", [replay, replay_twin.replay])
def test_slices_that_lie_between_pixels_are_refused(run, monkeypatch):
    monkeypatch.setattr(checking, "replay", run)
    plans = made()
    plan = plans.plan
    cut = {load.op for load in plan.loads if load.channels}
    overlap = next(o for o in plan.overlaps if o.op in cut)
    output = plan.buffers[overlap.output]
    moved = [m for m in plan.moves if overlap.output in (m.source, m.target)]
    assert not moved and output.offset >= 16
    with pytest.raises(PlanError, match="for every slice"):
        check(with_buffer(plan, overlap.output, offset=output.offset - 16), plans.graph, plans.target)


@slow
def test_every_time_that_constants_come_is_in_the_estimate():
    plans = made()
    plan = plans.plan
    timeline = Timeline.of(plans.graph, plan.regions, plan.image)
    brings = [load for _, load in load_steps(timeline, plan.loads, plan.buffers)]
    answer = handle(
        {
            "kind": "plan",
            "model": SMALL,
            "board": plain_xcore(),
            "options": {"objective": "ram", "max_f": 1.0},
        },
        SESSION,
    )
    assert answer["loading"]["bytes"] == sum(load.size for load in brings)
    assert answer["loading"]["again_bytes"] > 0
    assert answer["estimate"]["load_seconds"] == pytest.approx(answer["loading"]["bytes"] / 50e6)


def test_weights_in_another_memory_of_the_board_come_at_its_bandwidth():
    request = {"kind": "plan", "model": "ds_cnn", "board": "xcore", "options": {"ram": 20000}}
    flash, tile = (handle(request | {"weights_in": name}, SESSION) for name in ("flash", "tile1"))
    assert flash == handle(request, SESSION)
    assert (flash["estimate"]["bytes_per_second"], tile["estimate"]["bytes_per_second"]) == (50e6, 120e6)
    assert tile["estimate"]["total_seconds"] < flash["estimate"]["total_seconds"]
    assert tile["cost"] < flash["cost"]
    assert tile["target"] != flash["target"]


def test_a_memory_that_cannot_hold_the_weights_is_refused():
    request = {"kind": "plan", "model": "ds_cnn", "board": "xcore", "options": {}}
    with pytest.raises(UsageError, match="memory 'ram' cannot hold the weights"):
        handle(request | {"weights_in": "ram"}, SESSION)
    with pytest.raises(UsageError, match="does not exist on board 'xcore'") as error:
        handle(request | {"weights_in": "lpddr"}, SESSION)
    assert "tile1" in str(error.value.hint)
    with pytest.raises(PlanError, match="memory 'tile1' of xcore has 458,752"):
        large = {"model": "mcunet_vww5", "options": {"strategy": "layerwise"}}
        handle(request | large | {"weights_in": "tile1"}, SESSION)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 40), st.integers(0, 12)),
        min_size=1,
        max_size=9,
    )
)
def test_constants_begin_early_where_there_is_room_and_never_make_the_core_wait_longer(numbers):
    regions = [Demand(buffers, min(load, buffers), room, hides) for buffers, load, room, hides in numbers]
    starts = begins(regions)
    for index, at in enumerate(starts):
        assert 0 <= at <= index
    for index, region in enumerate(regions):
        early = [j for j, at in enumerate(starts) if at <= index < j]
        assert sum(regions[j].buffers for j in early) <= region.room
    waits = [sum(regions[j].load for j, at in enumerate(starts) if at == j)]
    for index, region in enumerate(regions):
        begun = sum(regions[j].load for j, at in enumerate(starts) if at == index < j)
        waits.append(max(0, begun - region.hides))
    assert sum(waits) <= sum(region.load for region in regions)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.data())
def test_stacks_lie_on_dead_rows_that_the_output_has_not_reached(data):
    row_in, row_out = data.draw(st.integers(16, 200)), data.draw(st.integers(1, 100))
    ahead = data.draw(st.integers(0, 6))
    trail = tuple(
        Trail(Part(10 * i + 9, i, i + 1), (2 * i + ahead) * row_in, (i + 1) * row_out) for i in range(20)
    )
    spare = min(t.dead // 16 * 16 - t.made for t in trail) // 16 * 16
    dead_rows = DeadRows(0, 1, max(0, spare), trail)
    small = 16 * data.draw(st.integers(0, max(0, spare) // 16))
    full = small + 16 * data.draw(st.integers(0, 40))
    found = stacks(dead_rows, small, full, Site(1600, 1600, True))
    assert found or not small
    for stack, end in zip(found, [*(s.step for s in found[1:]), 1000][: len(found)], strict=True):
        size = full if stack.full else small
        lasting = [t for t in trail if stack.step <= t.part.step < end]
        assert stack.offset % 16 == 0 and stack.offset + size <= 1600 + lasting[0].dead
        assert all(1600 + t.made <= stack.offset for t in lasting)
    own = [Part(10 * i, i, i + 1) for i in range(21)]
    for place in places(found, own, False):
        assert place.offset == [s.offset for s in found if s.step < place.step][-1]
