"""The page of a report as a file: its data, and the limits on what it may contain."""

from __future__ import annotations

import json
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from reportpages import (
    HOSTILE,
    PICTURES,
    SESSION,
    answer,
    data_inside,
    hostile,
    planned,
    unpacked,
    written,
)

from buildtool.api import handle
from buildtool.fronts.cli import main as cli
from buildtool.fronts.texts import front
from buildtool.fronts.texts.html.page import page
from buildtool.plan.codec import from_bytes
from buildtool.plan.models import load_network
from buildtool.plan.schedule.timeline import Timeline

LIMITS = {"name": 200, "page": 1_000_000, "picture": 150_000}  # characters shown of a name, bytes


class Reader(HTMLParser):
    """Elements, their attributes, and all text except scripts and styles."""

    def __init__(self, file: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.inside = ""
        self.feed(file.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text.append(data)


def shown_text(answer: Any) -> str:
    """Returns the text on the page of an answer."""
    return "".join(Reader(page(answer)).text)


def test_the_data_inside_is_the_answer_and_equals_the_plan() -> None:
    report, plan = answer("mcunet_vww5"), planned("mcunet_vww5")
    inside = data_inside(page(report))  # type: ignore[arg-type]
    assert inside == json.loads(json.dumps(report))
    assert inside["schema"] == report["schema"]
    for key in ("arena_bytes", "flash_bytes", "f", "macs", "cost", "buffers", "regions", "operators", "peak"):
        assert inside[key] == json.loads(json.dumps(plan[key])), key
    assert sum(layer["macs"] for layer in inside["layers"]) == plan["macs"]
    assert sum(layer["cost"] for layer in inside["layers"]) <= plan["cost"] * (1 + 1e-9)
    weights = sum(layer["weight_bytes"] for layer in inside["layers"])
    assert 0 <= plan["flash_bytes"] - weights < 128  # the header of the weight image


def test_packed_steps_are_those_of_the_schedule() -> None:
    report, plan = answer("mcunet_vww5"), from_bytes(planned("mcunet_vww5")["plan"])
    timeline = Timeline.of(load_network("mcunet_vww5", SESSION).graph, plan.regions, plan.image)
    for entry in report["steps"]:
        steps = timeline.runs[entry["region"]].steps.tolist()
        assert [list(step) for step in unpacked(entry["symbols"], entry["sequence"])] == steps


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("mobilenetv2", "squeezenet")]


@pytest.mark.parametrize("name", ["mcunet_vww5", *SLOW])
def test_a_page_is_small_the_same_each_time_and_names_no_address(name: str) -> None:
    report = answer(name)
    file = page(report)  # type: ignore[arg-type]
    assert len(file) < LIMITS["page"]
    assert page(report) == file  # type: ignore[arg-type]
    reader = Reader(file)
    links = [
        value or "" for key, value in reader.attributes if key in ("src", "href", "action", "data", "srcset")
    ]
    assert {link.partition("#")[0] for link in links} == {"", "data:,"}
    assert not re.search(rb"@import|url\(|fetch\(|XMLHttpRequest", file)
    assert not any(folder.encode() in file for folder in (str(ROOT), tempfile.gettempdir() + "/"))
    assert not any(key == "style" or key.startswith("on") for key, _ in reader.attributes)


@pytest.mark.slow
def test_names_stay_text() -> None:
    report = hostile(answer("mcunet_vww5"))
    file, plain = page(report), Reader(page(answer("mcunet_vww5")))  # type: ignore[arg-type]
    reader = Reader(file)
    tags, plain_tags = ([tag for tag in one.tags if tag != "text"] for one in (reader, plain))
    assert tags == plain_tags  # labels depend on the lengths of names
    keys, plain_keys = ({key for key, _ in one.attributes} for one in (reader, plain))
    assert keys <= plain_keys and not any(key.startswith("on") for key in keys)
    assert data_inside(file) == json.loads(json.dumps(report))  # the data has all names unchanged
    shown = "".join(reader.text)
    assert HOSTILE[0] in shown and HOSTILE[3] in shown
    assert not set("\x00\x1b\u202e\u2028") & set(shown)
    for text in (shown, *(value or "" for _, value in reader.attributes)):
        assert "x" * LIMITS["name"] not in text


@pytest.mark.slow
def test_a_report_is_made_of_what_does_not_fit(monkeypatch) -> None:
    monkeypatch.setenv("BUILDTOOL_CLANG", "/nonexistent/clang")  # nothing is compiled
    request = {"model": "ds_cnn", "board": "cortex-m4", "options": {"ram": 1000}}
    report = handle({"kind": "report", **request})
    least = min(point["arena_bytes"] for point in report["front"]["points"])
    assert report["arena_bytes"] <= least and not report["verdict"]["fits"]
    shown = shown_text(report)
    assert "It does not fit." in shown
    assert (
        f"{report['arena_bytes']:,} bytes and has 1,000: {report['arena_bytes'] - 1000:,} too many" in shown
    )
    about = {name: request[name] for name in ("model", "options")}
    (analysed,) = handle({"kind": "analyze", "boards": [request["board"]], **about})["boards"]
    assert analysed["cures"] and report["verdict"]["cures"] == analysed["cures"]
    for cure in analysed["cures"]:
        settings = " ".join(f"{name}={value}" for name, value in cure["settings"].items())
        assert f"{settings}: {cure['arena_bytes']:,} bytes of arena, F {cure['f']:.3f}" in shown


def test_the_pictures_of_readme_and_docs_are_there_and_small() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for name in PICTURES:
        data = (ROOT / "docs" / "report" / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) < LIMITS["picture"]
        assert f"report/{name}.png" in text


# ---- the command -----------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.run(["report", *words])
    return status, capsys.readouterr().out


@pytest.mark.slow
def test_differences_to_an_earlier_page_are_those_of_diff(tmp_path, capsys):
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    words = ("mcunet_vww5", "--board", "cortex-m4", "--image", "stream", "--ram")
    assert run(capsys, *words, "12K", "--out", str(old))[0] == 0
    assert run(capsys, *words, "11500", "--against", str(old), "--out", str(new))[0] == 0
    inside = data_inside(new.read_bytes())
    assert cli.run(["diff", str(old), str(new), "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)
    pairs = {row["name"]: (row["before"], row["after"]) for row in inside["against"]["totals"]}
    assert pairs == {row["name"]: (row["before"], row["after"]) for row in changes["totals"]}
    assert pairs["ram"] == (data_inside(old.read_bytes())["arena_bytes"], inside["arena_bytes"])
    assert (
        [row["name"] for row in inside["against"]["layers"]]
        == [row["name"] for row in changes["layers"]]
        != []
    )
    assert f"{pairs['ram'][0]:,}" in "".join(Reader(new.read_bytes()).text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "--profiled", "x.json"), "exclude each other"),
        (("--profiled", "nothing.json"), "cannot read the file"),
        (("--profiled", "list.json"), "this is not an answer of `buildtool profile`"),
        (("--against", "list.json"), "that can be compared"),
        (("--out", "."), "cannot write"),
    ],
)
def test_what_cannot_be_shown_is_refused(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    assert cli.run(["report", "ds_cnn", "--board", "cortex-m4", *words]) != 0
    assert said in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_counts_of_a_run_are_shown_and_those_of_another_network_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["profile", "ds_cnn", "--board", "cortex-m4", "--json"]) == 0
    Path("run.json").write_text(capsys.readouterr().out)
    profile = json.loads(Path("run.json").read_text())
    status, text = run(capsys, "ds_cnn", "--board", "cortex-m4", "--profiled", "run.json", "--json")
    assert status == 0
    report = json.loads(text)
    rows = [row["instructions"] for row in profile["per_operator"]]
    assert [layer["instructions"] for layer in report["layers"]] == rows
    assert report["run"]["instructions"] == profile["instructions"] and all(rows)
    shown = "".join(Reader(written(report, tmp_path / "a.html").read_bytes()).text)
    assert f"{max(rows):,}" in shown and f"{sum(rows):,}" in shown
    assert cli.run(["report", "resnet8", "--board", "cortex-m4", "--profiled", "run.json"]) != 0
    assert "of another network or of another plan" in capsys.readouterr().err


def test_the_linked_image_stands_on_the_page_as_a_tree_to_the_byte() -> None:
    report = answer("mcunet_vww5")
    assert "No firmware was linked for this page" in shown_text(report)
    part = {"section": ".text", "kind": "code", "library": "libm.a"}
    parts = [
        {**part, "memory": "flash", "owner": "application", "file": "a<b>.o", "symbol": f"f{n}", "bytes": n}
        for n in range(1, 51)
    ]
    sizes = [{"memory": "flash", "used": 1275, "size": 2550, "sections": []}]
    image = {"compiler": "cc 1", "sizes": sizes, "parts": parts}
    shown = " ".join("".join(Reader(page({**report, "linked": image})).text).split())  # type: ignore[arg-type]
    assert "flash 1,275 bytes, 50.0 %" in shown
    assert "libm.a 1,275 bytes" in shown
    assert "a<b>.o 1,275 bytes" in shown
    assert "f50 50 bytes" in shown and "f10 10 bytes" not in shown
    assert f"10 smaller ones {sum(range(1, 11))} bytes" in shown


@pytest.mark.slow
def test_a_front_for_two_memories_says_that_its_plans_are_not_divided() -> None:
    request = {"model": "ds_cnn", "board": "stm32h747i-disco", "arena_in": "dtcm,axi"}
    divided = handle({"kind": "front", **request}, SESSION)
    assert divided["arenas_in"] == ["dtcm", "axi"]
    assert "not divided over dtcm and axi" in front.text(divided)
    shown = shown_text(handle({"kind": "report", **request}, SESSION))
    assert "they are not divided" in shown
    assert "they are not divided" not in shown_text(answer("mcunet_vww5"))
