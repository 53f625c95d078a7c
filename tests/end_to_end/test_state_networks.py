"""Networks with state on firmware: each invoke of a sequence equals LiteRT's, and a reset begins anew.

They run natively, under sanitizers, as one program; arenas are full of junk before every invoke, so nothing
lives there. Of a keyword spotter the whole road is gone as well, on an emulated core.
"""

import json

import numpy as np
import pytest
import statenets
from loaded import load_target
from nativebatch import LAYERWISE, TARGET, differences, prepare, run

from buildtool.api.requests import parse
from buildtool.firmware.datasets.arrays import sequences
from buildtool.firmware.run.dataset import choose_sequences
from buildtool.firmware.run.judge import Judge
from buildtool.fronts.cli.main import run as command
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.codec import from_bytes, to_bytes

PATTERNS = ("random", "extremes", "random", "random", "random", "extremes")
WAYS = {
    "whole": LAYERWISE,
    "least": PlanOptions(objective="ram", image="resident"),
    "ordered": PlanOptions(objective="ram", order="best"),
}


@pytest.mark.slow
def test_every_form_of_state_is_exact_in_sequences_with_a_reset_in_the_middle(tmp_path):
    jobs = []
    for seed, make in enumerate(statenets.MAKERS, 7):
        graph = make(7)
        for way in ("whole", ("least", "ordered")[seed % 2]):
            name = f"{graph.name}_{way}"
            jobs.append(prepare(graph, name, options=WAYS[way], seed=seed, patterns=PATTERNS))
    jobs.append(prepare(read_model(statenets.wide_ring_file()), "wide", patterns=PATTERNS))
    assert any(region.is_streamed for job in jobs for region in job.plan.regions)
    for job, runs in zip(jobs, run(jobs, tmp_path), strict=True):
        assert from_bytes(to_bytes(job.plan)) == job.plan
        assert differences(job, runs) == []


def test_state_is_beside_the_arena_and_in_no_part_of_it():
    job = prepare(statenets.keyword_stream(7), "stream")
    plan, board = job.plan, load_target(TARGET).board
    sizes = [job.graph.tensors[s.before].size for s in job.graph.states]
    assert [b.size for b in plan.states] == sizes and all(sizes)
    assert plan.state_bytes == sum(-(-size // board.alignment) * board.alignment for size in sizes)
    assert not {t for b in plan.buffers for t in b.tensors} & {t for b in plan.states for t in b.tensors}
    text = job.sources.files["stream.c"].decode()
    assert "static int8_t stream_state[STREAM_STATE_BYTES]" in text and "memmove" not in text
    assert f"#define STREAM_STATE_BYTES {plan.state_bytes}\n" in job.sources.files["stream.h"].decode()


@pytest.mark.slow
def test_a_keyword_spotter_goes_the_whole_road_on_an_emulated_core(tmp_path, capsys):
    model = tmp_path / "stream.tflite"
    model.write_bytes(write_model(statenets.windows(7)))
    asked = ["--board", "cortex-m4", "--tensors", "--reference", "litert", "--objective", "ram", "--json"]
    assert command(["validate", str(model), *asked]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["exact"] and (answer["inputs"], answer["resets"]) == (8, 1)
    assert answer["state_bytes"] == 48 + 64 + 32  # 6x6, 5x2x5 and 7x1x4, each a multiple of 16


@pytest.mark.slow
def test_inputs_of_a_data_set_stand_by_themselves_unless_they_are_said_to_be_a_sequence(
    tmp_path, capsys, monkeypatch
):
    model, data = tmp_path / "ring.tflite", tmp_path / "rows.npz"
    model.write_bytes(statenets.ring_file())
    np.savez(data, x=np.arange(21, dtype=np.int8).reshape(7, 1, 1, 3))
    resets, refer = [], Judge.refer
    monkeypatch.setattr(Judge, "refer", lambda j, x, reset: resets.append(reset) or refer(j, x, reset))
    for sequence, begins in (("1", range(7)), ("3", (0, 3, 6)), ("all", (0,))):
        asked = ["--board", "host", "--data", str(data), "--sequence", sequence, "--reference-only"]
        assert command(["validate", str(model), *asked, "--reference", "litert", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["inputs"] == 7
        assert resets == [at in begins for at in range(7)]
        resets.clear()
    made = parse({"kind": "validate", "model": str(model), "board": "host", "sequence": 3, "inputs": 7})
    graph = read_model(model.read_bytes())
    assert sequences(graph, 7, made.sequence) == [at in (3, 6) for at in range(7)]
    assert choose_sequences(7, 4, 0, 3) in ([0, 1, 2], [3, 4, 5], [6])
    assert choose_sequences(7, None, 0, 3) == list(range(7))
