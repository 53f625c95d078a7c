"""The page of a report in a browser: what it shows, its interaction, and that it fetches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browsing
from reportpages import REPORTS, answer, hostile, planned, unpacked, written

from buildtool.base.layers import short_names

pytestmark = pytest.mark.slow

LEAST_CONTRAST = 4.5  # of text against its background: WCAG 2.1, level AA


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as session:
        yield session


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def texts(browser: Browser, selector: str) -> list[str]:
    contents: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", selector
    )
    return contents


def keys(browser: Browser, *names: str) -> None:
    """Presses keys one after the other."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    chain = ActionChains(browser.driver)
    for name in names:
        chain.send_keys(getattr(Keys, name, name))
    chain.perform()


def click(browser: Browser, selector: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    element = browser.driver.find_element(By.CSS_SELECTOR, selector)
    browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    ActionChains(browser.driver).move_to_element(element).click().perform()


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_page_loads_by_itself_and_shows_what_the_plan_says(name, browser, pages):
    report, plan = answer(name), planned(name) if answer(name)["verdict"]["fits"] else answer(name)
    path = written(report, pages / f"{name}.html")
    browser.open(path)
    assert browser.complaints() == []
    assert {url for url in browser.requests() if not url.startswith("data:")} == {path.as_uri()}
    arena = texts(browser, ".card")[0]
    assert f"{plan['arena_bytes']:,} of " in arena
    assert ("It fits." in texts(browser, ".verdict")[0]) is report["verdict"]["fits"]
    rows = browser.run(
        "return [...document.querySelectorAll('#layer-table tbody tr')].map((r) =>"
        " [...r.cells].map((c) => c.textContent.trim()))"
    )
    layers = report["layers"]
    assert [[int(row[i].replace(",", "")) for i in (0, 5, 7, 8, 9)] for row in rows] == [
        [layer[key] for key in ("position", "macs", "ram_alive", "scratch_bytes", "weight_bytes")]
        for layer in layers
    ]
    assert [row[-1] for row in rows] == [plan["operators"][layer["position"]]["kernel"] for layer in layers]
    _boxes_are_the_buffers(browser, plan)
    for width in (1280, 390):
        browser.open(path, width=width)
        assert browser.run("return document.documentElement.scrollWidth") == width


def _boxes_are_the_buffers(browser: Browser, plan: dict[str, Any]) -> None:
    """Every buffer is a rectangle with its size as height, at its offset, in the order of first steps."""
    boxes = browser.run(
        """return [...document.querySelectorAll('#picture .box')].map((g) => {
          const r = g.querySelector('rect');
          const values = ['x', 'y', 'width', 'height'].map((name) => r.getAttribute(name));
          return [g.dataset.buffer, ...values].map(Number);
        });"""
    )
    buffers = plan["buffers"]
    assert sorted(box[0] for box in boxes) == [i for i, b in enumerate(buffers) if b["size"]]
    largest = max(boxes, key=lambda box: buffers[box[0]]["size"])
    scale = largest[4] / buffers[largest[0]]["size"]
    bottom = largest[2] + largest[4] + buffers[largest[0]]["offset"] * scale
    for number, _, y, _, height in boxes:
        buffer = buffers[number]
        assert height == pytest.approx(max(buffer["size"] * scale, 0.8), abs=0.15)
        top = buffer["offset"] + buffer["size"]
        assert y == pytest.approx(bottom - top * scale, abs=0.3)
    starts = [box[1] for box in sorted(boxes, key=lambda box: buffers[box[0]]["first"])]
    assert starts == sorted(starts)


def test_streamed_regions_open_into_their_steps(browser: Browser, pages: Path) -> None:
    report = answer("mcunet_vww5")
    names = [op["name"] for op in report["operators"]]
    shown = dict(zip(names, short_names(names), strict=True))
    browser.open(written(report, pages / "steps.html"))
    click(browser, ".band.streamed[data-region='0'] .lid")
    for entry in report["steps"]:  # from here on by keys: each opens the next region
        region = report["regions"][entry["region"]]
        browser.run(f"document.querySelector('.band[data-region=\"{entry['region']}\"]').focus()")
        if entry["region"]:
            keys(browser, "ENTER")
        steps = unpacked(entry["symbols"], entry["sequence"])
        assert texts(browser, "#steps h3") == [
            f"Region {entry['region']}, step by step: {len(steps):,} steps"
        ]
        (text,) = texts(browser, "#steps .said:not(.aside)")
        # The page counts these bytes itself.
        assert text.startswith(f"Step {region['fullest']['step']:,}: {shown[region['fullest']['name']]}")
        top, bottom, height = browser.run(
            "const box = document.getElementById('steps').getBoundingClientRect();"
            "return [box.top, box.bottom, innerHeight]"
        )
        assert top > 0 and bottom <= height  # it was scrolled to
        assert f"{region['live_bytes']:,} bytes live" in text and "the fullest" in text
        browser.run("document.querySelector('#steps input').focus()")
        keys(browser, "HOME", "ARROW_RIGHT", "ARROW_RIGHT")
        op, y0, y1, x0, x1 = steps[2]
        name = shown[report["operators"][op]["name"]] if op >= 0 else "a row of the input image"
        (text,) = texts(browser, "#steps .said:not(.aside)")
        rows = f"row {y0}" if y1 - y0 == 1 else f"rows {y0} to {y1 - 1}"
        assert text.startswith(
            f"Step {region['first_step'] + 2:,}: {name}, {rows}, columns {x0} to {x1 - 1}:"
        )
    click(browser, f".band[data-region='{report['steps'][-1]['region']}'] .lid")
    assert browser.run("return document.getElementById('steps').hidden")
    assert browser.complaints() == []


def test_points_of_the_front_open_their_regions(browser: Browser, pages: Path) -> None:
    report = answer("mcunet_vww5")
    browser.open(written(report, pages / "front.html"))
    points = report["front"]["points"]
    assert len(texts(browser, "a.mark")) == len(points) > 3
    script = "return [...document.querySelectorAll('.plan')].map((d) => d.open)"
    click(browser, "a.mark[data-point='1'] .reach")
    assert browser.run(script) == [i == 1 for i in range(len(points))]
    keys(browser, "TAB", "TAB")  # moves the focus two points on
    tip = texts(browser, "#tip")[0]
    assert f"{points[3]['arena_bytes']:,} bytes, F {points[3]['f']:.3f}" in tip
    assert browser.run("return !document.getElementById('tip').hidden")
    keys(browser, "ENTER")
    assert browser.run(script) == [i == 3 for i in range(len(points))]
    live = [int(t.replace(",", "")) for t in texts(browser, "#point-3 tbody td:nth-child(4)")]
    assert max(live) == points[3]["live_bytes"]
    assert browser.run("return document.querySelector('#point-3').checkVisibility()")


def test_tips_come_to_a_pointer_and_to_keys(browser: Browser, pages: Path) -> None:
    report = answer("mcunet_vww5")
    browser.open(written(report, pages / "tips.html"))
    browser.run("document.querySelector('#picture .box[tabindex=\"0\"]').focus()")
    first = texts(browser, "#tip")[0]
    assert "bytes at" in first and "steps 0 to" in first
    keys(browser, "ARROW_RIGHT")
    assert texts(browser, "#tip")[0] != first
    keys(browser, "ESCAPE")
    assert browser.run("return document.getElementById('tip').hidden")
    size = max(
        b["size"] for b in report["buffers"] if b["kind"] == "ring" and b["tensors"] != report["inputs"]
    )
    ring = next(i for i, b in enumerate(report["buffers"]) if b["size"] == size)
    click(browser, f"#picture .box[data-buffer='{ring}'] rect")
    assert f", {size:,} bytes at" in texts(browser, "#tip")[0]
    click(browser, "#layer-table thead th:nth-child(6) button")  # MACs, the largest first
    macs = [int(t.replace(",", "")) for t in texts(browser, "#layer-table tbody td:nth-child(6)")]
    assert macs == sorted(macs, reverse=True) and macs[0] == max(layer["macs"] for layer in report["layers"])
    _everything_has_a_name(browser)


def _everything_has_a_name(browser: Browser) -> None:
    """All elements for screen readers have names, and tables have captions."""
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "link", "img", "image", "slider", "table", "graphics-symbol", "DisclosureTriangle")
    nameless = [
        (node["role"]["value"], node.get("nodeId"))
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in roles
        and not node.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []
    assert browser.run("return [...document.querySelectorAll('table')].every((t) => t.caption)")
    assert browser.run("return [...document.querySelectorAll('th')].every((t) => t.scope)")


def test_the_page_can_be_read_without_scripts_in_the_dark_and_on_paper(browser: Browser, pages: Path) -> None:
    report = answer("mcunet_vww5")
    path = written(report, pages / "plain.html")
    browser.open(path, scripts=False, dark=True)
    tree = browser.command("Accessibility.getFullAXTree")["nodes"]
    text = " ".join(node.get("name", {}).get("value", "") for node in tree if not node.get("ignored"))
    assert (
        f"{report['arena_bytes']:,} of" in text
        and f"All {len(planned('mcunet_vww5')['buffers'])} buffers as a table" in text
    )
    assert "click" not in text  # the page does not mention clicks without scripts
    for layer in report["layers"]:
        assert f"{layer['weight_bytes']:,}" in text
    browser.open(path, dark=True)
    dark = _contrasts(browser)
    browser.open(path)
    light = _contrasts(browser)
    for contrasts in (dark, light):
        assert min(contrasts.values()) >= LEAST_CONTRAST, contrasts
    assert light != dark
    browser.command("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"


def _contrasts(browser: Browser) -> dict[str, float]:
    """Returns the contrast of several kinds of text with their backgrounds."""
    colours = browser.run(
        """const out = {};
        for (const s of ['h1', '.how', '.verdict strong', '.verdict', 'p', '.more', 'caption', 'td',
                         'thead th', 'a', '.badge.over', '.kernel']) {
          const e = document.querySelector(s);
          if (!e) continue;
          let b = e;
          while (b && getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)') b = b.parentElement;
          out[s] = [getComputedStyle(e).color, getComputedStyle(b).backgroundColor];
        }
        return out;"""
    )
    return {name: _contrast(*pair) for name, pair in colours.items()}


def _contrast(one: str, other: str) -> float:
    bright = sorted(_luminance(colour) for colour in (one, other))
    return (bright[1] + 0.05) / (bright[0] + 0.05)


def _luminance(colour: str) -> float:
    """Returns the relative luminance, by WCAG 2.1."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_names_of_a_network_run_nothing(browser: Browser, pages: Path) -> None:
    path = written(hostile(answer("mcunet_vww5")), pages / "hostile.html")
    browser.open(path)
    click(browser, ".band.streamed[data-region='0'] .lid")
    for selector in ("#picture .box", "#graph .node[data-tip]", "a.mark"):
        browser.run(
            "for (const e of document.querySelectorAll(arguments[0])) { e.focus(); e.blur(); }", selector
        )
    assert browser.run("return window.injected === undefined")
    assert browser.run("return document.querySelectorAll('img, script').length") == 3  # its data, two scripts
    assert browser.complaints() == []
    assert {url for url in browser.requests() if not url.startswith("data:")} == {path.as_uri()}
    for width in (1280, 390):
        browser.open(path, width=width)
        assert browser.run("return document.documentElement.scrollWidth") == width
