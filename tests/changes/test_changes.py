"""What changed between two answers: figures, layers, limits; and files that are no answers."""

import json

import pytest

from buildtool import cli
from buildtool.changes import compare, figures, limits
from buildtool.errors import BuildtoolError, UsageError
from buildtool.report import changes as report


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers to two `plan` requests, and their locked plans: with and without a streamed image."""
    folder = tmp_path_factory.mktemp("answers")
    from buildtool.service import handle

    for name, options in (("old", {}), ("new", {"image": "stream", "objective": "ram"})):
        found = handle({"kind": "plan", "model": "ds_cnn", "board": "cortex-m4", "options": options})
        (folder / f"{name}.lock").write_bytes(found.pop("locked"))
        (folder / f"{name}.json").write_text(json.dumps(found, default=str))
    return folder


def between(folder, old="old.json", new="new.json"):
    return compare.changes(figures.read(str(folder / old)), figures.read(str(folder / new)))


def test_totals_are_those_of_the_answers(answers):
    old, new = (json.loads((answers / f"{name}.json").read_text()) for name in ("old", "new"))
    totals = {change.name: change for change in between(answers).totals}
    for name, key in [("ram", "arena_bytes"), ("macs", "macs"), ("cost", "cost"), ("f", "f")]:
        assert (totals[name].before, totals[name].after) == (old[key], new[key])
        assert totals[name].growth == new[key] - old[key]
    assert totals["ram"].percent == pytest.approx(100 * (new["arena_bytes"] / old["arena_bytes"] - 1))
    assert totals["weights"].growth == 0


def test_a_locked_plan_has_the_figures_of_its_answer(answers):
    found = between(answers, "old.json", "old.lock")
    assert all(change.growth == 0 for change in found.totals if change.growth is not None)
    assert {change.name for change in found.totals if change.growth == 0} == {"ram", "macs", "f", "cost"}


def test_what_is_equal_is_said_to_be(answers):
    found = between(answers, "old.json", "old.json")
    assert found.is_equal
    assert report.text(found, []) == "nothing changed"
    assert report.markdown(found, []).endswith("nothing changed")


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
    found = compare.changes(old, new)
    assert [(row.name, row.how) for row in found.layers] == [
        ("b", "removed"),
        ("c", "changed"),
        ("x", "added"),
        ("a", "changed"),
    ]
    assert found.layers[1].words == ("k -> fast",)
    assert [(c.name, c.before, c.after) for c in found.layers[1].numbers] == [("ram_alive", 30, 35)]
    text, table = report.text(found, ["ram+0"]), report.markdown(found, ["ram+0"])
    for shown in (text, table):
        assert "k -> fast, ram alive 30 -> 35" in shown
        assert "LIMIT EXCEEDED: ram+0" in shown
    assert "| ram, bytes | 100 | 100 | 0 |" in table


def growth(before, after):
    return [compare.Change("ram", before, after, "bytes"), compare.Change("f", 1.0, None)]


@pytest.mark.parametrize(
    ("limit", "before", "after", "is_exceeded"),
    [
        ("ram+0", 100, 100, False),
        ("ram+0", 100, 101, True),
        ("ram+0", 100, 50, False),
        ("ram+2%", 1000, 1020, False),
        ("ram+2%", 1000, 1021, True),
        ("ram+1K", 1000, 2024, False),
        ("ram+1K", 1000, 2025, True),
        ("ram+0.5%", 1000, 1006, True),
    ],
)
def test_a_limit_is_exceeded_by_growth_beyond_it_alone(limit, before, after, is_exceeded):
    assert bool(limits.exceeded([limits.parse(limit)], growth(before, after))) is is_exceeded


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("", "'' is no limit"),
        ("ram", "'ram' is no limit"),
        ("ram-2%", "is no limit"),
        ("ram+2x", "is no limit"),
        ("rom+2%", "there is no figure 'rom'"),
        ("f+0.1", "not both files have 'f'"),
        ("memory.flash+0", "not both files have 'memory.flash'"),
    ],
)
def test_a_limit_that_cannot_be_held_is_refused(limit, says):
    with pytest.raises(UsageError, match=says):
        limits.exceeded([limits.parse(limit)], growth(1, 1))


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
    ],
)
def test_what_is_no_answer_is_refused_by_name(tmp_path, content):
    path = tmp_path / "strange.json"
    path.write_bytes(content)
    with pytest.raises(BuildtoolError) as caught:
        figures.read(str(path))
    assert caught.value.path == str(path)


def test_words_of_a_file_are_shown_and_do_nothing(tmp_path):
    """Neither in Markdown nor on a terminal: a network's names are whatever its file says."""
    layers = [{"name": "a|`<b>\n\n# x\x1b[31m", "kernel": "*k*"}]
    memory = {"memory": "fl|ash\n", "used": 1}
    new = {"arena_bytes": 1, "model": "m\n# <img>", "per_operator": layers, "sizes": [memory]}
    (tmp_path / "new.json").write_text(json.dumps(new))
    (tmp_path / "old.json").write_text(json.dumps({**new, "per_operator": [{"name": "a", "kernel": "k"}]}))
    found = between(tmp_path)
    table = report.markdown(found, [])
    assert "| a\\|\\`\\<b>  \\# x \\[31m | added | \\*k\\* |" in table.splitlines()
    assert table.startswith("**m \\# \\<img>**\n") and "| memory.fl\\|ash , bytes |" in table
    assert not {one for one in report.text(found, []) if not one.isprintable()} - {"\n"}


def test_rows_of_different_commands_are_not_compared(answers):
    """Their names and columns are not the same: each would count as removed and added."""
    found = between(answers, "old.json", "old.lock")
    assert (found.layers, found.regions) == ((), ()) and found.totals


def test_thousands_of_layers_with_a_few_names_are_matched_soon():
    def rows(step):
        return tuple(figures.Row(f"n{i * step % 7}", {"calls": i}, {}) for i in range(1200))

    made = [figures.Figures("", "", {"ram": 1}, {}, rows(step), (), "plan") for step in (1, 3)]
    assert compare.changes(*made).layers


def test_the_command_ends_by_the_limits(answers, capsys):
    old, new = str(answers / "old.json"), str(answers / "new.json")
    assert cli.run(["diff", old, new, "--fail-if", "ram+0"]) == 0
    assert "ram, bytes" in capsys.readouterr().out
    assert cli.run(["diff", new, old, "--json", "--fail-if", "ram+10%,cost+0"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["exceeded"] == ["ram+10%"]
    assert cli.run(["diff", old, new, "--json", "--markdown"]) == 2
    assert cli.run(["diff", old, str(answers / "none.json")]) == 2
