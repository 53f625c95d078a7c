"""Pictures of reports; they need a browser: `./dev --with browser`.

    python benchmarks/report_pictures.py                 # the pictures of docs/guides/report.md
    python benchmarks/report_pictures.py FILE.html DIR   # six of a whole report: three widths, light and dark

A picture is a .png file.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCALE = 0.72  # of the page: the files are small, and can be read
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser, browsing  # noqa: E402
from reportpages import PICTURES, Picture, answer, written  # noqa: E402

WIDTHS = (1440, 1024, 390)  # pixels: a large screen, a small one, a telephone


def main() -> None:
    """Writes the pictures of the docs, or those of the report that the arguments name."""
    if len(sys.argv) == 3:
        write_whole(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        write_for_docs()


def write_whole(report: Path, folder: Path) -> None:
    """Writes six pictures of a report's whole page."""
    folder.mkdir(parents=True, exist_ok=True)
    with browsing() as browser:
        for width in WIDTHS:
            for dark in (False, True):
                browser.open(report.absolute(), width=width, dark=dark)
                browser.run("document.querySelector('nav').style.position = 'static'")
                wide, high = browser.run(
                    "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight]"
                )
                name = f"{width}-{'dark' if dark else 'light'}.png"
                (folder / name).write_bytes(browser.picture(0, 0, wide, high))


def write_for_docs() -> None:
    """Writes the files that PICTURES names."""
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        for name, picture in PICTURES.items():
            path = written(answer(picture.report), Path(folder) / f"{picture.report}.html")
            (ROOT / "docs" / "report" / f"{name}.png").write_bytes(taken(browser, path, picture))


def taken(browser: Browser, path: Path, picture: Picture) -> bytes:
    """Returns one picture of the report as the bytes of a .png file."""
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
