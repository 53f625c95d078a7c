"""`buildtool sweep`: every combination once, whatever is killed; its results, page and limits."""

import contextlib
import html
import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import markupsafe
import pytest
from browser import browsing
from daemons import eventually
from needs import needs_package
from zeronet import small

import buildtool
from buildtool.base.locks import process as process_of
from buildtool.fronts.cli import main as cli
from buildtool.fronts.sweep import calling, changes, results, running, worker
from buildtool.fronts.sweep.candidates import read_study
from buildtool.fronts.sweep.unbeaten import front

BOARDS = ("cortex-m4", "hifive1")
HOSTILE = "<script>alert(1)</script>&\"'"
FAMILY = """
from pathlib import Path
def pairs():
    data = Path(__file__).with_name("net.tflite").read_bytes()
    yield "drawn", data, {"top1": 50.0}
    yield Path(__file__).with_name("net.tflite")
def made(seed):
    assert seed < 3, "too large"
    return Path(__file__).with_name("net.tflite")
"""
SWEEP = """
networks = ["net.tflite", "family.py:pairs", {name = "family.py:made", seed = [1, 3]}, "more/*.tflite"]
boards = ["cortex-m4", "hifive1"]
[options]
ram = ["64", "4K"]
image = "stream"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with networks, a module and a sweep over them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more").mkdir()
    for name in ("net.tflite", "more/a.tflite"):
        (tmp_path / name).write_bytes(small())
    (tmp_path / "family.py").write_text(FAMILY.replace("yield Path(", "yield 'path', Path("))
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


@pytest.fixture
def counted(monkeypatch):
    """The candidates that were run, each time."""
    ran = []

    def run_job(job, session, run=worker.run_job):
        ran.append((job.about["network"], job.about["board"], job.about.get("options.ram")))
        return run(job, session)

    monkeypatch.setattr(worker, "run_job", run_job)
    return ran


def files(out):
    return {name: (out / name).read_bytes() for name in (results.RESULTS, results.PAGE)}


def test_every_combination_has_the_figures_of_its_plan_or_its_error(folder):
    rows = calling.run(read_study("sweep.toml"), None, 0, None).rows
    names = ["net.tflite", "drawn", "path", "made:seed=1", "made:seed=3", "more/a.tflite"]
    expected = list(itertools.product(names, BOARDS, ("64", "4K")))
    assert [(row["network"], row["board"], row["options.ram"]) for row in rows] == expected
    network = buildtool.open("net.tflite", daemon="off")
    for row in rows:
        if row["network"] == "made:seed=3":
            assert row["code"] == "USAGE" and "made failed: AssertionError: too large" in row["error"]
            continue
        options = {"board": row["board"], "ram": row["options.ram"], "image": "stream"}
        try:
            plan = network.plan(**options)
        except buildtool.PlanError as error:
            assert (row["status"], row["code"]) == ("failed", "PLAN") and error.text in row["error"]
            continue
        keys = {"ram": "arena_bytes", "weights": "flash_bytes", "ms": "estimated_ms", "state": "state_bytes"}
        same = {
            name: name for name in ("macs", "macs_layerwise", "f", "cost", "cost_unit", "strategy", "image")
        }
        assert row["status"] == "done"
        assert {name: row[name] for name in keys | same} == {n: plan[key] for n, key in (keys | same).items()}
    assert {row["status"] for row in rows} == {"done", "failed"}
    assert [row["top1"] for row in rows if "top1" in row] == [50.0] * 4


@pytest.mark.slow
def test_a_stopped_sweep_continues_and_ends_with_the_same_bytes(folder, counted, monkeypatch):
    study = read_study("sweep.toml")
    calling.run(study, folder / "out", 0, None)
    assert len(counted) == len(set(counted)) == 24
    whole = files(folder / "out")
    shutil.rmtree(folder / "out")

    counted.clear()
    add = results.Record.add

    def torn(record, rows):  # as if the command were killed while it wrote the second batch
        if record.rows:
            with (folder / "out/rows.jsonl").open("ab") as file:
                file.write(b'{"key": "00", "row": {"netw')
            raise KeyboardInterrupt
        add(record, rows)

    monkeypatch.setattr(results.Record, "add", torn)
    with pytest.raises(KeyboardInterrupt):
        calling.run(study, folder / "out", 0, None)
    monkeypatch.setattr(results.Record, "add", add)
    lost = len(counted) - len((folder / "out/rows.jsonl").read_bytes().splitlines()) + 1
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    assert files(folder / "out") == whole
    assert len(counted) == 24 + lost and len(set(counted)) == 24

    counted.clear()  # nothing is left to do, until a network changes, or a tool may be there now
    calling.run(study, folder / "out", 0, None)
    assert counted == []
    lines = (folder / "out/rows.jsonl").read_text().replace('"code": "PLAN"', '"code": "TOOL"', 1)
    (folder / "out/rows.jsonl").write_text(lines)
    calling.run(study, folder / "out", 0, None)
    assert len(counted) == 1 and files(folder / "out") == whole
    (folder / "more/a.tflite").write_bytes(small()[:-1] + b"\1")
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    assert {network for network, _, _ in counted[1:]} == {"more/a.tflite"} and len(counted) == 5


def test_a_function_that_fails_or_yields_something_else_has_a_clear_error(folder, capsys):
    (folder / "sweep.toml").write_text('networks = ["f.py:f"]\nboards = ["cortex-m4", "cortex-m4"]')

    def status(body, *words):
        (folder / "f.py").write_text(f"D = open('net.tflite', 'rb').read()\ndef f():\n    {body}\n")
        return cli.run(["sweep", "sweep.toml", "--jobs", "0", *words])

    wrong = {
        "yield 'a', D; raise SystemExit(3)": "f failed: SystemExit: 3",
        "yield from ()": "f yields no networks",
        "return None": "f yields no networks: NoneType",
        "yield 5, D": "the name 5 of a network is not a text",
        "yield '\\udcff', D": "is not Unicode",
        "yield 'a', D, {'top1': '70 %'}": "'top1' of a network is not a number",
        "yield 'a', D, {'code': 1}": "a sweep has a column 'code' of its own",
    }
    for body, words in wrong.items():
        assert status(body) == 2 and words in capsys.readouterr().err
    # What it prints is no part of the answer, and NaN is not an accuracy.
    body = "print('a word'); yield 'a', D, {'top1': float('nan')}; yield 'b', D, {'top1': 50.0}"
    assert status(body, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["network"], row.get("top1")) for row in rows] == [("a", None), ("b", 50.0)]


def test_a_network_that_was_away_for_a_moment_is_planned_again(folder, monkeypatch):
    (folder / "sweep.toml").write_text('networks = ["net.tflite"]\nboards = ["cortex-m4"]')
    away = folder / "away"

    def run_job(job, session, run=worker.run_job):
        (folder / "net.tflite").rename(away)
        return run(job, session)

    with monkeypatch.context() as patched:
        patched.setattr(worker, "run_job", run_job)
        (row,) = calling.run(read_study("sweep.toml"), folder / "out", 0, None).rows
    assert row["code"] == "MACHINE"
    away.rename(folder / "net.tflite")
    (row,) = calling.run(read_study("sweep.toml"), folder / "out", 0, None).rows
    assert row["status"] == "done"


def test_damaged_rows_and_parts_of_a_killed_command_do_no_harm(folder):
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    whole, journal = files(folder / "out"), folder / "out/rows.jsonl"
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    empty = json.dumps({"key": json.loads(first)["key"], "row": {}}).encode()
    journal.write_bytes(b"\n".join([b"[" * 200_000, b"\0", b"[]", b'{"key": 1, "row": 2}', empty, *rest]))
    ended = subprocess.Popen(["true"])
    ended.wait()
    for pid in (ended.pid, os.getpid()):
        (folder / f"out/.buildtool-{pid}-00-0.part").touch()
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    assert files(folder / "out") == whole
    assert [one.name for one in (folder / "out").glob("*.part")] == [f".buildtool-{os.getpid()}-00-0.part"]


def test_two_sweeps_do_not_write_into_one_folder(folder, capsys):
    with results.alone(folder / "out"):
        assert cli.run(["sweep", "sweep.toml", "-o", "out", "--jobs", "0"]) == 2
        assert "out: error: another sweep is writing to this folder [USAGE]" in capsys.readouterr().err
    assert cli.run(["sweep", "sweep.toml", "-o", "out", "--jobs", "0"]) == 0


def test_a_mistake_is_found_before_anything_runs(folder, counted):
    text = 'networks = ["net.tflite"]\nboards = ["cortex-m4"]\n'
    wrong = [
        (text.replace("boards", "bords"), "sweep.toml:2:1: error: bords: a sweep has no key 'bords'"),
        (
            text + 'ram = "4K"',
            "a sweep has no key 'ram' [USAGE]\n  hint: write it below [options]: ram = ...",
        ),
        (text.replace("cortex-m4", "cortex-m44"), "'cortex-m4'"),
        (
            text.replace("net.tfl", "nets.tfl"),
            "sweep.toml:1:1: error: there is no network file 'nets.tflite'",
        ),
        (text.replace("net.tflite", "none/*.tflite"), "no network matches 'none/*.tflite'"),
        (text.replace('"net.tflite"', '{name = "mobilenetv2", sise = 96}'), "did you mean 'size'?"),
        (
            text + "[options]\nrma = 1",
            "these steps have no option 'rma' [USAGE]\n  hint: did you mean 'ram'?",
        ),
        (text + "[options]\ninputs = 2", "hint: add a step that has it: validate"),
        (text + '[options]\nram = ["4K", "4Q"]', "sweep.toml:4:1: error: ram: '4Q'"),
        (text + '[options]\nstrategy = "layerwise"\nmax_f = 1.1', "it has no effect with strategy layerwise"),
        (text + "[options]\nram = []", "sweep.toml:4:1: error: ram: the list has no values"),
        ("steps = ['run']\n" + text, "there is no step 'run'"),
        (text + "networks = 1", "not a TOML file"),
    ]
    for content, words in wrong:
        (folder / "sweep.toml").write_text(content)
        with pytest.raises(buildtool.UsageError) as caught:
            read_study("sweep.toml")
        assert words in str(caught.value)
    with pytest.raises(buildtool.BuildtoolError, match="two networks are called"):
        buildtool.sweep(["net.tflite", "net.tflite"], BOARDS, jobs=0)
    assert counted == []


def test_the_page_keeps_names_as_text_and_names_commands_that_make_its_plans(folder, capsys):
    found = buildtool.sweep(
        {HOSTILE: small(), "net.tflite": "net.tflite"}.items(), BOARDS[0], ram=["2K", "4K"], jobs=0, out="a b"
    )
    page = (folder / "a b/sweep.html").read_text()
    assert "<script>alert" not in page and str(markupsafe.escape(HOSTILE)) in page
    assert (
        "default-src 'none'; " in html.unescape(page)
        and page.count("<script>") == 2
        and " style=" not in page
    )
    lines = [html.unescape(line) for line in re.findall(r"<code>(buildtool plan [^<]*)</code>", page)]
    assert len(lines) == len(found.rows) == 4
    capsys.readouterr()
    arenas = []
    for line in lines:
        assert cli.run([*shlex.split(line)[1:], "--daemon", "off", "--json"]) == 0
        arenas.append(json.loads(capsys.readouterr().out)["arena_bytes"])
    assert sorted(arenas) == sorted(row["ram"] for row in found.rows)
    assert "<iframe srcdoc=" in found._repr_html_() and len(found.front(BOARDS[0])) >= 1


def test_commands_name_files_and_there_are_none_for_a_network_without_one(folder):
    (folder / "-a.tflite").write_bytes(small())
    networks = [("x" * 300, small()), ("b", small()), ("c", "net.tflite"), ("d", "ds_cnn"), "-a.tflite"]
    buildtool.sweep(networks, BOARDS[0], jobs=0, out="out")
    lines = re.findall(r"<code>buildtool plan ([^<]*) -b", (folder / "out/sweep.html").read_text())
    written = f"out/networks/{'x' * 60}.tflite"
    assert (folder / written).exists() and sorted(lines) == sorted(
        [written, "ds_cnn", "net.tflite", "./-a.tflite"]
    )


def test_a_front_is_what_no_other_candidate_beats():
    draw = random.Random(0)
    for accuracy in (True, False):
        rows = [
            {"network": str(i % 40), "board": "b", "status": "done", "code": ""}
            | {name: draw.randrange(6) for name in ("ram", "weights", "ms", "macs_layerwise")}
            | ({"top1": draw.randrange(6)} if accuracy else {})
            for i in range(200)
        ]
        better = "top1" if accuracy else "macs_layerwise"
        places = [(row["ram"], row["weights"], row["ms"], -row[better]) for row in rows]
        beats = [
            any(all(a <= b for a, b in zip(o, p, strict=True)) and o != p for o in places) for p in places
        ]
        expected = {place for place, beaten in zip(places, beats, strict=True) if not beaten}
        kept = [(row["ram"], row["weights"], row["ms"], -row[better]) for row in front(rows)]
        assert set(kept) == expected and len(kept) == len(expected) > 3


def test_limits_on_what_changed(folder, capsys):
    assert cli.run(["sweep", "sweep.toml", "-o", "out", "--jobs", "0"]) == 0
    rows = results.read_results("out/results.jsonl")
    smaller = [{**row, "ram": row["ram"] - 16} if row["status"] == "done" else row for row in rows]
    works = next(i for i, row in enumerate(rows) if row["status"] == "failed")
    works_then = next(row for row in smaller if row["status"] == "done")
    smaller[works] = {**works_then, **{k: rows[works][k] for k in ("network", "board", "options.ram")}}
    (folder / "old.jsonl").write_bytes(results.json_lines(smaller))
    words = ["sweep", "sweep.toml", "-o", "out", "--jobs", "0", "--diff", "old.jsonl", "--fail-if"]
    capsys.readouterr()
    assert cli.run([*words, "ram+16"]) == 1  # one fails now
    assert capsys.readouterr().out.count("LIMIT EXCEEDED: it fails") == 1
    assert cli.run([*words, "ram+0,ms+2%"]) == 1
    assert capsys.readouterr().out.count("LIMIT EXCEEDED: ram+0") == len(
        [row for row in rows if row["status"] == "done"]
    )
    (folder / "other.jsonl").write_bytes(results.json_lines([{**row, "board": "x"} for row in rows]))
    assert cli.run([*words[:-2], "other.jsonl", "--fail-if", "ram+0"]) == 2  # nothing was compared
    assert cli.run([*words, "stack+0"]) == 2 and changes.compare(rows, rows) == []
    assert cli.run(["sweep", "sweep.toml", "-o", "out", "--diff", "sweep.toml"]) == 2


def test_only_a_job_that_ends_its_process_alone_becomes_a_failure(folder):
    """The end of a process takes its neighbours along, which run again: each candidate has one row."""

    class Breaking(running.Processes):
        times = 0

        def submit(self, jobs):
            future = Future()
            if any(job.about["network"] == "drawn" and job.about["board"] == BOARDS[0] for job in jobs):
                self.times += 1
                future.set_exception(BrokenExecutor())
            else:
                future.set_result([(job.key, dict(job.about)) for job in jobs])
            return future

    pool = Breaking(0)
    jobs = list(read_study("sweep.toml").jobs())
    rows = [one for batch in running.run(iter([jobs[:10], jobs[10:]]), pool) for one in batch]
    assert sorted(key for key, _ in rows) == sorted(job.key for job in jobs)
    failed = [row for _, row in rows if row.get("status") == "failed"]
    assert [(row["network"], row["code"]) for row in failed] == [("drawn", "MACHINE")] * 2
    assert pool.times == 1 + 2 * 2


def test_rows_are_saved_as_a_table(folder):
    pandas_like = needs_package("pyarrow.parquet")
    found = buildtool.sweep("net.tflite", BOARDS, ram=["64", 4096], jobs=0)
    found.save("rows.parquet")
    found.save("rows.jsonl")
    table = pandas_like.read_table("rows.parquet").to_pylist()
    stripped = [{key: value for key, value in row.items() if value is not None} for row in table]
    assert [{**row, "options.ram": str(row["options.ram"])} for row in found] == stripped
    assert results.read_results("rows.jsonl") == found.rows


# ---- processes -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_command_and_a_killed_worker_cost_no_candidate(folder):
    sweep = SWEEP.replace('"64", "4K"', '"64", "2K", "3K", "4K", "5K", "6K"').replace(
        '"cortex-m4"', '"host", "cortex-m4"'
    )
    (folder / "sweep.toml").write_text(sweep)
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    whole = files(folder / "out")
    shutil.rmtree(folder / "out")
    command = [sys.executable, "-m", "buildtool", "sweep", "sweep.toml", "-o", "out", "--jobs", "2"]
    journal = folder / "out/rows.jsonl"
    for victim in ("worker", "command"):
        before = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(lambda least=before: journal.exists() and journal.stat().st_size > least, 60)
        workers = children(process.pid)
        os.kill(workers[-1] if victim == "worker" and workers else process.pid, signal.SIGKILL)
        process.wait(timeout=120)
        eventually(lambda ended=workers: all(process_of(one) == (0, "") for one in ended), 60)
        if victim == "worker":
            assert process.returncode == 0 and files(folder / "out") == whole
            keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
            assert len(keys) == len(set(keys))
            journal.unlink()
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert files(folder / "out") == whole


def children(pid):
    """The processes that a command started for its batches."""
    found = []
    for one in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "spawn_main" in (one / "cmdline").read_text():
                found.append(int(one.name))
    return sorted(found)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes(folder):
    distributed = needs_package("distributed")
    calling.run(read_study("sweep.toml"), folder / "out", 0, None)
    whole = files(folder / "out")
    shutil.rmtree(folder / "out")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster:
        address = cluster.scheduler_address
        assert cli.run(["sweep", "sweep.toml", "-o", "out", "--scheduler", address]) == 0
    assert files(folder / "out") == whole


@pytest.mark.slow
def test_the_page_sorts_and_filters_in_a_browser(folder):
    buildtool.sweep("sweep.toml", out="out", jobs=0)
    with browsing() as browser:
        browser.open(folder / "out/sweep.html")

        def shown(script=""):
            rows = "[...document.querySelectorAll('#board-1 tbody tr')].filter((row) => !row.hidden)"
            return browser.run(f"{script}; return {rows}.map((row) => row.cells[0].textContent)")

        every = ["net.tflite", "drawn", "path", "made:seed=1", "more/a.tflite"]
        assert sorted(shown()) == sorted(every)
        assert shown("document.querySelector('#board-1 thead button').click()") == sorted(every)
        fill = (
            "const box = document.querySelector('#board-1 {}'); box.{}; box.dispatchEvent(new Event('input'))"
        )
        assert shown(fill.format(".words", "value = 'MADE'")) == ["made:seed=1"]
        assert shown(fill.format(".limit", "value = 1")) == []
        assert browser.complaints() == [] and len(browser.requests()) <= 2
        assert browser.run("return document.documentElement.scrollWidth") == 1280


@pytest.mark.slow
def test_steps_add_flash_verdict_and_instructions(folder):
    steps = ["emit", "link", "validate", "profile"]
    (row,) = buildtool.sweep("net.tflite", "cortex-m4", steps=steps, jobs=1, inputs=2).rows
    network = buildtool.open("net.tflite", daemon="off")
    built, profile = network.build("out", "cortex-m4"), network.profile("cortex-m4")
    parts = sum(
        part["bytes"] for part in built.parts if part["kind"] != "variables" and part["owner"] != "unused"
    )
    assert row["instructions"] == profile.instructions and row["stack"] == profile.stack_high_water
    assert row["within_bounds"] is True and row["sources"] > 2
    assert row["flash"] == parts > row["weights"]
