"""Sphinx's configuration of the documentation: `./dev --with docs sphinx-build -W docs build/docs`.

The pages are Markdown that GitHub shows as it is. The tables of the index pages are the contents: a page that
no index lists, or a link that leads nowhere, is a warning, and warnings are errors.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from buildtool import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = f"{PROJECT['urls']['Source']}/blob/main/"
PARTS = ("start", "guides", "reference", "internals")

project = "buildtool"
copyright = "the buildtool authors"
version = release = __version__
extensions = ["myst_nb", "sphinx_copybutton"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["figures/*"]
nb_execution_mode = "force"  # the notebook's outputs are those of this version
nb_execution_raise_on_error = True
nb_execution_timeout = 120
os.environ.setdefault("BUILDTOOL_DAEMON", "off")
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = "buildtool"
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = "$ "
highlight_language = "none"
suppress_warnings = ["myst.header"]
LINK = re.compile(r"\]\((?P<path>[^)#:\s]*)(?P<anchor>#[^)\s]*)?\)")


def add_contents(_: Any, name: str, text: list[str]) -> None:
    """Adds the contents that an index page's links are; links out of docs/ become links to the source."""
    page = ROOT / "docs" / name
    linked = [match["path"] for match in LINK.finditer(text[0])]
    text[0] = LINK.sub(lambda match: _link(match, page.parent), text[0])
    if page.name == "index":
        ends = "/index.md" if name == "index" else (".md", ".ipynb")  # the first page links to others too
        pages = [path.rpartition(".")[0] for path in linked if path.endswith(ends) and ".." not in path]
        text[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(dict.fromkeys(pages)) + "\n```\n"


def _link(match: re.Match[str], folder: Path) -> str:
    path = (folder / match["path"]).resolve()
    if not match["path"] or path.is_relative_to(ROOT / "docs") or not path.exists():
        return match[0]
    return f"]({SOURCE}{path.relative_to(ROOT).as_posix()}{match['anchor'] or ''})"


def write_gallery(app: Any, error: Exception | None) -> None:
    """Writes the reports that the page of the gallery links to."""
    if error is None and app.builder.format == "html":
        sys.path.insert(0, str(ROOT))
        from benchmarks import gallery

        gallery.write(Path(app.outdir) / "gallery")


def setup(app: Any) -> None:
    """Connects the above to Sphinx."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", write_gallery)
