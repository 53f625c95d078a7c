"""Folders of networks: what is in them, what goes beside what, what is never written over."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import statenets
from paths import ROOT

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.target.kernels import APART, APART_HEADERS

SESSION = Session()
NET = ("ds_cnn", "--board", "cortex-m4")
SMALL = ("--image", "stream", "--objective", "ram")


def bundle(out: Path, *words: str, net: tuple[str, ...] = NET) -> int:
    """The exit status of a command that bundles a network."""
    return run(["build", *net, "--bundle", "--out", str(out), *words], SESSION)


def files(out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() or path.is_symlink()
    }


def words_of(text: str) -> str:
    """What was printed, wherever its lines are folded."""
    return " ".join(text.split())


@functools.cache
def emitted(name: str, **options: str) -> dict:
    request = {"kind": "emit", "model": "ds_cnn", "board": "cortex-m4", "name": name, "options": options}
    return handle(request)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the network `wake`."""
    out = tmp_path_factory.mktemp("bundle") / "nets"
    assert bundle(out, "--name", "wake") == 0
    return out


def listing(out: Path) -> dict:
    return json.loads((out / "sources.json").read_text())


def test_sources_and_weights_are_those_that_emit_writes(made: Path) -> None:
    for name, data in emitted("wake")["files"].items():
        if name != "harness_net.h":  # the test firmware's
            assert (made / "networks/wake" / name).read_bytes() == data, name
    assert not (made / "networks/wake/harness_net.h").exists()


def test_kernels_are_those_of_the_plan_and_headers_what_these_include(made: Path) -> None:
    network = listing(made)["networks"]["wake"]
    used = {Path(source).name for source in emitted("wake")["kernel_sources"]}
    assert {Path(name).name for name in network["kernels"]} == used | {*APART}  # for the application
    there = {path.name: path for path in made.rglob("*.h") if "networks" not in path.parts}
    wanted = {*APART_HEADERS}
    waiting = [*made.rglob("*.c"), *(made / "networks").rglob("*.h")]
    while waiting:  # by the preprocessor's own lines, beside what the product reads
        for name in re.findall(r'(?m)^\s*#\s*include "(\w+\.h)"', waiting.pop().read_text()):
            if name in there and name not in wanted:
                wanted.add(name)
                waiting.append(there[name])
    assert set(there) == wanted
    assert "nn_fault.h" not in wanted and len(wanted) > 8


def test_everything_in_the_folder_is_listed_and_says_what_it_needs(made: Path) -> None:
    told = listing(made)
    network = told["networks"]["wake"]
    common = {"sources.json", "sources.mk", "CMakeLists.txt", "nn_sections.ld", "README.md"}
    assert set(files(made)) == {*network["files"], *common}
    assert told["schema"] == 1
    assert told["exact"] == ["-ffp-contract=off"]
    assert "-mcpu=cortex-m4" in told["core"]
    header = (made / "networks/wake/wake.h").read_text()
    for key, macro in (("arena_bytes", "ARENA_BYTES"), ("stack_bytes", "STACK_BYTES")):
        assert f"#define WAKE_{macro} {network[key]}\n" in header
    assert network["weights_bytes"] == (made / network["weights"]).stat().st_size
    (license_,) = told["licenses"]
    assert license_["spdx"] == "Apache-2.0"
    assert "Apache License" in (made / license_["text"]).read_text()
    assert {Path(name).parent.as_posix() for name in network["kernels"]} <= set(license_["folders"])
    for number in ("11,840", "32,864"):
        assert number in (made / "README.md").read_text()


def test_state_is_counted_apart_and_the_page_says_who_resets_it(tmp_path: Path) -> None:
    model, out = tmp_path / "ring.tflite", tmp_path / "out"
    model.write_bytes(statenets.ring_file())
    assert bundle(out, "--name", "heard", net=(str(model), "--board", "cortex-m4")) == 0
    text = words_of((out / "README.md").read_text())
    assert "`heard` keeps 16 bytes between invokes" in text and "`heard_reset` does" in text
    assert (
        "HEARD_STATE_SECTION" in (out / "networks/heard/heard.c").read_text()
        and "`HEARD_STATE_SECTION`" in text
    )


def test_no_text_names_a_folder_of_this_machine(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "o ther $dir,'\u00e4"
    assert bundle(other, "--name", "wake") == 0
    assert files(other) == files(made)
    for name, data in files(made).items():
        assert str(ROOT).encode() not in data and b"/tmp/" not in data, name


@pytest.mark.slow
def test_no_compiler_is_asked_for(tmp_path: Path) -> None:
    words = ["build", *NET, "--bundle", "--out", "nets"]
    env = {"PATH": "/nonexistent", "HOME": str(tmp_path), "BUILDTOOL_DAEMON": "off", "BUILDTOOL_CACHE": "off"}
    done = subprocess.run([sys.executable, "-m", "buildtool", *words], cwd=tmp_path, env=env, check=False)
    assert done.returncode == 0
    assert (tmp_path / "nets/networks/ds_cnn/ds_cnn.c").is_file()


def test_a_second_network_shares_the_kernels_whatever_the_order(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    first, second = ("--name", "wake"), ("--name", "nap", *SMALL)
    assert bundle(one, *first) == bundle(one, *second) == 0
    assert bundle(other, *second) == bundle(other, *first) == 0
    assert files(one) == files(other)
    told = listing(one)
    assert sorted(told["networks"]) == ["nap", "wake"]
    alone = told["networks"]["wake"]["kernels"], told["networks"]["nap"]["kernels"]
    assert set(alone[0]) != set(alone[1]) and set(alone[0]) & set(alone[1])
    assert {name for name in told["sources"] if name.startswith("kernels/")} == {*alone[0], *alone[1]}


def test_what_no_network_needs_any_more_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "nets"
    assert bundle(out, "--name", "nap", *SMALL) == 0
    mine = out / "kernels" / "mine.c"
    mine.write_text("")
    before = set(files(out))
    assert bundle(out, "--name", "nap") == 0
    gone = before - set(files(out))
    assert "kernels/reference/nn_accumulate_s8.c" in gone
    assert mine.exists()
    assert "nn_accumulate_s8" not in (out / "sources.mk").read_text()


def test_nothing_is_written_where_nothing_changed_or_the_core_is_another(made, capsys):
    times = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    assert bundle(made, "--name", "wake") == 0
    assert "0 files written, 0 removed" in words_of(capsys.readouterr().out)
    assert bundle(made, net=("ds_cnn", "--board", "host")) == 2
    said = words_of(capsys.readouterr().err)
    assert "'wake' for the core of 'cortex-m4'" in said and "one folder for each core" in said
    assert times == {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}


def test_another_version_of_a_shared_file_is_refused(tmp_path, capsys):
    out = tmp_path / "nets"
    assert bundle(out, "--name", "wake") == 0
    changed = out / "kernels/include/nn.h"
    changed.write_bytes(changed.read_bytes() + b"/* older */\n")
    before = files(out)
    assert bundle(out, "--name", "nap") == 2
    assert "'wake' in this folder has another kernels/include/nn.h" in words_of(capsys.readouterr().err)
    assert files(out) == before
    assert bundle(out, "--name", "wake") == 0  # alone, it may be made anew
    assert files(out) != before


@pytest.mark.parametrize("name", ["CMakeLists.txt", "kernels/include/nn.h"])
def test_files_of_somebody_else_are_kept(tmp_path, name, capsys):
    assert bundle(Path(__file__)) == 2  # a file in the folder's place
    assert "cannot write" in words_of(capsys.readouterr().err)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    assert bundle(tmp_path) == 2
    assert "would be overwritten" in words_of(capsys.readouterr().err)
    assert files(tmp_path) == {name: b"mine"}
    assert not (tmp_path / "networks").exists()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"networks": {}}', '{"schema": 1, "networks": {}}', "[" * 100000),
        *('{"schema": 1, "networks": {"a": {}}}', '{"schema": 2, "networks": {"a": {}}}'),
        '{"schema": 1, "networks": [1]}',
    ],
    ids=lambda text: text[:40],
)
def test_a_listing_that_is_none_is_an_error(tmp_path: Path, text: str, capsys) -> None:
    (tmp_path / "sources.json").write_text(text)
    assert bundle(tmp_path) == 2
    assert "sources.json" in words_of(capsys.readouterr().err)
    assert set(files(tmp_path)) == {"sources.json"}


def test_a_listing_that_points_outside_or_has_another_type_is_an_error(made: Path, tmp_path: Path) -> None:
    precious, out = tmp_path / "precious", tmp_path / "nets"
    precious.write_text("")
    out.mkdir()

    def refused(told: dict) -> None:
        (out / "sources.json").write_text(json.dumps(told))
        assert bundle(out) == 2
        assert set(files(out)) == {"sources.json"} and precious.exists()

    for name in ("../precious", "/etc/hostname", "networks/../../precious", "a\0b", 3):
        told = listing(made)
        told["networks"]["wake"]["files"].append(name)
        refused(told)
    for key in ("core", "kernels", "arena_bytes", "licenses", "stack_bytes", "loaded"):
        told = listing(made)
        told["networks"]["wake"][key] = [{"a": [1]}]
        refused(told)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cmsis-nn", "/nonexistent"), "a bundle cannot use CMSIS-NN"),
        (("--toolchain", "gcc"), "it has no effect on a request of kind 'bundle'"),
        (("--name", "A b"), "name"),
        (("--ram", "1K"), "1,024"),
        (("--bundel",), "unknown option '--bundel'"),
    ],
)
def test_what_cannot_be_bundled_leaves_nothing(tmp_path, words, said, capsys):
    assert bundle(tmp_path / "nets", *words) in (1, 2)
    assert said in words_of(capsys.readouterr().err)
    assert not (tmp_path / "nets").exists()


def test_a_killed_command_is_made_good_by_the_next(tmp_path, capsys):
    """The listing gets its name first: what it lists is ours, there or not."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert bundle(whole, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["network"] == listing(whole)["networks"]["ds_cnn"]
    assert told["removed"] == [] and "README.md" in told["changed"]
    for name in ("sources.json", "kernels/include/nn.h"):
        (cut / name).parent.mkdir(parents=True, exist_ok=True)
        (cut / name).write_bytes((whole / name).read_bytes())
    assert bundle(cut) == 0
    assert files(cut) == files(whole)


def test_networks_that_are_written_at_once_are_all_there(tmp_path: Path) -> None:
    answers = [
        handle({"kind": "bundle", "model": "ds_cnn", "board": "host", "name": f"net{i}"}, SESSION)
        for i in range(6)
    ]
    from buildtool.fronts.bundles.folder import put

    threads = [threading.Thread(target=put, args=(answer, tmp_path / "nets")) for answer in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(listing(tmp_path / "nets")["networks"]) == [f"net{i}" for i in range(6)]
    assert [path.name for path in tmp_path.iterdir()] == ["nets"]
