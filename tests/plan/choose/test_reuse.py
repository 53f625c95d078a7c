"""An edited network reuses the tables of the blocks that the edit does not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from drawnnets import branching_networks, gated_networks, small_networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.modes import Image, Objective
from buildtool.base.session import Session
from buildtool.base.store.cache import Cache
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.search.tables import Tables
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder


def inverted(wide: Sequence[int]) -> bytes:
    """Inverted residuals with these numbers of inner channels."""
    net = NetBuilder(0)
    x = net.conv(net.input((1, 32, 32, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    for channels in wide:
        y = net.conv(net.conv(x, channels), 0, kernel=(3, 3), same=True, depth_multiplier=1)
        x = net.conv(y, 8)
    return write_model(net.graph([net.dense(net.mean(x), 4)]))


def branched(split: bool) -> bytes:
    """Two blocks of two convolutions and a pooling; the first or both have two branches."""
    net = NetBuilder(0)
    x = net.input((1, 8, 8, 3))
    for block in range(2):
        branches = 2 if block == 0 or split else 1
        ends = net.split(x, branches) if block and split else (x,) * branches
        tensors = []
        for end in ends:
            y = net.conv(end, 4 // branches, kernel=(3, 3), same=True)
            y = net.conv(y, 4 // branches, kernel=(3, 3), same=True)
            tensors.append(net.pool(OpKind.MAX_POOL_2D, y, (2, 2), (2, 2), False))
        x = net.conv(net.concat(tensors), 4) if len(tensors) > 1 else tensors[0]
    return write_model(net.graph([net.dense(net.flatten(x), 2)]))


@pytest.mark.slow
def test_the_front_of_a_network_is_the_same_whatever_another_one_left_in_the_cache(tmp_path: Path) -> None:
    def points(data: bytes, session: Session) -> list[object]:
        request = {"kind": "front", "model": {"name": "net.tflite", "data": data}, "board": "cortex-m4"}
        found: list[object] = handle(request, session)["points"]
        return found

    first = Cache(tmp_path / "cache", "code")
    points(branched(False), Session(keeper=first))
    first.flush()
    warm = points(branched(True), Session(keeper=Cache(tmp_path / "cache", "code")))
    assert warm == points(branched(True), Session())


@pytest.mark.slow
def test_a_block_more_needs_new_tables_of_its_own_chains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made, rows = list[int](), Tables._rows
    monkeypatch.setattr(Tables, "_rows", lambda self, last: made.append(last) or rows(self, last))

    def planned(wide: Sequence[int], session: Session) -> tuple[bytes, int]:
        model = {"name": "net.tflite", "data": inverted(wide)}
        options = {"objective": "ram", "simplify": "structure"}
        request = {"kind": "plan", "model": model, "board": "host", "options": options}
        made.clear()
        plan: bytes = handle(request, session)["plan"]
        return plan, len(made)

    session, wide = Session(), [24 + 4 * place for place in range(12)]
    _, first = planned(wide, session)
    wide.insert(6, 100)
    warm, second = planned(wide, session)
    cold, every = planned(wide, Session())
    # three operators are new, and chains that end up to nine operators later contain one of them
    assert every == first + 3 > 30
    assert 0 < second <= 3 + 9
    assert warm == cold


def test_a_way_of_an_earlier_search_does_not_stand_for_one_of_the_same_bytes_and_work() -> None:
    """Ways are values: a plan must not depend on which of two equal ways a session has seen first."""
    graph = rewrite(read_model(zoo.build("mcunet_vww5")))
    target = load_target("cortex-m4")
    options = PlanOptions(image=Image.STREAM, objective=Objective.RAM, max_f=1.09)
    session = Session()
    make_plan(graph, target, replace(options, max_f=1.48), session, every_kind=True)
    again = make_plan(graph, target, options, session, every_kind=True)
    assert again == make_plan(graph, target, options, Session(), every_kind=True)


_networks = small_networks(firmware=True, max_blocks=4) | branching_networks() | gated_networks()
_limits = st.fixed_dictionaries(
    {
        "objective": st.sampled_from(["cost", "ram"]),
        "image": st.sampled_from(["overwritable", "resident"]),
        "max_f": st.sampled_from([1.0, 1.2, 2.0]),
    }
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(_networks, min_size=8, max_size=8, unique_by=id), st.lists(_limits, min_size=2, max_size=2))
def test_plans_of_one_worker_and_of_two_with_one_cache_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, graphs: list[Graph], limits: list[dict[str, object]]
) -> None:
    """A worker answers in one session. Two workers share the requests, which end in another order."""
    models = [{"name": "net.tflite", "data": write_model(graph)} for graph in graphs]
    requests = [
        {"kind": "plan", "model": model, "board": "host", "options": options}
        for options in limits
        for model in models
    ]

    def plans(workers: int, order: Sequence[int]) -> list[bytes]:
        folder, found = tmp_path_factory.mktemp("cache"), dict[int, bytes]()
        caches = [Cache(folder, "code") for _ in range(workers)]
        sessions = [Session(keeper=cache) for cache in caches]
        for place, number in enumerate(order):
            found[number] = handle(requests[number], sessions[place % workers])["plan"]
            caches[place % workers].flush()
        return [found[number] for number in range(len(requests))]

    one = plans(1, range(len(requests)))
    assert plans(2, range(len(requests))) == one
    assert plans(2, range(len(requests) - 1, -1, -1)) == one
    assert [handle(request, Session())["plan"] for request in requests] == one
