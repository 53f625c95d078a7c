"""`import buildtool`: the command line's answers as objects, for scripts and notebooks."""

import concurrent.futures
import inspect
import json
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from zeronet import small

import buildtool
from buildtool.fronts.cli import main as cli
from buildtool.fronts.python.answers import Answer

BOARD = "cortex-m4"


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A network in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.tflite").write_bytes(small())
    return buildtool.open("net.tflite", daemon="off")


@pytest.fixture
def printed(capsys):
    """Returns a function: what a command prints with --json."""

    def run(*words):
        capsys.readouterr()
        assert cli.run([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


# Method, its arguments -> the words of the same command.
QUICK = [
    ("analyze", {}, ["analyze"]),
    ("analyze", {"boards": [BOARD, "hifive1"]}, ["analyze", "-b", BOARD, "-b", "hifive1"]),
    ("plan", {"ram": "2K", "image": "stream"}, ["plan", "--ram", "2K", "--image", "stream"]),
    ("front", {"peers": True}, ["front", "--peers"]),
    ("report", {}, ["report"]),
    ("emit", {"out": "out"}, ["emit", "-o", "out"]),
    ("bundle", {"out": "out"}, ["build", "--bundle", "-o", "out"]),
    ("describe", {}, ["describe"]),
]
SLOW = [
    ("build", {"out": "out", "formats": ["hex"]}, ["build", "-o", "out", "--format", "hex"]),
    ("validate", {"tensors": True, "inputs": 2}, ["validate", "--tensors", "--inputs", "2"]),
    ("profile", {}, ["profile"]),
]


def _same_as_command(net, printed, method, options, words):
    command, *rest = words
    board = [] if method == "analyze" else ["-b", BOARD]
    expected = printed(command, "net.tflite", *board, *rest)
    own = options if method == "analyze" else {"board": BOARD, **options}
    answer = getattr(net, method)(**own)
    differing = (
        {"changed", "removed"} if method in ("emit", "bundle") else set()
    )  # the command wrote them before
    both = json.loads(answer.to_json()), expected
    assert _timeless({k: v for k, v in both[0].items() if k not in differing}) == _timeless(
        {k: v for k, v in both[1].items() if k not in differing}
    )


def _timeless(value):
    """Returns an answer without the time that a run took."""
    return {key: item for key, item in value.items() if key != "seconds"}


@pytest.mark.parametrize(("method", "options", "words"), QUICK)
def test_an_answer_is_what_the_command_prints_as_json(net, printed, method, options, words):
    _same_as_command(net, printed, method, options, words)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options", "words"), SLOW)
def test_a_built_answer_is_what_the_command_prints_as_json(net, printed, method, options, words):
    _same_as_command(net, printed, method, options, words)


@pytest.mark.slow
def test_lists_are_what_their_commands_print_as_json(net, printed, tmp_path):
    for answer, words in (
        (buildtool.boards(), ["boards"]),
        (buildtool.networks(), ["zoo"]),
        (buildtool.operators(), ["ops"]),
        (net.operators(), ["ops", "net.tflite"]),
    ):
        assert json.loads(answer.to_json()) == printed(*words)
    (tmp_path / "arena.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    assert json.loads(buildtool.arena("arena.csv").to_json()) == printed("arena", "arena.csv")


def test_an_answer_has_rows_of_its_own_and_cannot_be_changed(net):
    plan = net.plan(BOARD)
    first = plan.buffers[0]["size"]
    assert plan["arena_bytes"] == plan.arena_bytes > 0 and {"buffers", "save"} <= set(dir(plan))
    with pytest.raises(AttributeError, match="cannot be changed"):
        plan.arena_bytes = 1
    with pytest.raises(AttributeError, match="did you mean 'arena_bytes'"):
        _ = plan.arena_byte
    plan.buffers[0]["size"] = -1
    assert net.plan(BOARD).buffers[0]["size"] == first
    assert all(type(row) is dict and row.keys() == plan.buffers[0].keys() for row in plan.buffers)
    copy = pickle.loads(pickle.dumps(plan))
    assert type(copy) is type(plan) and copy == plan and isinstance(plan, Answer)
    assert repr(plan) == f"<Plan of net on {BOARD}: arena {plan.arena_bytes:,} bytes, F 1.000>"
    assert str(plan).startswith(f"net on {BOARD}: ")


def test_a_plan_is_saved_and_taken_by_later_requests(net, tmp_path):
    front = net.front(BOARD)
    plan = net.plan(BOARD, ram=front.points[0]["arena_bytes"])
    assert plan.arena_bytes == front.points[0]["arena_bytes"]
    plan.save("net.plan")
    with_file, with_answer = net.plan(BOARD, plan="net.plan"), net.plan(BOARD, plan=plan)
    assert with_file == with_answer and with_file.arena_bytes == plan.arena_bytes


@pytest.mark.slow
def test_an_answer_replaces_only_a_file_of_its_kind(net, tmp_path):
    kinds = {"plan": net.plan(BOARD), "html": net.report(BOARD)}
    for name, answer in (*kinds.items(), *kinds.items()):
        answer.save(f"new.{name}")
    for name, answer in kinds.items():
        (tmp_path / "empty").write_bytes(b"")
        answer.save("empty")
        for other in ("net.tflite", *(f"new.{one}" for one in kinds if one != name)):
            before = (tmp_path / other).read_bytes()
            with pytest.raises(buildtool.UsageError, match="of another kind is there"):
                answer.save(other)
            assert (tmp_path / other).read_bytes() == before
    (tmp_path / "other.tflite").write_bytes(small())
    for words in (["plan", "--out"], ["plan", "--trace"], ["report", "--out"]):
        assert cli.run([words[0], "net.tflite", "--board", BOARD, words[1], "other.tflite"]) == 2
    with pytest.raises(buildtool.UsageError, match="of another kind is there"):
        net.trace(BOARD, "other.tflite")
    assert (tmp_path / "other.tflite").read_bytes() == small()


def test_errors_spell_options_as_keyword_arguments(net):
    wrong = [
        (lambda: net.plan(BOARD, rma="2K"), "plan has no option 'rma' [USAGE]\n  hint: did you mean 'ram'?"),
        (lambda: net.plan(BOARD, peers=True), "leave peers out, or use it in front, report"),
        (lambda: net.plan(BOARD, image="strem"), "image: 'strem' is not one of"),
        (lambda: net.plan(BOARD, max_f=1.2, strategy="layerwise"), "hint: without max_f; strategy='best'"),
        (
            lambda: buildtool.open("no.tflite"),
            "no.tflite: error: cannot read the model: there is no such file",
        ),
        (lambda: buildtool.open("net.tflite", cache="of"), "hint: did you mean 'off'?"),
    ]
    for call, words in wrong:
        with pytest.raises(buildtool.UsageError) as caught:
            call()
        assert words in str(caught.value)
    with pytest.raises(buildtool.UsageError, match=r"buildtool.boards\(\) lists all boards"):
        net.plan("none")
    net.plan("hifive1").save("of hifive1.plan")
    with pytest.raises(buildtool.PlanError, match="is not valid on board") as caught:
        net.plan(BOARD, plan="of hifive1.plan", ram="64K")
    (call,) = re.findall(r"that fits: (.*)", caught.value.hint)
    assert eval(call) is None  # it saves a plan
    (saved,) = re.findall(r"save\('(.*)'\)", call)
    assert net.plan(BOARD, plan=saved).arena_bytes
    with pytest.raises(buildtool.PlanError, match=r"hint: ram=\d+ \(the smallest arena"):
        net.plan(BOARD, ram=64)


def test_a_notebook_draws_plans_fronts_and_reports(net):
    for answer, drawn in (
        (net.plan(BOARD), "picture"),
        (net.front(BOARD), "plot"),
        (net.report(BOARD), "arena"),
    ):
        shown = answer._repr_html_()
        assert "<iframe srcdoc=" in shown and f"id=&quot;{drawn}&quot;" in shown
        assert "[data-jp-theme-light=false] .buildtool" in shown and 'class="buildtool"' in shown
    shown = net.analyze(BOARD)._repr_html_()
    assert "monospace" in shown and f">net fits {BOARD}; bytes that are left" in shown


def test_bytes_arrays_and_threads(net, tmp_path):
    """A network of bytes has the same plan, an array is an input, and threads share this process."""
    same = buildtool.open((tmp_path / "net.tflite").read_bytes(), name="net.tflite", daemon="off")
    assert same.plan(BOARD).arena_bytes == net.plan(BOARD).arena_bytes and same.name == "net"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda ram: net.plan(BOARD, ram=ram).arena_bytes, [1500, 1600, 1500, 1600]))
    assert plans[:2] == plans[2:]
    texts = []
    image = np.zeros((1, 8, 8, 3), np.int8)
    run = buildtool.open(small(), daemon="off").validate("host", input=image, progress=texts.append)
    assert run.within_bounds and run.inputs == 1 and "linking" in " ".join(texts)


def test_importing_it_imports_nothing_else():
    code = (
        "import sys, buildtool; before = set(sys.modules); buildtool.open('ds_cnn').model;"
        "print([m for m in sys.modules if m.startswith('buildtool.')] == [] or sorted("
        "{'numpy', 'asyncio', 'jinja2', 'buildtool.plan', 'buildtool.graph'} & set(sys.modules)))"
    )
    light = "import sys, buildtool; print([m for m in sys.modules if m.startswith('buildtool.')])"
    run = [sys.executable, "-c"]
    assert subprocess.run([*run, light], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert subprocess.run([*run, code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_its_help_and_types_are_those_of_answers_and_options():
    options = inspect.signature(buildtool.Network.plan).parameters.keys()
    assert {"ram", "max_f", "progress"} <= options and options.isdisjoint({"model", "options"})
    assert "ram: Upper limit for the arena, in bytes" in buildtool.Network.plan.__doc__
    sys.path.insert(0, str(ROOT))
    from benchmarks.python_stub import stub

    hint = "run: python -m benchmarks.python_stub > buildtool/__init__.pyi"
    assert (ROOT / "buildtool/__init__.pyi").read_text(encoding="utf-8") == stub(), hint


@pytest.mark.slow
def test_mypy_checks_a_script_by_them(tmp_path):
    (tmp_path / "script.py").write_text(
        "import buildtool\n"
        "plan = buildtool.open('a.tflite').plan('cortex-m4', ram='64K', image='stream')\n"
        "size: int = plan.buffers[0]['size']\n"
        "wrong: str = plan.arena_bytes\n"
        "buildtool.open('a.tflite').plan('cortex-m4', rma=1)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT)}
    )
    errors = [line.split(" ", 2)[0] for line in done.stdout.splitlines() if "error:" in line]
    assert errors == ["script.py:4:", "script.py:5:"], done.stdout


@pytest.mark.slow
def test_numbers_arrays_and_paths_of_python_are_taken(net, tmp_path):
    """A number of numpy is a number, one value is a list of one, and a flag that is off is left out."""
    (tmp_path / "own.toml").write_text('extends = "cortex-m4"\n')
    plan = net.plan(BOARD, ram=np.int64(2048), max_f=np.float64(1.0), compare=np.bool_(False))
    assert plan == net.plan(BOARD, ram=2048, max_f=1.0)
    assert net.analyze(Path("own.toml")).boards[0]["board"] == "own"
    assert net.analyze(np.array([BOARD])) == net.analyze(BOARD) == net.analyze(iter([BOARD]))
    assert net.describe(BOARD, formats="hex") == net.describe(BOARD, formats=["hex"], debug=False)
    with pytest.raises(buildtool.UsageError, match="is not a file or an array of numbers"):
        net.validate(BOARD, input=np.array([None]))


def test_a_network_is_what_open_was_given(net, tmp_path):
    """No option replaces it, its repr is short, and whatever is no network is refused."""
    (tmp_path / "bare").write_bytes(small())
    given = buildtool.open(memoryview(small()), name=Path("x.tflite"), outputs=None)
    assert repr(given) == f"<Network x.tflite, {len(small()):,} bytes>" and len({given, net, net}) == 2
    assert buildtool.open("bare").model == str(tmp_path / "bare")
    with pytest.raises(buildtool.UsageError, match=r"no option 'model'.*\n.*buildtool.open takes"):
        net.plan(BOARD, model="ds_cnn")
    with pytest.raises(buildtool.UsageError, match="did you mean 'boards'"):
        net.analyze(board=BOARD)
    for wrong in (None, 3, ["net.tflite"], "a" * 300 + ".tflite", "~/net.tflite", Path("no")):
        with pytest.raises(buildtool.UsageError):
            buildtool.open(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["build"], ["bundle", "build", "--bundle"], ["emit"], ["sizes"]])
def test_written_answers_print_what_their_commands_print(net, capsys, words):
    if words == ["sizes"]:
        net.build("out", "host")
        answer, command = buildtool.sizes("out/net.elf", "host"), ["sizes", "out/net.elf"]
    else:
        answer, command = getattr(net, words[0])("out", "host"), [*words[-2:], "net.tflite", "-o", "out"]
        shutil.rmtree("out")  # the text of a bundle says what has changed there
    capsys.readouterr()
    assert cli.run([*command, "-b", "host"]) == 0
    assert str(pickle.loads(pickle.dumps(answer))).split() == capsys.readouterr().out.split()


def test_no_file_that_is_read_is_replaced(net, tmp_path, monkeypatch):
    net.plan(BOARD).save("net.plan")
    (tmp_path / "a-b.tflite").write_bytes(small())
    (tmp_path / "a_b.tflite").write_bytes(small(16))
    buildtool.open("a-b.tflite", daemon="off").emit("out", BOARD)
    for call, words in (
        (lambda: net.trace(BOARD, "net.plan", plan="net.plan"), "would overwrite it"),
        (lambda: buildtool.open("a_b.tflite", daemon="off").emit("out", BOARD), "the same C name"),
        (lambda: net.quantize("net.onnx", sizes_only=True), r"is a .tflite file, too.*\n.*out='net.tflite'"),
    ):
        with pytest.raises(buildtool.UsageError, match=words):
            call()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir("gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(buildtool.MachineError, match="the working folder has been removed"):
        net.plan(BOARD)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_fork_during_a_request_has_its_own_session(net):
    """The child of a process whose other thread plans does not wait for that thread."""
    ready, go = threading.Event(), threading.Event()

    def wait(text):
        ready.set()
        go.wait()

    thread = threading.Thread(target=lambda: net.front(BOARD, progress=wait))
    thread.start()
    ready.wait()
    child = multiprocessing.get_context("fork").Process(target=net.plan, args=(BOARD,))
    child.start()
    child.join(60)
    go.set()
    thread.join()
    child.kill()
    assert child.exitcode == 0
