"""Networks over 16,000 samples as firmware: they stream sample by sample, or hop by hop, equal to LiteRT."""

import json

import pytest
from boardruns import file_of, validated
from kerasseries import speech

from buildtool.api import handle
from buildtool.fronts.cli.main import run as command
from buildtool.zoo.drawn_series import SERIES

LEAST = {"image": "stream", "objective": "ram"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "samples"),
    [
        ("host", 4000),
        pytest.param("host", 160_000, marks=pytest.mark.slow),
        pytest.param("cortex-m4", 16000, marks=pytest.mark.slow),
    ],
)
def test_a_signal_streams_sample_by_sample(board, samples, tmp_path):
    answer = validated(file_of(speech(samples), tmp_path), board, LEAST)
    assert answer["arena_bytes"] < 1024


@pytest.mark.parametrize("objective", ["cost", "ram"])
def test_a_streamed_signal_comes_in_the_same_rows_whatever_the_plan(objective, tmp_path):
    options = {"image": "stream", "objective": objective}
    request = {"kind": "emit", "model": file_of(speech(), tmp_path), "board": "cortex-m4", "options": options}
    assert "#define NET_ROWS 8000\n#define NET_ROW_BYTES 2\n" in handle(request)["files"]["net.h"].decode()


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "cortex-m4"])
def test_a_signal_in_hops_equals_whole_windows(board, tmp_path):
    model, hops = file_of(SERIES["samples"]().graph, tmp_path), 60  # the first 50 fill the window
    validated(model, board, {"hop": 320}, inputs=hops)


@pytest.mark.slow
def test_signals_are_turned_only_where_that_pays(tmp_path, capsys):
    model, plan = file_of(speech(), tmp_path), tmp_path / "net.plan.json"
    asked = {"kind": "plan", "model": model, "board": "cortex-m55"}
    fast = handle(asked)
    least = handle({**asked, "options": {"objective": "ram"}})
    assert least["arena_bytes"] < fast["arena_bytes"] / 3 and fast["cost"] < least["cost"]
    locked = ["--board", "cortex-m55", "--ram", str(least["arena_bytes"]), "--out", str(plan), "--json"]
    assert command(["plan", model, *locked]) == 0
    assert json.loads(capsys.readouterr().out)["arena_bytes"] == least["arena_bytes"]
    assert command(["plan", model, "--board", "cortex-m55", "--plan", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arena_bytes"] == least["arena_bytes"]
