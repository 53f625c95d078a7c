"""The pictures of docs/report.md, from reports that are made here: `python benchmarks/report_pictures.py`.

It needs a browser: `./dev --with browser`.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCALE = 0.72  # of the page: the files are small, and can be read
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser, browsing  # noqa: E402
from reportpages import PICTURES, Picture, answer, written  # noqa: E402


def main() -> None:
    """Writes the files that PICTURES names."""
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        for name, picture in PICTURES.items():
            path = written(answer(picture.report), Path(folder) / f"{picture.report}.html")
            (ROOT / "docs" / "report" / f"{name}.png").write_bytes(taken(browser, path, picture))


def taken(browser: Browser, path: Path, picture: Picture) -> bytes:
    """Returns one picture of the report."""
    browser.open(path, width=picture.width, dark=picture.dark)
    if picture.opened is not None:
        browser.run(
            "const band = document.querySelector(`.band[data-region='${arguments[0]}']`);"
            "band.dispatchEvent(new Event('click')); document.querySelector('#steps').scrollIntoView()",
            picture.opened,
        )
    top, bottom = browser.run(
        "const at = (s) => { const b = document.querySelector(s).getBoundingClientRect();"
        " return [b.top + scrollY, b.bottom + scrollY] }; return [at(arguments[0])[0], at(arguments[1])[1]]",
        picture.first,
        picture.last,
    )
    browser.run("document.querySelector('nav').style.position = 'static'; scrollTo(0, 0)")
    return browser.picture(0, max(0, top - 8), picture.width, min(bottom - top + 16, picture.most), SCALE)


if __name__ == "__main__":
    main()
