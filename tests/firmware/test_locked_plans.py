"""A plan that is kept beside the model is built as long as it is valid; otherwise the error says why."""

import dataclasses
import functools
import json
import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import own_board
from thinnets import thin_model

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError, PlanError, UsageError
from buildtool.fronts.cli.main import run
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.locked import from_text, to_text

NET, BOARD = "ds_cnn", "cortex-m4"
STREAMED = {"image": "stream", "ram": "12K"}


@functools.cache
def answered(kind):
    return handle({"kind": kind, "model": NET, "board": BOARD, "options": STREAMED})


def lock():
    return answered("plan")["locked"]


def by_plan(data, kind="emit", **more):
    request = {"kind": kind, "model": NET, "board": BOARD, "plan": {"name": "net.plan", "data": data}}
    return handle({**request, **more})


@pytest.mark.slow
def test_a_plan_that_removes_channels_serves_weights_that_need_none_of_them(tmp_path):
    model = {"name": "thin.tflite", "data": thin_model(NET)}
    plan = handle({"kind": "plan", "model": model, "board": "host"})["locked"]
    others = read_model(model["data"])
    moved = [  # other values in the channels that are constant
        dataclasses.replace(one, data=one.data - 1) if one.dtype == "int32" and one.data is not None else one
        for one in others.tensors
    ]
    path = tmp_path / "thin.tflite"
    path.write_bytes(write_model(dataclasses.replace(others, tensors=tuple(moved))))
    (tmp_path / "thin.plan").write_bytes(plan)
    own = handle({"kind": "plan", "model": str(path), "board": "host"})["locked"]
    assert from_text(own).plan.removed == from_text(plan).plan.removed
    asked = {"board": "host", "plan": str(tmp_path / "thin.plan"), "tensors": True, "kind": "validate"}
    assert handle({**asked, "model": str(path)})["exact"]
    needing = {"name": "thin.tflite", "data": thin_model(NET, seed=1)}
    with pytest.raises(
        PlanError, match=r"removes \d+ channels .the first is 1. that cannot be removed with"
    ) as caught:
        handle({**asked, "model": needing})
    assert caught.value.tensor == "stem"
    all_channels = handle(
        {"kind": "plan", "model": model, "board": "host", "options": {"simplify": "structure"}}
    )
    (tmp_path / "thin.plan").write_bytes(all_channels["locked"])
    assert handle({**asked, "model": needing})["exact"]


@pytest.mark.parametrize("removed", [[{"tensor": 999, "channels": [0]}], [{"tensor": 3, "channels": [-1]}]])
def test_channels_that_the_network_does_not_have_are_refused(removed):
    content = json.loads(lock())
    content["plan"]["removed"] = removed
    with pytest.raises(PlanError, match="the plan is for another network"):
        by_plan(json.dumps(content).encode())


# ---- other boards and versions -----------------------------------------------------------------------


def test_a_board_of_other_figures_builds_the_same_and_one_of_less_memory_refuses(tmp_path):
    files = by_plan(lock(), board=own_board(tmp_path, "stack_bytes = 3072"))["files"]
    assert files["ds_cnn.c"] == answered("emit")["files"]["ds_cnn.c"]
    with pytest.raises(PlanError, match="the arena requires"):
        by_plan(lock(), board=own_board(tmp_path, "reserved_bytes = 8380000", name="small"))


def test_a_board_without_a_kernel_refuses():
    words = "is not valid on board 'cortex-m55' .it was made for 'cortex-m4'.: .* no kernel 'conv2d_dsp'"
    with pytest.raises(PlanError, match=words) as caught:
        by_plan(lock(), board="cortex-m55")
    assert caught.value.path == "net.plan"
    assert caught.value.operator


def test_another_network_is_told_by_its_first_operator_that_differs():
    words = "operator 0 is CONV_2D 1x32x32x16 .*, but CONV_2D 1x25x5x64 .* in the plan's network"
    with pytest.raises(PlanError, match=words):
        by_plan(lock(), model="resnet8")


# ---- limits and options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ram": "11K"}, "arena requires 11,840 bytes, 11,264 are allowed: 576 too many"),
        ({"max_cost": 1000}, r"cost was .* cycles \(.* ms\), 1,000 cycles \(0.04 ms\) is allowed"),
        ({"max_ms": 0.04}, r"cost was .* cycles \(.* ms\), 1,000 cycles \(0.04 ms\) is allowed"),
        ({"max_flash": "1K"}, "1,024 are allowed"),
        ({"image": "resident"}, "has image stream, but the request says resident"),
        ({"image": "overwritable"}, "has image stream, but the request says overwritable"),
    ],
)
def test_a_plan_beyond_what_is_asked_for_is_refused(options, words):
    with pytest.raises(PlanError, match=words):
        by_plan(lock(), options=options)


@pytest.mark.parametrize(
    ("option", "value"),
    {"objective": "ram", "strategy": "best", "order": "best", "in_place": "none", "hand_off": "row"}.items(),
)
def test_options_that_would_make_a_plan_are_refused(option, value):
    with pytest.raises(UsageError, match="it has no effect, because the plan is given") as caught:
        by_plan(lock(), options={option: value})
    assert caught.value.option == option


# ---- files that are not plans ------------------------------------------------------------------------


def by_edited(edit):
    content = json.loads(lock())
    edit(content)
    return by_plan(json.dumps(content).encode())


def test_a_plan_of_a_later_version_is_refused_with_both_numbers():
    with pytest.raises(PlanError, match="schema 7: this version of buildtool reads schema 1"):
        by_edited(lambda content: content.update(schema=7))


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_damaged_files_are_refused_or_other_plans(data):
    good = lock()
    start = data.draw(st.integers(0, len(good) - 1))
    end = data.draw(st.integers(start, min(len(good), start + 40)))
    bad = good[:start] + data.draw(st.binary(max_size=3)) + good[end:]
    try:
        locked = from_text(bad)
    except PlanError:
        return
    assert from_text(to_text(locked)) == locked


@pytest.mark.parametrize(
    "bad",
    [
        b"{}",
        b"{",
        b"{" * 100_000,
        b'{"format": "buildtool locked plan"}',
        b'{"format": "buildtool locked plan", "schema": true}',
        b'{"format": "buildtool locked plan", "schema": 1, "board": "a", "operators": [], "plan": []}',
        b'{"format": "buildtool locked plan", "schema": 1, "board": "a", "operators": [1], "plan": {}}',
        b'{"format": "buildtool locked plan", "schema": 1, "board": "a", "operators": [], "plan": {"x": 1}}',
    ],
)
def test_what_is_no_plan_is_refused(bad):
    with pytest.raises(PlanError, match=r"not a (locked )?plan|has schema") as caught:
        by_plan(bad)
    assert caught.value.path == "net.plan"


def test_a_plan_that_lies_is_found_out():
    """Two buffers are alive at the same time in the same place."""
    with pytest.raises(BuildtoolError, match="is not valid"):
        by_edited(lambda content: [one.update(offset=0) for one in content["plan"]["buffers"]])


def test_the_command_writes_the_file_and_builds_by_it(tmp_path, capsys):
    out, folder = tmp_path / "net.plan", tmp_path / "src"
    words = [NET, "--board", BOARD]
    assert run(["plan", *words, "--image", "stream", "--ram", "12K", "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    assert out.read_bytes() == lock()
    assert run(["emit", *words, "--plan", str(out), "--out", str(folder)]) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == answered("emit")["files"]
    assert run(["emit", *words, "--plan", str(out), "--out", str(folder), "--ram", "1K"]) == 1
    assert f"{out}: error: the plan's arena requires" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "wrong"),
    [
        (["--ram", "20K"], ["--image", "stream", "--ram", "12K"]),
        (["--board", "hifive1", "--image", "stream"], []),  # a board without these kernels
        (None, ["--max-f", "1.2"]),  # no plan at all
    ],
)
def test_the_command_of_the_hint_makes_a_plan_that_is_taken(tmp_path, monkeypatch, capsys, before, wrong):
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run(["zoo", NET, "--out", "."]) == 0
    words = ["plan", f"{NET}.tflite", "--board", BOARD]
    if before is None:
        (folder / "my net.plan").write_bytes((folder / f"{NET}.tflite").read_bytes())
    else:
        assert run([*words, *before, "--out", "my net.plan"]) == 0
    capsys.readouterr()
    assert run([*words, *wrong, "--plan", "my net.plan"]) == 1
    (command,) = re.findall("buildtool (plan .*)", capsys.readouterr().err)
    pasted = shlex.split(command)
    assert run(pasted) == 0
    assert run([*words, *wrong, "--plan", pasted[-1]]) == 0


EVIL = '*/\n#error "evil'


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda plan: plan.update(strategy=EVIL), "text that cannot be shown"),
        (lambda plan: plan.update(strategy="best */ x /*"), "text that cannot be shown"),
        (lambda plan: plan.update(accounting=["\x1b[2J"]), "text that cannot be shown"),
        (lambda plan: plan["buffers"][0].update(name=EVIL), "text that cannot be shown"),
        (lambda plan: plan["overlaps"][0].update(output=1 << 31), "names buffers 1 and 2147483648 of"),
        (lambda plan: plan["overlaps"][0].update(input=-1), "names buffers -1 and 2 of"),
        (lambda plan: plan.update(arena_bound_bytes=1 << 40), "lower bound is 1099511627776"),
        (lambda plan: plan.update(arena_bound_bytes=-1), "lower bound is -1"),
    ],
)
def test_a_plan_edited_by_hand_brings_no_code_and_no_crash(edit, words):
    """Fields that the replay of a streamed plan does not check, and fields that are only for people."""
    with pytest.raises(PlanError, match=words):
        by_edited(lambda content: edit(content["plan"]))


@pytest.mark.parametrize(
    ("old", "new", "words", "line"),
    [
        (b"{\n", b"<<<<<<< ours\n{\n", "it is not JSON", 1),
        (b' "plan": {\n', b' "plan": {\n=======\n', "it is not JSON", 21),
        (b'  "strategy"', b'  "arena_bytes": 64,\n  "strategy"', "'arena_bytes' twice", 0),
    ],
)
def test_what_a_merge_leaves_is_told_by_its_line(old, new, words, line):
    with pytest.raises(PlanError, match=words) as caught:
        by_plan(lock().replace(old, new, 1))
    assert (caught.value.path, caught.value.line) == ("net.plan", line)
