"""The pages in docs/: the first page lists all, links are valid, files that they name exist."""

from __future__ import annotations

import re

from paths import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = ("buildtool", "plugins", "kernels", "tests", "benchmarks", "examples", "site_scons", "docs", ".ci")
# a file's name in backquotes, or a path with a folder
NAMED = re.compile(
    r"`([\w*-]+\.(?:py|c|h|toml|md|cfg))`|(?<![\w./~-])((?:[\w.*-]+/)+[\w*-]+\.(?:py|c|h|toml|cfg))\b"
)
OUTPUTS = ("build/", "../")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")


def anchors(page):
    """Returns the anchors of a page's headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_first_page_lists_every_other_page_once():
    first = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = [target for target, _ in LINK.findall(first) if "/" not in target]
    assert sorted(linked) == sorted(page.name for page in PAGES if page.name != "README.md")


def test_links_lead_somewhere():
    for page in TEXTS:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            if target.startswith(("http://", "https://")):
                continue
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), f"{page.name} links to {target}"
            if anchor:
                assert anchor[1:] in anchors(there), f"{page.name} links to {target}{anchor}"


def test_files_that_a_page_names_are_there():
    """`plan/place/arena.py` names a file by the end of its path."""
    files = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    files += [path.name for path in ROOT.iterdir()]
    ends = {path[at:] for path in files for at in (0, *(i + 1 for i, c in enumerate(path) if c == "/"))}
    for page in TEXTS:
        for quoted, path in NAMED.findall(page.read_text(encoding="utf-8")):
            name = quoted or path
            if re.search(r"[A-Z]{3}|\*", name) or name.startswith(OUTPUTS):  # NAME_arena.json: a pattern
                continue
            assert name in ends, f"{page.name} names {name}, which does not exist"
