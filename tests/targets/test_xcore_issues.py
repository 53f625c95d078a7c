"""Issues counted in the model of the vector unit: for programs with known counts, and in profiles."""

import random
import re
import subprocess
from functools import cache
from types import SimpleNamespace

import pytest
from buildtool_plugins.xcore import ISSUES_FLAGS, ISSUES_SOURCE, parse_issues
from loaded import own_board
from needs import needs_shared, needs_tool

from buildtool.api import handle
from buildtool.base.errors import PlanError, TargetError
from buildtool.base.session import Session
from buildtool.firmware.run.profiling import beside_published
from buildtool.fronts.cli import main as cli
from buildtool.fronts.texts import profile as report
from buildtool.graph.tflite.writer import write_model
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board
from buildtool.target.types import Issues
from buildtool.zoo.drawn import NetBuilder

ROOT = kernels_root()
NETWORK = "resnet8"
IN_STRIPS = "mobilenetv2:size=32,alpha=0.35,classes=10"
MODEL = "models/mobilenetv2_160.tflite"  # in ../shared
# xcore-opt 1.4.2 on MobileNetV2-160, weights loaded from flash into the arena.
XCORE_OPT = {"0-14x10": 286928, "0-6x8,7-14x4,15-26x2": 255144, "0-6x20,7-14x10,15-22x4": 234728}
SESSION = Session()  # for all requests, which share computed plans
LAYERWISE = {"strategy": "layerwise"}
STRIPS = {"strategy": "xcore-strips"}
LEAST_RAM = {"strategy": "layerwise", "objective": "ram"}
slow = pytest.mark.slow


def ask(kind, **fields):
    request = {"kind": kind, "model": NETWORK, "board": "xcore", "options": {}, **fields}
    return handle(request, SESSION)


def exact(**fields):
    """Returns the answer to a validation; asserts that outputs, or tensors, equal the reference."""
    answer = ask("validate", **fields)
    assert answer["exact"], answer["first_difference"]
    return answer


PROGRAM = """\
#include "nn_parallel.h"
#include "nn_profile.h"
#include "nn_vpu.h"

/* A piece's context: its own numbers of accumulations and of other issues. */
typedef struct {{ int32_t macs[5], others[5]; }} work;

static void piece(const void *context, int32_t which) {{
    static int8_t data[32] NN_VPU_ALIGNED;
    const work *const one = context;
    nn_vpu v;
    nn_vpu_vsetc(&v, NN_VPU_S8);
    nn_vpu_vclrdr(&v);
    nn_vpu_vldc(&v, data);
    for (int32_t i = 0; i < one->macs[which]; i++) {{
        nn_vpu_vlmaccr(&v, data);
    }}
    NN_VPU_MAC(one->macs[which]);
    NN_VPU_SCALAR(one->others[which]);
}}

int main(void) {{
    NN_MARK_INVOKE_BEGIN();
{calls}
    NN_MARK_INVOKE_END();
    return 0;
}}
"""


def operators(seed):
    """Maps an operator to its calls: outer scalar issues, then pieces of (accumulations, other issues)."""
    chance = random.Random(seed)
    numbers = chance.sample(range(200), 6)
    return {
        number: [
            (chance.randint(0, 9), [(chance.randint(0, 50), chance.randint(0, 50)) for _ in range(count)])
            for count in (chance.randint(1, 5) for _ in range(chance.randint(1, 3)))
        ]
        for number in numbers
    }


def as_c(calls_of):
    lines = []
    for number, calls in calls_of.items():
        lines.append(f"NN_MARK_BEGIN({number});")
        for outside, pieces in calls:
            macs, others = ("{" + ", ".join(str(p[i]) for p in pieces) + "}" for i in (0, 1))
            lines.append(f"NN_VPU_SCALAR({outside});")
            lines.append(
                f"{{ const work one = {{{macs}, {others}}}; nn_parallel(piece, &one, {len(pieces)}); }}"
            )
        lines.append("NN_MARK_END();")
    return PROGRAM.format(calls="\n".join(lines))


START = 3  # issues of a piece before its loop: VSETC, VCLRDR, VLDC


def expected(calls):
    threads = [[START + macs + others for macs, others in pieces] for _, pieces in calls]
    return Issues(
        vpu=sum(START + macs for _, pieces in calls for macs, _ in pieces),
        mac=sum(macs for _, pieces in calls for macs, _ in pieces),
        scalar=sum(outside + sum(others for _, others in pieces) for outside, pieces in calls),
        slowest=sum(outside for outside, _ in calls) + sum(map(max, threads)),
    )


def test_the_firmware_counts_what_the_threads_of_every_operator_issue(tmp_path):
    calls_of = operators(1)
    source = tmp_path / "program.c"
    source.write_text(as_c(calls_of))
    includes = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'xcore_vpu'}"]
    flags = ("-std=gnu99", "-Wall", "-Werror", *ISSUES_FLAGS, "-DNN_THREADS=5", *includes)
    command = [needs_tool("gcc"), *flags, ISSUES_SOURCE, source, "-o", tmp_path / "program"]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "program"], cwd=tmp_path, check=True)
    issues = parse_issues((tmp_path / "issues.txt").read_bytes())
    assert issues == {number: expected(calls) for number, calls in calls_of.items()}


@slow
def test_a_profile_counts_operators_of_the_vector_unit_and_says_why_others_are_not():
    answer = ask("profile", options=LAYERWISE, toolchain="clang")
    assert answer["exact"] and (answer["level"], answer["level_text"]) == ("model", "model on the host")
    issues, board = answer["issues"], load_board("xcore")
    assert issues["source"] == "counted in a model of the VPU" and issues["limit_per_mac"] == 1 / 32
    assert (issues["cycles_per_issue"], issues["clock_hz"], issues["threads"]) == (5, board.clock_hz, 5)
    rows = answer["per_operator"]
    for row in rows:
        assert (row["issues"] is None) == bool(row["uncounted"])
        own = row["issues"]
        if own is not None:
            assert own["slowest"] <= own["vpu"] + own["scalar"] <= 5 * own["slowest"]
            assert own["seconds"] == own["slowest"] * 5 / board.clock_hz
            assert row["macs"] == 0 or own["vpu_per_mac"] >= 1 / 32
    assert issues["operators"] == sum(row["issues"] is not None for row in rows)
    text = report.text(answer)
    assert "issues are counted in a model of the VPU" in text
    some = 0 < issues["operators"] < issues["all_operators"]
    assert ("not counted: #" in text) == some and ("x limit" in text) == (issues["operators"] > 0)


def test_a_published_profile_stands_beside_the_network_it_is_of_and_no_other():
    published = load_board("xcore").published
    assert published.milliseconds == 169.86
    # The note's lines do not add up to its total: the rest is not message.
    assert 0 < published.milliseconds - sum(part.milliseconds for part in published.parts) < 0.5
    rows = [
        {"operator": "CONV_2D", "macs": 2_150_000, "issues": {"seconds": 0.25}},
        {"operator": "CONV_2D", "macs": 2_150_000, "issues": {"seconds": 0.5}},
        {"operator": "MEAN", "macs": 0, "issues": None},
    ]
    plan = SimpleNamespace(macs_layerwise=published.macs)
    network = SimpleNamespace(target=SimpleNamespace(board=load_board("xcore")), plan=plan)
    estimate = {"macs_per_second": 2_150_000_000, "load_seconds": 0.125, "total_seconds": 1.0}
    comparison = beside_published(network, rows, estimate)
    lines = {line["name"]: line for line in comparison["lines"]}
    assert lines["convolutions"]["counted"] == 0.75 and lines["convolutions"]["estimated"] == 0.002
    assert lines["loading weights"]["estimated"] == 0.125 and lines["mean"]["counted"] is None
    text = "\n".join(report._published_rows(comparison))
    assert "not in this plan: padding, padding of 3 channels to 4, add" in text
    assert re.search(r"convolutions +91\.34 +2\.00 +750\.00\n", text)
    assert re.search(r"all +169\.86 +1000\.00", text)
    network.plan.macs_layerwise += 1
    assert beside_published(network, rows, estimate) is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[vector_unit]\nmacs = 0", "vector_unit.macs: must be a number above 0, not 0"),
        ("[vector_unit]\ncycles = 2.5", "vector_unit.cycles: must be a whole number, not 2.5"),
        ("[vector_unit]\nmac = 1", "unknown key 'vector_unit.mac'"),
        ("[published]\nmilliseconds = nan", "published.milliseconds: must be a number above 0, not nan"),
        ("[published]\npart = 5", "published.part: must be a list of tables"),
        ("[[published.part]]\nname = 'x'\noperators = []", "key 'published.part.milliseconds' is missing"),
        ("[[published.part]]\nname = 'x'\noperators = 'ADD'\nmilliseconds = 1", "published.part.operators"),
    ],
)
def test_mistakes_in_a_boards_file_are_named(tmp_path, lines, message):
    with pytest.raises(TargetError, match=re.escape(message)):
        load_board(own_board(tmp_path, lines, "xcore"))


# ---- the family --------------------------------------------------------------------------------------


@cache
def least():
    """The least arena with constants in it."""
    return ask("plan", options=LEAST_RAM)["arena_bytes"]


@slow
def test_constants_that_come_early_or_late_give_the_same_bytes():
    """The harness copies when asked in one set and when waited for in the next."""
    options = {**STRIPS, "segments": "0-6x8,7-14x4", "image": "stream"}
    answer = exact(model=IN_STRIPS, inputs=2, tensors=True, reference="litert", options=options)
    assert (answer["level"], answer["level_text"]) == ("simulator", "simulator, ours")
    assert answer["arena_high_water"] <= answer["arena_bytes"]


@slow
def test_slices_give_the_same_bytes_in_the_least_arena():
    options = {**LAYERWISE, "ram": least()}
    assert ask("plan", options=options)["loading"]["in_slices"] > 0
    assert exact(inputs=2, tensors=True, options=options)["arena_bytes"] <= least()


@pytest.mark.slow
def test_a_limit_below_the_least_says_what_is_needed():
    for ram, message in ((least() - 16, "the arena requires"), (10000, "the limit is 10,000")):
        with pytest.raises(PlanError, match=message):
            ask("plan", options={**LEAST_RAM, "ram": ram})


def test_the_answer_says_what_was_estimated_and_what_runs_here(capsys):
    assert cli.run(["plan", NETWORK, "--board", "xcore", "--strategy", "layerwise"]) == 0
    text = capsys.readouterr().out
    assert "estimated time:" in text and "fitted to one published profile" in text
    assert "What runs here is the chip's instructions, in a simulator of ours" in " ".join(text.split())
    assert "weights are loaded:" in text
    answer = ask("plan", options=LAYERWISE)
    estimate = answer["estimate"]
    assert estimate["compute_seconds"] == answer["macs"] / 2_150_000_000
    both = estimate["compute_seconds"] + estimate["load_seconds"]
    longer = max(estimate["compute_seconds"], estimate["load_seconds"])
    assert longer <= estimate["total_seconds"] <= both * 1.0001


@slow
def test_vx4_is_scalar_risc_v_code_in_an_emulator():
    answer = exact(model="ds_cnn", board="vx4", options=LAYERWISE)
    assert answer["level"] == "emulator"
    assert "xm.* instructions are not used" in answer["note"] and "nominal" in answer["note"]


@slow
@pytest.mark.parametrize(
    "segments", [pytest.param(s, marks=[] if s.startswith("0-14") else [slow]) for s in XCORE_OPT]
)
def test_no_more_memory_than_xcore_opt_with_the_weights_in_it(segments):
    options = {**STRIPS, "segments": segments, "objective": "ram"}
    assert ask("plan", model=str(needs_shared(MODEL)), options=options)["arena_bytes"] <= XCORE_OPT[segments]


@slow
@pytest.mark.parametrize("requantise", ["exact", "vpu16"])
def test_narrow_slices_give_the_same_bytes(requantise, tmp_path):
    """Slices of the largest layers have fewer channels than two groups of the unit: one, or half a group."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 9, 7, 24)), 64)
    path = tmp_path / "narrow.tflite"
    path.write_bytes(write_model(net.graph([net.conv(net.conv(x, 96), 32)])))
    request = {"model": str(path), "requantise": requantise}
    least = ask("plan", options=LEAST_RAM, **request)["arena_bytes"]
    for options, widths in ((LEAST_RAM, {1}), ({**LAYERWISE, "ram": least + 1024}, {8, 16})):
        answer = ask("plan", options=options, **request)
        assert {load["channels"] for load in answer["loads"]} & widths
        answer = ask("validate", inputs=2, tensors=True, options=options, **request)
        assert answer["exact"] or (requantise == "vpu16" and answer["within_bounds"])


@slow
def test_an_arena_smaller_than_the_image_s_header_is_enough(tmp_path):
    """The header is checked as it is read, and needs no room in the arena."""
    net = NetBuilder(1)
    path = tmp_path / "tiny.tflite"
    path.write_bytes(write_model(net.graph([net.mean(net.input((1, 2, 2, 3)))])))
    answer = exact(model=str(path))
    assert answer["arena_bytes"] < 64 and answer["loading"]
