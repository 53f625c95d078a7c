"""Turns of phrase that readers stumbled over stay away: prose is plain English (CONTRIBUTING.md, Words)."""

import io
import re
import tokenize
from pathlib import Path

from paths import ROOT

TURNS = {
    r"(?<!\bthere )\b(?:is|are|be|was|were) none\b": "say that there is no ..., or that it has no ...",
    r"\bso many\b(?! that)": "say how many, or `this many`",
    r"\bnothing of (?:it|them)\b": "say what it does not do",
    r"\b(?:is|are) had\b": "say who has it",
    r"\bthe least of what\b": "say what is minimised",
    r"\bmost bytes of\b": "say upper limit for ..., in bytes",
    r"\bon the desk\b": "say attached board",
    r"\bby turns\b": "say alternately, or in rounds",
    r"\bone behind the other\b": "say one after the other",
    r"\basks? nobody\b": "say what is used instead",
    r"\bknow what of\b|\bwhat of that\b": "say which of these",
    r"\bof which there (?:is|are) none\b": "say that there is no ...",
    r"\bwhose \w+ (?:is|are) none\b": "say without a ...",
    r"\bis no (?:count|number|name|path|address)\b": "say is not a ...",
    r"\bhave it from\b|\bhas it from\b": "say gets it from",
    r"\bwhat it is of\b": "say what it belongs to",
    r"\bthat is told\b": "say that is reported",
    r"\bas of a\b": "say as for a, or like that of a",
}
# With the letters that a word of a turn begins with, the search passes over most words at once.
LETTERS = "".join({*re.findall(r"(?<![a-z])[a-z]", re.sub(r"\\[a-z]", " ", " ".join(TURNS)))})
BANNED = re.compile(rf"\b(?=[{LETTERS}])(?:{'|'.join(TURNS)})")
SOURCES = ("buildtool", "plugins", "site_scons", "kernels", "tests", "benchmarks")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/*.md")


def read_python(path):
    """The lines of a module's comments and strings, with their numbers."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            text = re.sub(r"\\n|\s+", " ", token.string)
            yield token.start[0], text


def read_page(path):
    """The lines of a page that are prose: outside of code blocks and of what tools print."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


def advise(match):
    """What to write instead of a banned turn."""
    return next(advice for turn, advice in TURNS.items() if re.search(turn, match.string[: match.end()]))


def offences(path):
    """Each banned turn in a file, as an editor finds it, with what to write instead."""
    text = re.sub(r"\\n|\s+", " ", path.read_text(encoding="utf-8"))
    if not BANNED.search(text):
        return []
    lines = read_python(path) if path.suffix == ".py" else read_page(path)
    found = ((number, match) for number, text in lines for match in BANNED.finditer(text))
    return [f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {advise(match)}" for number, match in found]


def test_no_banned_turn_in_sources():
    paths = {path for place in SOURCES for path in (ROOT / place).rglob("*.py")} - {Path(__file__).resolve()}
    assert [offence for path in sorted(paths) for offence in offences(path)] == []


def test_no_banned_turn_in_pages():
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    assert len(pages) > 50
    assert [offence for path in pages for offence in offences(path)] == []


def test_a_banned_turn_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.py").write_text('x = 1  # its name is none\n"""Of so\nmany rows."""\ny = None is None\n')
    (tmp_path / "a.md").write_text("Boards on the desk.\n```\nby turns\n```\n`by turns`\n    by turns\n")
    assert [line.rpartition(":")[0].count("a.py") for line in offences(tmp_path / "a.py")] == [1, 1]
    assert [line.split(":")[1] for line in offences(tmp_path / "a.md")] == ["1"]
