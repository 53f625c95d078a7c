"""Bazel builds the example for this machine and for a Cortex-M4: what runs again when, and what it equals."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up import scores
from needs import needs_tool
from paths import ROOT
from programs import said
from retrained import retrained_model
from sharedcache import Loopback
from twonetworks import MAIN, called_kernels
from zeronet import small

from buildtool import zoo
from buildtool.fronts.cli import main as cli

EXAMPLE = ROOT / "examples/bazel_firmware"
MODEL = "models/key wörds, d$x (1).tflite"
TWO_NETWORKS = """
buildtool_network(name = "wake", model = "models/wake.tflite")
cc_binary(name = "two", srcs = ["two.c"], deps = [":keywords", ":wake"])
cc_binary(name = "two.so", linkshared = True, srcs = ["two.c"], deps = [":keywords", ":wake"])
"""
QEMU = "-M mps2-an386 -semihosting-config enable=on,target=native -display none -monitor none -serial none"


class Workspace:
    """A copy of the example with a model's file, and of the tool, which is upgraded here."""

    def __init__(self, home: Path) -> None:
        self.bazel = needs_tool("bazel")
        self.home = home
        self.folder = home / "workspace"
        self.site = home / "site"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("bazel-*"), symlinks=True)
        for source, name in (
            ("buildtool", "buildtool"),
            ("plugins/buildtool_plugins", "buildtool_plugins"),
            ("kernels", "buildtool_kernels"),
        ):
            shutil.copytree(ROOT / source, self.site / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.python = home / "python"
        text = f'#!/bin/sh\nexport PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{self.site}"\n'
        self.python.write_text(f'{text}exec "{sys.executable}" "$@"\n')
        self.python.chmod(0o755)
        self.model = self.folder / MODEL
        self.model.parent.mkdir()
        self.model.write_bytes(zoo.build("ds_cnn"))
        self.edit("BUILD.bazel", '"ds_cnn"', f'"{MODEL}"')

    def edit(self, name: str, old: str, new: str) -> None:
        """Changes a file of the workspace."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *words: str, fails: bool = False) -> str:
        """What a command of Bazel says, with the command lines of its actions."""
        # Of a short life, a compiler that thinks long about the server's code takes the greater part.
        java = [f"--host_jvm_args=-XX:{flag}" for flag in ("TieredStopAtLevel=1", "+UseSerialGC")]
        startup = ["--nohome_rc", f"--output_user_root={self.home / 'out'}", "--max_idle_secs=600", *java]
        after = ["--noshow_progress", "-s", "--color=no"] if words[0] != "shutdown" else []
        return said(
            self.folder,
            *(self.bazel, *startup, *words, *after),
            fails=fails,
            environment={"BUILDTOOL_PYTHON": str(self.python)},
        )

    def built(self, name: str) -> Path:
        """A file below bazel-bin."""
        return self.folder / "bazel-bin" / name


def actions(said: str) -> list[str]:
    """What ran: the words of progress, without folders and configuration."""
    found = re.findall(r"(?m)^SUBCOMMAND: # \S+ \[action '(.*?)'", said)
    return sorted(re.sub(r"\S*[/:]", "", action) for action in found)


def kernels(said: str) -> list[str]:
    """The objects of the kernels that were compiled."""
    found = re.findall(r"'Compiling _buildtool/\w+/kernels/(\S+)\.[cS]'", said)
    return [f"{name}.o" for name in found]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    try:
        yield made
    finally:
        made.run("shutdown")


@pytest.mark.slow
def test_the_example_is_built_for_a_cortex_m4_and_the_host_and_only_what_changed_is_made_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    """One test, for its server: a start takes longer than all that is done here."""
    _check_cortex_m4(workspace, tmp_path / "m4")
    _check_changes(workspace, tmp_path / "changed")
    _check_host_worker_and_two_networks(workspace, tmp_path / "host")
    _check_errors(workspace)


def _check_cortex_m4(workspace: Workspace, folder: Path) -> None:
    qemu = needs_tool("qemu-system-arm")
    said = workspace.run("test", "--config=m4", "//...")
    assert "Executed 1 out of 1 test: 1 test passes." in said
    assert sorted(kernels(said)) == sorted(_called(workspace, "keywords"))
    assert re.search(r"(?m)^keywords: arena [\d,]+ of [\d,]+ bytes, weights [\d,]+, F \d\.\d{3}$", said)
    program = [qemu, *QEMU.split(), "-kernel", str(workspace.built("app.elf"))]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert f"scores: {scores()}\n" in done.stdout + done.stderr
    _emitted_alike(workspace, folder)


def _check_changes(workspace: Workspace, folder: Path) -> None:
    assert actions(workspace.run("build", "--config=m4", "//...")) == []

    workspace.model.write_bytes(retrained_model(workspace.model.read_bytes()))
    changed = workspace.run("build", "--config=m4", "//...")
    ran = actions(changed)
    assert [name for name in ran if name.startswith("Emitting")] == ["Emitting the network keywords"]
    assert {name for name in ran if name.startswith("Compiling")} == {"Compiling keywords_weights.S"}

    changed = "cortex_m_dsp/nn_conv2d_s8_dsp"
    for name, line in (
        ("buildtool/emit/network.py", "# upgraded"),
        (f"buildtool_kernels/{changed}.c", "int a;"),
    ):
        with (workspace.site / name).open("a") as file:
            file.write(f"{line}\n")
    upgraded = workspace.run("build", "--config=m4", "//...")
    assert [name for name in actions(upgraded) if name.startswith("Emitting")] == [
        "Emitting the network keywords"
    ]
    assert [name for name in actions(upgraded) if name.startswith("Compiling")] == [
        "Compiling nn_conv2d_s8_dsp.c"
    ]
    assert kernels(upgraded) == [f"{changed}.o"]
    _emitted_alike(workspace, folder)


def _check_host_worker_and_two_networks(workspace: Workspace, folder: Path) -> None:
    (workspace.folder / "models/wake.tflite").write_bytes(small())
    (workspace.folder / "two.c").write_text(MAIN)
    build = workspace.folder / "BUILD.bazel"
    build.write_text(build.read_text() + TWO_NETWORKS)
    said = workspace.run("build", "--config=worker", "//:app.elf", "//:two", "//:two.so")
    assert re.search(r"(?m)^INFO: .* [12] worker", said)
    called = _called(workspace, "keywords", "wake")
    assert called > _called(workspace, "wake")
    # Those of the program as well for a shared library, and each of them once.
    assert set(kernels(said)) == called
    done = subprocess.run([workspace.built("app.elf")], capture_output=True, text=True)
    assert done.stdout.startswith("scores: ")
    done = subprocess.run([workspace.built("two")], capture_output=True, text=True)
    assert done.stdout == "0 0 0\n"
    _emitted_alike(workspace, folder, board="host")
    _check_shared_cache(workspace, folder)


def _check_shared_cache(workspace: Workspace, folder: Path) -> None:
    """Bazel finds the plan that the command has sent to the server, and sends none itself."""
    words = ["emit", "models/wake.tflite", "--board", "host", "--name", "wake", "--out", str(folder / "wake")]
    with Loopback() as server:
        own = {
            "BUILDTOOL_CACHE": "on",
            "BUILDTOOL_CACHE_DIR": str(folder / "cache"),
            "BUILDTOOL_DAEMON": "off",
        }
        shared = ["--cache-url", server.url, "--cache-mode", "write"]
        command = [str(workspace.python), "-P", "-m", "buildtool", *words, *shared]
        subprocess.run(command, cwd=workspace.folder, env=os.environ | own, check=True)
        server.asked.clear()
        said = workspace.run("build", f"--@buildtool//:cache_url={server.url}", "//:wake")
        assert "Emitting the network wake" in actions(said)
        assert server.asked and {path.removeprefix("GET ") for path in server.asked} <= set(server.entries)
        emitted = workspace.built("_buildtool/wake")
        made = {path.name: path.read_bytes() for path in (folder / "wake").iterdir()}
        assert made == {name: (emitted / name).read_bytes() for name in made}


def _check_errors(workspace: Workspace) -> None:
    workspace.edit("BUILD.bazel", '(1).tflite",', '(1).tflite",\n    ram = "1 KiB",')
    refused = workspace.run("build", "--config=worker", "//:app.elf", fails=True)
    assert re.search(r"(?m)^\S*models/key wörds, d\$x \(1\)\.tflite: error: .* \[PLAN\]$", refused)
    assert re.search(r'(?m)^  hint: ram = "\d+" \(the smallest arena: F ', refused)
    assert "Traceback" not in refused


def _called(workspace: Workspace, *networks: str) -> set[str]:
    return called_kernels(workspace.built("_buildtool"), *networks)


def _emitted_alike(workspace: Workspace, folder: Path, board: str = "cortex-m4") -> None:
    """What the build emitted equals what the command emits."""
    words = ["emit", str(workspace.model), "--board", board, "--name", "keywords", "--out", str(folder)]
    assert cli.run(words) == 0
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    emitted = workspace.built("_buildtool/keywords")
    assert made and made == {name: (emitted / name).read_bytes() for name in made}
