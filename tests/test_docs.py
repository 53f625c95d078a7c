"""The pages in docs/: an index lists each, links are valid, named files exist, the site builds."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from needs import needs_package
from paths import ROOT

from buildtool.emit.header import INTERFACE
from buildtool.emit.image import VERSION
from buildtool.fronts.texts import sarif
from buildtool.plan import locked
from buildtool.schema import SCHEMA
from buildtool.target import plugin

PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md"]
WRITTEN_PAGES = ("answers.md", "options.md", "target-reference.md", "operators.md")  # by commands
# What a reader searches the site for -> a page that is found.
SEARCHED = {
    "camera": "start/camera",
    "wake word": "start/wake-word",
    "over the air": "guides/weight-updates",
    "PSRAM": "guides/memories",
    "CI": "guides/continuous-integration",
    "own board": "guides/new-boards",
    "own kernel": "guides/target-guide",
    "quantise": "guides/quantize",
    "debugger": "guides/debugging",
    "notebook": "guides/python",
    "MCUboot": "guides/images",
    "QSPI flash": "internals/slow-flash",
}
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


def test_the_index_of_each_part_lists_its_pages_once():
    for index in (ROOT / "docs").glob("*/index.md"):
        links = LINK.findall(index.read_text(encoding="utf-8"))
        linked = [target for target, _ in links if "/" not in target]
        beside = {page.name for kind in ("md", "ipynb") for page in index.parent.glob(f"*.{kind}")}
        assert sorted(linked) == sorted(beside - {"index.md"}), index.parent.name


def test_the_pages_stay_short():
    """Words are counted outside of what commands write; a guide is at most 1,500 words."""
    counts = {page: words_of(page) for page in PAGES if page.name not in WRITTEN_PAGES}
    assert sum(counts.values()) <= 65_000
    assert {
        page.name: count for page, count in counts.items() if count > 1500 and page.parent.name == "guides"
    } == {}


def words_of(page):
    """Counts the words of a page, without those in marks of figures."""
    text = re.sub(r"<!-- figures?\b.*?<!-- end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return sum(1 for word in text.split() if re.search(r"\w", word))


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    """A broken link, or a page that no index lists, is a warning, and warnings are errors."""
    needs_package("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "site/gallery").glob("*.html"))) == 6
    notebook = (tmp_path / "site/guides/notebook.html").read_text(encoding="utf-8")  # it was run
    assert notebook.count("<iframe srcdoc=") == 3 and ">True\n<" in notebook
    index = (tmp_path / "site/searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index[index.index("(") + 1 : index.rindex(")")])
    for phrase, page in SEARCHED.items():
        assert page in pages_with(found, phrase), phrase


def pages_with(index, phrase):
    """Returns the pages that the site's search finds first: those with each word in a title or heading."""
    stem = needs_package("snowballstemmer").stemmer("english").stemWord
    ignored = {"the", "own", "over", "a"}  # English words that the search leaves out
    hits = []
    for word in set(phrase.lower().split()) - ignored:
        numbers = index["titleterms"].get(stem(word), [])
        hits.append({index["docnames"][n] for n in ([numbers] if isinstance(numbers, int) else numbers)})
    return set.intersection(*hits)


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


def test_the_page_of_compatibility_has_the_numbers_of_the_code():
    page = (ROOT / "docs/reference/compatibility.md").read_text(encoding="utf-8")
    image = (ROOT / "kernels/include/nn_image.h").read_text(encoding="utf-8")
    assert f"#define NN_IMAGE_VERSION {VERSION}U" in image
    for said in (
        f"| `schema`: {SCHEMA} in each answer |",
        f"| `NAME_INTERFACE`: {INTERFACE} |",
        f"| `schema`: {locked.SCHEMA} in the file |",
        f"| `NN_IMAGE_VERSION`: {VERSION} |",
        f"| `interface`: {plugin.INTERFACE} in the plugin |",
        f"| {sarif.VERSION} |",
    ):
        assert said in page
