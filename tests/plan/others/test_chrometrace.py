"""A plan's trace: valid in Chrome's Trace Event Format, as long as the plan's cost, and always equal."""

import functools
import itertools
import json

import pytest

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_or_read
from buildtool.fronts.cli import main as cli
from buildtool.plan.others import chrometrace
from buildtool.plan.summary.steps import plan_steps

SMALL = "mobilenetv2:size=32,alpha=0.35,classes=10"
# The fields that the format requires for an event of each phase.
_ANY = {"ph": str, "pid": int, "name": str, "args": dict}
KEYS = {
    "X": _ANY | {"tid": int, "ts": float, "dur": float, "cat": str},
    "C": _ANY | {"ts": float},
    "M": _ANY | {"tid": int, "ts": int},
}
NAMES = {"process_name": str, "process_sort_index": int, "thread_name": str, "thread_sort_index": int}


@functools.cache
def planned(board="xcore"):
    options = {"image": "stream", "objective": "ram"}
    request = parse({"kind": "plan", "model": SMALL, "board": board, "options": options})
    result = plan_or_read(request.model, request.target, request.options, None, Session())
    kernels = result.target.kernels_by_name(result.plan.kernels)
    return result, plan_steps(result.plan, result.graph, kernels, result.target.costs)


def events(clock=chrometrace.Clock()):  # noqa: B008
    result, steps = planned()
    found = chrometrace.trace(steps, result.plan, result.graph, clock, {"model": "m"})
    return json.loads(found.data)


def slices(content, kind=None):
    return [e for e in content["traceEvents"] if e["ph"] == "X" and (kind is None or e["cat"] == kind)]


@pytest.mark.parametrize("most", [chrometrace.MOST_SLICES, 60])
@pytest.mark.parametrize("nanoseconds", [1000.0, 1 / 0.6, 2.31])
def test_events_are_what_the_format_asks_for(monkeypatch, most, nanoseconds):
    monkeypatch.setattr(chrometrace, "MOST_SLICES", most)
    content = events(chrometrace.Clock(nanoseconds, "words"))
    assert set(content) == {"traceEvents", "displayTimeUnit", "otherData"}
    for event in content["traceEvents"]:
        assert {key: type(value) for key, value in event.items()} == KEYS[event["ph"]], event
        if event["ph"] == "M":
            (value,) = event["args"].values()
            assert type(value) is NAMES[event["name"]]
    by_track: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in slices(content):
        span = (round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
        by_track.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in by_track.values():  # slices of a thread are nested or disjoint
        spans.sort(key=lambda span: (span[0], -span[1]))
        above: list[int] = []
        for begin, end in spans:
            assert begin <= end
            while above and above[-1] <= begin:
                above.pop()
            assert not above or end <= above[-1]
            above.append(end)


def test_time_is_the_plans_cost_and_all_that_it_does_is_there():
    (result, steps), content = planned(), events()
    ends = [event["ts"] + event["dur"] for event in slices(content)]
    assert max(ends) == pytest.approx(result.plan.cost, abs=0.001)
    calls = [event for event in slices(content) if event["pid"] == 1 and "calls" in event["args"]]
    assert sum(event["args"]["calls"] for event in calls) == len(steps.cost)
    assert sum(event["args"]["cost"] for event in calls) == steps.cost.sum()
    loads = slices(content, "load")
    assert len(loads) == len(steps.loads) > 50
    assert sum(event["dur"] for event in loads) == pytest.approx(sum(x.cost for x in steps.loads), abs=0.1)
    assert len(slices(content, "region")) == len(result.plan.regions)
    counters = [e["args"]["bytes"] for e in content["traceEvents"] if e["ph"] == "C"]
    assert max(counters) == steps.live.max() and counters[-1] == 0
    assert all(a != b for a, b in itertools.pairwise(counters))


def test_each_buffer_is_a_track_from_its_first_to_its_last_step():
    (result, _), content = planned(), events()
    shown = {e["args"]["buffer"]: e for e in slices(content) if "buffer" in e["args"] and e["pid"] == 2}
    assert sorted(shown) == list(range(len(result.plan.buffers)))
    assert len({event["tid"] for event in shown.values()}) == len(shown)
    for position, buffer in enumerate(result.plan.buffers):
        args = shown[position]["args"]
        assert (args["offset"], args["bytes"]) == (buffer.offset, buffer.size)
        assert args["steps"] == [buffer.first, buffer.last]
    order = sorted(shown.values(), key=lambda event: event["tid"])
    assert [e["args"]["offset"] for e in order] == sorted(e["args"]["offset"] for e in order)


@pytest.mark.slow
def test_too_many_steps_are_merged_and_none_is_lost(monkeypatch):
    result, steps = planned("cortex-m55")
    shown = functools.partial(chrometrace.trace, steps, result.plan, result.graph, chrometrace.Clock(), {})
    full = shown()
    monkeypatch.setattr(chrometrace, "MOST_SLICES", full.slices // 3)
    few = shown()
    assert few.slices < full.slices // 2 and few.merged > full.merged
    for content in (json.loads(full.data), json.loads(few.data)):
        calls = [event for event in slices(content) if "calls" in event["args"]]
        assert sum(event["args"]["calls"] for event in calls) == len(steps.cost)
        assert sum(event["args"]["cost"] for event in calls) == steps.cost.sum()


def test_the_command_writes_the_plan_and_its_trace(tmp_path, capsys):
    """The bytes are those of a request."""
    trace, plan = tmp_path / "t.json", tmp_path / "p.plan"
    line = ["plan", "ds_cnn", "--board", "cortex-m4"]
    assert cli.run([*line, "--trace", str(trace), "--out", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())

    assert f"written: {trace}: 12 steps in 12 slices, 22 buffers, {trace.stat().st_size:,} bytes" in said
    (data,) = handle({"kind": "trace", "model": "ds_cnn", "board": "cortex-m4"})["files"].values()
    assert trace.read_bytes() == data and json.loads(data)["otherData"]["time"] in said
    assert cli.run([*line, "--trace", str(plan), "--out", str(plan)]) == 2
    assert cli.run(["plan", "ds_cnn", "--emit", "tflm", "--out", "x", "--trace", str(trace)]) == 2
