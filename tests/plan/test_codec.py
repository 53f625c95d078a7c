"""Plans as bytes: they are restored equal, equal plans have equal bytes, and other bytes are refused.

Plans with second passes: their bytes and text, the network that they are for, and refusals.
"""

from __future__ import annotations

import dataclasses
import json

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import load_target
from namednets import efficient_net
from plan_nets import graphs, make_target, residual_net

from buildtool.base.errors import PlanError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.types import SecondPass
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.schedule.gates import gates
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.view import to_json
from buildtool.plan.types import SCHEMA, Plan


@settings(derandomize=True, deadline=None, max_examples=20)
@given(graphs())
def test_a_plan_survives_its_bytes(graph):
    result = plan(graph, make_target(scratch="7"))
    data = to_bytes(result)
    assert from_bytes(data) == result
    assert to_bytes(from_bytes(data)) == data == to_bytes(plan(graph, make_target(scratch="7")))


GOOD = to_bytes(plan(residual_net(), make_target()))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_are_refused_or_another_plan_in_canonical_form(data):
    position = data.draw(st.integers(0, len(GOOD) - 1))
    kind = data.draw(st.sampled_from(("flip", "cut", "insert")))
    byte = bytes([data.draw(st.integers(0, 255))])
    bad = {
        "flip": GOOD[:position] + byte + GOOD[position + 1 :],
        "cut": GOOD[:position],
        "insert": GOOD[:position] + byte + GOOD[position:],
    }[kind]
    try:
        other = from_bytes(bad)
    except PlanError:
        return
    assert isinstance(other, Plan) and to_bytes(other) == bad


def _with(changes):
    content = msgpack.unpackb(GOOD)
    for index, value in changes.items():
        content[1][index] = value
    return msgpack.packb(content)


_FIELDS = {f.name: i for i, f in enumerate(dataclasses.fields(Plan))}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cost", float("nan")),
        ("cost", float("inf")),
        ("cost", 1),
        ("arena_bytes", True),
        ("arena_bytes", 1.0),
        ("arena_bytes", 1 << 63),
        ("kernels", "conv"),
        ("buffers", [["nonsense", "x", [], 1, 0, 0, 0]]),
        ("buffers", [[]]),
        ("overlaps", [[1, 2, 3]]),
        ("image", None),
        ("image", b"resident"),
        ("accounting", [1]),
    ],
)
def test_fields_of_another_type_are_refused(field, value):
    with pytest.raises(PlanError, match="not a plan"):
        from_bytes(_with({_FIELDS[field]: value}))


@pytest.mark.parametrize(
    "data",
    [
        msgpack.packb([SCHEMA + 1, []]),
        msgpack.packb([True, []]),
        msgpack.packb({"a": 1}),
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 5000,
        b"\xc7\x00\x01",
        GOOD + b"\x00",
    ],
    ids=["newer", "boolean", "map", "huge array", "deep", "extension", "trailing"],
)
def test_what_is_no_plan_is_refused(data):
    with pytest.raises(PlanError):
        from_bytes(data)


def test_a_longer_spelling_of_the_same_plan_is_refused():
    longer = bytes([0x92, 0xCC, GOOD[1]]) + GOOD[2:]  # the schema number in two bytes
    assert msgpack.unpackb(longer) == msgpack.unpackb(GOOD)
    with pytest.raises(PlanError, match="canonical"):
        from_bytes(longer)


def test_json_has_the_figures_and_names_the_operator_that_binds():
    graph = residual_net()
    result = plan(graph, make_target())
    view = to_json(result, graph)
    assert json.loads(json.dumps(view)) == view
    assert view["arena_bytes"] == result.arena_bytes and view["arena_bound_bytes"] == result.arena_bound_bytes
    assert view["f"] == 1.0 and view["macs"] == result.macs and view["image"] == "overwritable"
    assert view["binding"]["name"] == "#6 DEPTHWISE_CONV_2D"
    assert [o["kind"] for o in view["operators"]] == [str(op.kind) for op in graph.ops]
    assert len(view["buffers"]) == len(result.buffers) and len(view["regions"]) == len(result.regions)
    assert view["buffers"][0]["tensor_names"] == ["t0"]


def test_json_of_a_network_without_operators():
    from zeronet import Net

    net = Net((1, 4))
    graph = net.graph(net.inputs[0])
    view = to_json(plan(graph, make_target()), graph)
    assert view["arena_bytes"] == 16 and view["binding"]["operator"] == -1


@pytest.fixture(scope="module")
def planned():
    once = rewrite(efficient_net(24, blocks=2))
    target = load_target("host")
    twice = with_second_passes(once, [among[0] for among in gates(once, [None] * len(once.ops))])
    return once, twice, front(twice, target, Settings()).plan(0), target


def test_a_plan_says_what_runs_again(planned):
    once, twice, plan, target = planned
    assert plan.second_passes == twice.second_passes != ()
    check(plan, twice, target)
    assert plan.f > 1 and plan.macs_layerwise == front(once, target, Settings()).plan(0).macs_layerwise
    shown = to_json(plan, twice)["second_passes"]
    for one in shown:
        kinds = [[twice.ops[p].kind for p in one[key]] for key in ("operators", "first_run")]
        assert kinds[0] == kinds[1] and one["macs"] > 0
        assert one["operators"][-1] < one["reader"]


def test_the_checker_holds_it_against_the_network(planned):
    once, twice, plan, target = planned
    with pytest.raises(PlanError, match="topology"):
        check(plan, once, target)
    moved = tuple(SecondPass(one.first, one.last, one.reader + 1) for one in plan.second_passes)
    for wrong in (moved, ()):
        with pytest.raises(PlanError, match="second passes"):
            check(dataclasses.replace(plan, second_passes=wrong), twice, target)
    with pytest.raises(PlanError, match="MACs"):
        check(dataclasses.replace(plan, macs_layerwise=plan.macs), twice, target)
