"""The figures in README and docs are what commands print (benchmarks/pages.py)."""

import contextlib
import io
import re
import sys
from dataclasses import replace

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import pages
from benchmarks.pages import Kept, PageError, written
from buildtool.base.session import Session
from buildtool.fronts.cli import main as cli

OUTPUT = ("net on host", "arena  1,024 bytes", "", "a  1 %", "b  22 %", "c  3 %", "EQUAL to us")
ONE = Kept("one", "buildtool plan net", {}, OUTPUT)
SLOW = Kept("one", "buildtool plan net", {"made": "2026-11-25 at 0123abcd"}, OUTPUT)
PAGE = """# A page
<!-- figures -->
    $ ./dev buildtool plan net
    net on host
    ...
    a  7 %
    b  7 %
    ...
<!-- end -->
It takes <!-- figure one: ^arena +([0-9,]+) -->7<!-- end --> bytes.
<!-- figure one 2 -->old<!-- end -->
"""
# Pages with sessions that cannot run here, and what they need.
NOT_KEPT = {
    "accuracy.md": "a data set of photographs",
    "attached-boards.md": "boards",
    "bazel-first-project.md": "what other programs print",
    "camera.md": "what other programs print",
    "cmake-first-project.md": "what other programs print",
    "scons-first-project.md": "what other programs print",
    "wake-word.md": "what other programs print",
    "editors.md": "files for an editor",
    "quantize.md": "a network and photographs of others",
    "installing.md": "the folder of an installation",
    "debugging.md": "a session with a debugger",
}

# Pages with tables of measurements.
MEASURED = (
    *(
        "figures",
        "planning-figures",
        "time-figures",
        "kernel-figures",
        "riscv",
        "xtensa-kernels",
        "vpu16",
        "xcore-kernels",
    ),
    *("dsp", "helium", "int16", "peers"),
)


def test_blocks_sentences_and_sessions_are_written_from_what_is_kept():
    text = written(PAGE, {"one": ONE})
    assert "    a  1 %\n    b  22 %\n    ...\n<!-- end -->" in text
    assert "    net on host\n    ...\n    a  1 %" in text  # the gap stays a gap
    assert "-->1,024<!-- end --> bytes" in text
    page = written("<!-- figure one: ^# made: (.*) --><!-- end -->", {"one": SLOW})
    assert page.count("at 0123abcd<!--") == 1
    assert "<!-- figure one 2 -->\n\na  1 %\nb  22 %\nc  3 %\nEQUAL to us\n\n<!-- end -->" in text
    assert written(text, {"one": ONE}) == text
    # new lines between two shown lines are shown
    more = replace(ONE, lines=(*OUTPUT[:4], "new  5", *OUTPUT[4:]))
    assert "    a  1 %\n    new  5\n    b  22 %\n    ...\n" in written(PAGE, {"one": more})


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("b  7 %", "d  7 %", "shows a line that the output does not have: d  7 %"),
        ("plan net", "plan other", "no file in docs/figures is of the command"),
        ("figure one 2", "figure two", "there is no docs/figures/two.txt"),
        ("figure one 2", "figure one 3", "has 2 paragraphs"),
        ("^arena +", "^arenas +", "no such words"),
        ("\n<!-- end -->\nIt", "\nIt", "has no <!-- end -->"),
    ],
)
def test_what_cannot_be_written_is_said(was, becomes, says):
    assert was in PAGE
    with pytest.raises(PageError, match=re.escape(says)):
        written(PAGE.replace(was, becomes, 1), {"one": ONE})


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A README and one recorded command, whose output is a file."""
    (tmp_path / "docs/figures").mkdir(parents=True)
    (tmp_path / "README.md").write_text("It is <!-- figure n: ^n ([0-9]+) -->1<!-- end -->.\n")
    (tmp_path / "docs/figures/n.txt").write_text("$ cat n\n\nn 1\n")
    (tmp_path / "n").write_text("n 1\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "KEPT", tmp_path / "docs/figures")
    return tmp_path


def test_a_figure_that_changed_fails_until_it_is_written(site, capsys):
    assert pages.main([]) == 0
    (site / "n").write_text("n 2\n")
    assert pages.main([]) == 1
    output = capsys.readouterr().out
    assert "-n 1\n+n 2\n" in output and "./dev python -m benchmarks.pages --write" in output
    assert pages.main(["--write"]) == 0
    assert (site / "README.md").read_text().startswith("It is <!-- figure n: ^n ([0-9]+) -->2<!-- end -->")
    assert pages.main([]) == 0
    (site / "README.md").write_text("It is <!-- figure n: ^n ([0-9]+) -->3<!-- end -->.\n")  # by hand
    assert pages.main([]) == 1


def test_another_compiler_and_what_is_missing_compare_nothing_and_say_so(site, monkeypatch, capsys):
    file = site / "docs/figures/n.txt"
    file.write_text("$ cat n\n# compiler: clang 1.2.3\n\nn 1\n")
    (site / "n").write_text("n 2\n")
    monkeypatch.setattr(pages, "compiler_here", lambda kind: f"{kind} 4.5.6")
    assert pages.main([]) == 0
    assert "not compared: n: it was kept for clang 1.2.3, and here is clang 4.5.6" in capsys.readouterr().out
    assert pages.main(["--write"]) == 0
    assert file.read_text() == "$ cat n\n# compiler: clang 4.5.6\n\nn 2\n"
    file.write_text("$ cat n\n# needs: gone\n\nn 1\n")
    (site / "README.md").write_text("It is <!-- figure n: ^n ([0-9]+) -->1<!-- end -->.\n")
    assert pages.main([]) == 0
    assert "not compared: n: it needs gone" in capsys.readouterr().out


# ---- the pages as they are -----------------------------------------------------------------------------


def test_the_pages_have_what_is_kept():
    """It runs nothing. The last test runs the quick commands; `--all` runs the slow ones."""
    assert list(pages.compare(pages.kept())) == []
    for one in pages.kept().values():
        assert one.lines, f"{one.name} was never run"
        assert not one.is_slow or "made" in one.about
        assert str(ROOT) not in one.text()


def test_sessions_with_output_are_written_by_their_commands():
    for page in pages.pages():
        text = page.read_text(encoding="utf-8")
        bare = re.sub(r"<!-- figures -->.*?<!-- end -->", "", text, flags=re.DOTALL)
        session = r"^    \$ ((?:\./dev |COLUMNS=\d+ )?(?:buildtool|scons) .*)\n    (?!\$)\S"
        commands = re.findall(session, bare, re.MULTILINE)
        if page.name not in NOT_KEPT:
            assert commands == [], f"{page.name}: no mark `<!-- figures -->` around these"


def test_tables_that_no_command_wrote_say_when_they_were_measured():
    """Each section with a table has a date and a commit."""
    for name in MEASURED:
        text = next((ROOT / "docs").rglob(f"{name}.md")).read_text(encoding="utf-8")
        bare = re.sub(r"<!-- figure .*?<!-- end -->", "", text, flags=re.DOTALL)
        for section in re.split(r"^#{2,} ", bare, flags=re.MULTILINE):
            if re.search(r"^\|.*---:", section, re.MULTILINE):
                title = section.partition("\n")[0]
                assert re.search(r"20\d\d-\d\d-\d\d,? at [0-9a-f]{8}\b", section), f"{name}.md: {title}"


@pytest.mark.slow
def test_the_quick_commands_print_what_the_pages_have(capsys, monkeypatch):
    """The tool's own commands run in this process, which builds each network of the zoo once."""
    start, session = pages.run, Session()

    def run(one):
        *assigned, program, words = re.fullmatch(r"(?:(COLUMNS)=(\d+) )?(\w+) (.*)", one.command).groups()
        if program != "buildtool":
            return start(one)
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as output:
            for name, value in (*pages.ENVIRONMENT.items(), *([assigned] if assigned[0] else [])):
                patch.setenv(name, value)
            with contextlib.redirect_stderr(output):
                status = cli.run(words.split(), session)
        assert status == int(one.about.get("exit", "0")), output.getvalue()
        return replace(one, lines=tuple(output.getvalue().rstrip("\n").split("\n")))

    monkeypatch.setattr(pages, "run", run)
    monkeypatch.chdir(ROOT)
    assert pages.main([]) == 0, capsys.readouterr().out
