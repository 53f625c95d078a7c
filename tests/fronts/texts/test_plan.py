"""The text of a plan: its contents, its sums, and its width."""

from __future__ import annotations

import copy
import json
import re
from functools import cache

import pytest

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.fronts.texts import plan, profile
from buildtool.fronts.texts.regions import runs
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Pad
from buildtool.zoo.drawn import NetBuilder

WIDTH = 110
SESSION = Session()  # one search for all requests about a network
STREAMED = {"image": "stream", "objective": "ram", "max_f": 1.1}


@cache
def answer_json(model="mcunet_vww5", board="cortex-m4", compare=False, **options):
    request = {"kind": "plan", "model": model, "board": board, "compare": compare, "options": options}
    answer = handle(request, SESSION)
    return json.dumps({key: value for key, value in answer.items() if not isinstance(value, bytes)})


def planned(**asked):
    return json.loads(answer_json(**asked))


def block(text, head):
    """Returns the lines of a table, from the line that begins with `head` to the next empty line."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head))
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return lines[start:end]


@pytest.mark.slow
def test_the_answers_sums_are_the_plans():
    answer = planned(**STREAMED)
    regions, peak = answer["regions"], answer["peak"]
    assert sum(region["macs"] for region in regions) == answer["macs"]
    assert sum(region["macs_once"] for region in regions) == answer["macs_layerwise"]
    assert sum(region["cost"] for region in regions) == pytest.approx(answer["cost"])
    assert answer["f"] == answer["macs"] / answer["macs_layerwise"] > 1
    assert sum(peak["parts"].values()) - peak["shared_bytes"] == peak["live_bytes"]
    assert peak["live_bytes"] == max(region["live_bytes"] for region in regions)
    assert regions[peak["region"]]["live_bytes"] == peak["live_bytes"]
    assert answer["placement"]["lost_bytes"] == answer["arena_bytes"] - peak["live_bytes"] >= 0
    assert answer["binding"]["live_bytes"] == peak["live_bytes"] <= answer["arena_bytes"]
    assert [op for region in regions for op in region["operators"]] == [
        op["position"] for op in answer["operators"] if op["kernel"]
    ]


def test_the_tables_numbers_are_the_answers():
    answer = planned(**STREAMED)
    text = plan.text(answer)
    repeated = [
        int(line.split()[-4].replace(",", ""))
        for line in block(text, "region  layers")[2:]
        if line.rstrip().endswith("%")
    ]
    assert sum(repeated) == answer["macs"] - answer["macs_layerwise"]
    for run, line in zip(runs(answer["regions"]), block(text, "Bytes live in")[3:], strict=True):
        live = max(region["live_bytes"] for region in answer["regions"][run.first : run.last + 1])
        _, first, share, *parts = re.split(" {2,}", line)
        assert (first, share) == (f"{live:,}", f"{100 * live / answer['arena_bytes']:.0f} %")
        assert sum(int(part.replace(",", "")) for part in parts) == live  # shared bytes are negative


@pytest.mark.slow
def test_a_plan_within_a_limit_that_is_not_on_the_front_says_so_and_why():
    answer = planned(image="stream", ram=12 * 1024)
    point = answer["front_point"]
    front = handle(
        {"kind": "front", "model": answer["model"], "board": answer["board"], "options": {"image": "stream"}}
    )
    assert point in [{name: one[name] for name in point} for one in front["points"]]
    assert point["arena_bytes"] <= answer["arena_bytes"] and point["f"] <= answer["f"]
    assert point["cost"] > answer["cost"]
    text = plan.text(answer)
    assert f"not on it: F {point['f']:.3f} is possible in {point['arena_bytes']:,} bytes, at 1." in text
    answer = planned(image="stream", objective="ram")
    assert answer["front_point"] is None and "not on it" not in plan.text(answer)


@pytest.mark.slow
def test_weights_that_bind_are_named():
    answer = planned(board="xcore", objective="ram", max_f=1.1)
    text = plan.text(answer)
    peak = answer["peak"]
    assert peak["weights_bind"] == (peak["live_bytes_without_weights"] < peak["live_bytes"]) is True
    assert f"their buffers bind: everything else takes {peak['live_bytes_without_weights']:,} bytes" in text
    assert f"weights {peak['parts']['weights']:,}" in text
    assert "buffers bind" not in plan.text(planned(**STREAMED))


@pytest.mark.slow
def test_other_strategies_stand_beside_with_what_they_reach_themselves():
    answer = planned(compare=True, **STREAMED)
    text = plan.text(answer)
    rows = {(row["strategy"], row["setting"]): row for row in answer["beside"]}
    assert ("layerwise", "no work repeated") in rows
    for strategy in ("msf-cnn", "xcore-strips"):
        least = rows[strategy, "least arena found"]
        own = planned(image="stream", strategy=strategy)
        assert (least["arena_bytes"], least["f"]) == (own["arena_bytes"], own["f"])
        within = rows[strategy, f"F <= {answer['f']:.3f}"]
        assert within["f"] <= answer["f"] + 1e-9 and within["arena_bytes"] >= answer["arena_bytes"]
        ours = rows["best", f"F <= {least['f']:.3f}"]
        assert ours["f"] <= least["f"] + 1e-9 and ours["arena_bytes"] <= least["arena_bytes"]
    for row in answer["beside"]:
        assert row["ratio"] == row["arena_bytes"] / answer["arena_bytes"]
        assert f"{row['arena_bytes']:,}" in text and f"{row['ratio']:.2f}" in text


def test_lines_stay_within_the_width_whatever_layers_are_called():
    for request in (STREAMED, {"board": "xcore", "objective": "ram", "max_f": 1.1}):
        answer = planned(**request)
        renamed = copy.deepcopy(answer)
        for op in renamed["operators"]:
            op["name"] = f"a_network/of_{op['position']}/" + "very_long_words/" * 6 + "Relu6;and/another"
        for b in renamed["buffers"]:
            b["tensor_names"] = ["x" * 90 for _ in b["tensor_names"]]
        for text in (plan.text(answer), plan.text(renamed)):
            assert max(map(len, text.splitlines())) <= WIDTH


def test_a_network_of_hundreds_of_layers_stays_within_the_width():
    answer = planned(**STREAMED)
    last = answer["regions"][-1]
    answer["regions"] += [{**last, "live_bytes": n} for n in range(500)]
    text = plan.text(answer)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert len(text.splitlines()) < 200


@pytest.mark.slow
def test_a_profiles_work_is_the_plans():
    request = {"model": "ds_cnn", "board": "host", "options": {"objective": "ram", "max_f": 1.5}}
    answer = handle({"kind": "profile", **request})
    plan_answer = handle({"kind": "plan", **request})
    assert answer["macs"] == plan_answer["macs"] == sum(row["macs"] for row in answer["per_operator"])
    assert answer["macs_layerwise"] == sum(row["macs_once"] for row in answer["per_operator"])
    calls = sum(row["calls"] for row in answer["per_operator"])
    assert calls == sum(region["calls"] for region in plan_answer["regions"])
    alive = max(row["ram_alive"] for row in answer["per_operator"])
    assert alive == plan_answer["peak"]["live_bytes"] and answer["exact"]
    text, once = profile.text(answer), f"the {answer['macs_layerwise']:,} of the network run layer by layer"
    assert answer["f"] > 1.0005 and f"F {answer['f']:.3f} times {once}" in text
    assert re.search(rf"total .* {answer['macs']:,}  {answer['f']:.3f}", text)
    for row in answer["per_operator"]:
        assert re.search(rf"{row['name']} .* {row['macs']:,}  {row['f']:.3f}", text) or row["f"] == 1


def test_layers_on_plain_kernels_are_named_with_their_share(tmp_path):
    net = NetBuilder(0)
    x = net.conv(net.input((1, 16, 16, 3)), 8, kernel=(3, 3), stride=(2, 2), pad=Pad(0, 1, 0, 1))
    bent = net.prelu(x, (1, 1, 8))
    (tmp_path / "net.tflite").write_bytes(write_model(net.graph([net.conv(bent, 4)])))
    answer = planned(model=str(tmp_path / "net.tflite"), strategy="layerwise")
    plain = answer["plain"]
    assert [answer["operators"][i]["kind"] for i in plain["operators"]] == ["PRELU"]
    region = next(r for r in answer["regions"] if r["operators"] == plain["operators"])
    assert plain["cost_share"] == pytest.approx(region["cost"] / answer["cost"])
    line = next(line for line in plan.text(answer).splitlines() if line.startswith("plain "))
    share = f"{100 * plain['cost_share']:.1f} % of the cost"
    assert f"1 of 3 operators on plain kernels, which use no special instructions, {share}" in line
    assert planned(model=str(tmp_path / "net.tflite"), board="hifive1")["plain"] is not None
    assert planned(model=str(tmp_path / "net.tflite"), board="host")["plain"] is None  # it has no others
