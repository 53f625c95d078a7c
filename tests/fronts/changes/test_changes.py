"""Comparing two answers: figures, layers, limits; and files that are not answers."""

import json
import tracemalloc

import pytest

from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.fronts.changes import compare, figures, reports
from buildtool.fronts.cli import main as cli
from buildtool.fronts.texts import changes as report


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Two `plan` answers and their locked plans, with and without a streamed input image, and a report."""
    folder = tmp_path_factory.mktemp("answers")
    from buildtool.api import handle

    report = handle({"kind": "report", "model": "ds_cnn", "board": "cortex-m4"})
    (folder / "report.json").write_text(json.dumps(report, default=str))
    for name, options in (("old", {}), ("new", {"image": "stream", "objective": "ram"})):
        plan = handle({"kind": "plan", "model": "ds_cnn", "board": "cortex-m4", "options": options})
        (folder / f"{name}.lock").write_bytes(plan.pop("locked"))
        (folder / f"{name}.json").write_text(json.dumps(plan, default=str))
    return folder


def between(folder, old="old.json", new="new.json"):
    return compare.changes(figures.read(str(folder / old)), figures.read(str(folder / new)))


def test_a_locked_plan_has_the_figures_of_its_answer(answers):
    changes = between(answers, "old.json", "old.lock")
    assert (changes.layers, changes.regions) == ((), ())  # rows of different commands are not compared
    assert all(change.growth == 0 for change in changes.totals if change.growth is not None)
    assert {change.name for change in changes.totals if change.growth == 0} == {"ram", "macs", "f", "cost"}


def test_layers_are_matched_by_name_and_order(tmp_path):
    def profile(name, layers):
        rows = [
            {"name": n, "kernel": k, "ram_alive": ram, "macs": 9, "calls": 1, "instructions": None}
            for n, k, ram in layers
        ]
        path = tmp_path / name
        path.write_text(json.dumps({"model": "m", "board": "b", "arena_bytes": 100, "per_operator": rows}))
        return figures.read(str(path))

    old = profile("old", [("a", "k", 10), ("b", "k", 20), ("c", "k", 30), ("a", "k", 40)])
    new = profile("new", [("a", "k", 10), ("c", "fast", 35), ("x", "k", 5), ("a", "k", 41)])
    changes = compare.changes(old, new)
    assert [(row.name, row.how) for row in changes.layers] == [
        ("b", "removed"),
        ("c", "changed"),
        ("x", "added"),
        ("a", "changed"),
    ]
    assert changes.layers[1].words == ("k -> fast",)
    assert [(c.name, c.before, c.after) for c in changes.layers[1].numbers] == [("ram_alive", 30, 35)]
    text, table = report.text(changes, ["ram+0"]), report.markdown(changes, ["ram+0"])
    for output in (text, table):
        assert "k -> fast, ram alive 30 -> 35" in output
        assert "LIMIT EXCEEDED: ram+0" in output
    assert "| ram, bytes | 100 | 100 | 0 |" in table


def growth(before, after):
    return [compare.Change("ram", before, after, "bytes"), compare.Change("f", 1.0, None)]


@pytest.mark.parametrize(
    ("limit", "before", "most"),
    [
        ("ram+0", 100, 100),
        ("ram+2%", 1000, 1020),
        ("ram+1K", 1000, 2024),
        ("ram+1 KiB", 1000, 2024),
        ("ram+0.5%", 1000, 1005),
    ],
)
def test_a_limit_is_exceeded_by_growth_beyond_it_alone(limit, before, most):
    for after, beyond in ((before // 2, []), (most, []), (most + 1, [limit])):
        assert compare.exceeded_limits([compare.parse_limit(limit)], growth(before, after)) == beyond


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("", "'' is not a limit"),
        ("ram", "'ram' is not a limit"),
        ("ram-2%", "is not a limit"),
        ("ram+2x", "is not a limit"),
        ("rom+2%", "there is no figure 'rom'"),
        ("f+0.1", "not both files have 'f'"),
        ("memory.flash+0", "not both files have 'memory.flash'"),
    ],
)
def test_a_limit_that_cannot_be_held_is_refused(limit, says):
    with pytest.raises(UsageError, match=says):
        compare.exceeded_limits([compare.parse_limit(limit)], growth(1, 1))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"arena_bytes": "many"}',
        b'{"arena_bytes": true}',
        b'{"arena_bytes": 1, "per_operator": [{}]}',
        b'{"arena_bytes": 1, "regions": 3}',
        b'{"sizes": [{"memory": "flash"}]}',
        b'{"schema": 1, "error": {"text": "no"}}',
        b'{"format": "buildtool locked plan"}',
        b"[" * 100_000,
        b'{"arena_bytes": ' + b"9" * 5_000 + b"}",
        b'{"arena_bytes": ' + b"9" * 400 + b"}",
        b'{"arena_bytes": NaN}',
        b'{"arena_bytes": 1, "f": 1e999}',
        b'{"arena_bytes": 1, "regions": [{"operators": []}]}',
        b'{"fed": [], "inputs": "many"}',
        b'{"fed": [], "inputs": 1, "firmware": [1]}',
        b'{"fed": [], "inputs": 1, "accuracy": {"predictor": "firmware"}}',
        b'{"fed": [], "inputs": 1, "accuracy": 3}',
    ],
)
def test_what_is_no_answer_is_refused_by_name(tmp_path, content):
    path = tmp_path / "strange.json"
    path.write_bytes(content)
    with pytest.raises(BuildtoolError) as caught:
        figures.read(str(path))
    assert caught.value.path == str(path)


def test_words_of_a_file_are_shown_and_do_nothing(tmp_path):
    """Neither Markdown nor a terminal interprets names: a network's file may contain any."""
    layers = [{"name": "a|`<b>\n\n# x\x1b[31m", "kernel": "*k*"}]
    memory = {"memory": "fl|ash\n", "used": 1}
    new = {"arena_bytes": 1, "model": "m\n# <img>", "per_operator": layers, "sizes": [memory]}
    (tmp_path / "new.json").write_text(json.dumps(new))
    (tmp_path / "old.json").write_text(json.dumps({**new, "per_operator": [{"name": "a", "kernel": "k"}]}))
    changes = between(tmp_path)
    table = report.markdown(changes, [])
    assert "| a\\|\\`\\<b>  \\# x \\[31m | added | \\*k\\* |" in table.splitlines()
    assert table.startswith("**m \\# \\<img>**\n") and "| memory.fl\\|ash , bytes |" in table
    assert not {one for one in report.text(changes, []) if not one.isprintable()} - {"\n"}


def test_thousands_of_layers_with_a_few_names_are_matched_soon():
    def rows(step):
        return tuple(figures.Row(f"n{i * step % 7}", {"calls": i}, {}, "") for i in range(1200))

    files = [figures.Figures("", "", {"ram": 1}, {}, rows(step), (), "plan") for step in (1, 3)]
    assert compare.changes(*files).layers


def test_the_command_ends_by_the_limits(answers, capsys):
    old, new = str(answers / "old.json"), str(answers / "new.json")
    assert cli.run(["diff", old, new, "--fail-if", "ram+0"]) == 0
    assert "ram, bytes" in capsys.readouterr().out
    assert cli.run(["diff", new, old, "--json", "--fail-if", "ram+10%,cost+0"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["exceeded"] == ["ram+10%"]
    assert cli.run(["diff", old, new, "--json", "--markdown"]) == 2
    assert cli.run(["diff", old, str(answers / "none.json")]) == 2


def test_costs_in_two_units_are_never_compared(answers, tmp_path):
    """Neither totals, nor regions, nor limits."""
    old = json.loads((answers / "old.json").read_text())
    regions = [{**region, "cost": 2 * region["cost"]} for region in old["regions"]]
    other = {**old, "cost": 2 * old["cost"], "regions": regions, "cost_unit": "instructions"}
    (tmp_path / "old.json").write_text(json.dumps(old))
    for unit, comparable in (("instructions", False), ("cycles", True)):
        (tmp_path / "new.json").write_text(json.dumps({**other, "cost_unit": unit}))
        changes = between(tmp_path)
        costs = [change for change in changes.totals if change.name == "cost"]
        assert [change.growth is not None for change in costs] == ([True] if comparable else [False, False])
        assert {change.unit for change in costs} == {"cycles", unit}
        assert bool(changes.regions) == comparable
        if not comparable:
            with pytest.raises(UsageError, match="not both files have 'cost'"):
                compare.exceeded_limits([compare.parse_limit("cost+500%")], changes.totals)
    assert len(changes.regions) == len(regions)


def test_a_data_set_through_the_firmware_has_its_figures(tmp_path):
    """Shares of the firmware are not compared with shares of the reference. A limit itself is not below."""

    def data_set(name, of, share, equal):
        top1 = {"inputs": 100, "correct": round(100 * share), "top1": share}
        accuracy = {"predictor": of, "firmware": top1, "reference": top1, "classes": []}
        run = {"inputs": 50, "inputs_equal": equal, "elements_different": 50 - equal, "arena_bytes": 9}
        answer = {"fed": [], "inputs": 100, "firmware": run, "accuracy": accuracy}
        (tmp_path / name).write_text(json.dumps(answer))

    data_set("old.json", "reference", 0.5, 50)
    data_set("new.json", "firmware", 0.5, 49)
    changes = between(tmp_path)
    assert [one.growth for one in changes.totals if one.name == "top1"] == [None, None]
    growth = {one.name: one.growth for one in changes.totals if one.growth is not None}
    assert growth == {"ram": 0, "inputs": 0, "inputs_run": 0, "inputs_equal": -1, "elements_different": 1}
    limits = [compare.parse_limit(text) for text in ("elements_different+0", "top1<50%", "top1<0.51")]
    assert compare.exceeded_limits(limits, changes.totals) == ["elements_different+0", "top1<0.51"]
    for percent in (0, 7, 14, 28, 29, 57, 58, 100):
        data_set("new.json", "firmware", percent / 100, 50)
        totals = between(tmp_path).totals
        for text in (f"top1<{percent}%", f"top1<{percent / 100}"):
            assert compare.exceeded_limits([compare.parse_limit(text)], totals) == []


def test_what_is_equal_and_below_its_limit_is_told(tmp_path, capsys):
    """Where nothing changed but a limit is missed, the output says both. Errors name options as typed."""
    top1 = {"inputs": 2, "correct": 1, "top1": 0.5}
    accuracy = {"predictor": "reference", "firmware": None, "reference": top1, "classes": []}
    path = tmp_path / "same.json"
    path.write_text(json.dumps({"fed": [], "inputs": 2, "firmware": None, "accuracy": accuracy}))
    for more in ([], ["--markdown"]):
        assert cli.run(["diff", str(path), str(path), "--fail-if", "top1<99%", *more]) == 1
        output = capsys.readouterr().out
        assert "nothing changed\n" in output and "LIMIT EXCEEDED: top1<99%" in output
    for option, value in (("--fail-if", "top1+0"), ("--depth", "x")):
        assert cli.run(["diff", str(path), str(path), option, value]) == 2
        assert f"error: {option}: '{value}'" in capsys.readouterr().err


@pytest.mark.parametrize("read", [figures.read, reports.read_profile])
def test_of_a_file_without_an_end_only_the_beginning_is_read(read):
    tracemalloc.start()
    with pytest.raises(UsageError, match="not a JSON file"):
        read("/dev/zero")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 18
