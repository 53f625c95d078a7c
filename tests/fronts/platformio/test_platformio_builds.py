"""PlatformIO builds networks into firmware, for this machine and for a Cortex-M4, without a connection."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_up import scores
from needs import needs_tool
from onecompile import once_compiled
from paths import ROOT
from programs import said
from retrained import retrained_model
from twonetworks import MAIN, adding, called_kernels
from zeronet import small

from buildtool.fronts.cli import main as cli

EXAMPLE = ROOT / "examples/platformio_firmware"
ODD = "models/a 'wake' $HOME, ü.tflite"
SECTIONS = f"""
[buildtool:keywords]

[buildtool:wake]
model = {ODD}
image = resident
"""


class Project:
    """A copy of the example; PlatformIO keeps all that is its own beside it."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.pio = needs_tool("pio")
        self.folder = home / "a project"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns(".pio"))
        ini = self.folder / "platformio.ini"
        scons = f"platform_packages = platformio/tool-scons@symlink://{_scons(home)}\n"
        ini.write_text(ini.read_text().replace("[env]\n", f"[env]\n{scons}"))
        self.environment = environment | {
            "PLATFORMIO_CORE_DIR": str(home / "core"),
            "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
            "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999",
        }

    def run(self, name: str, fails: bool = False) -> str:
        """What a build of an environment says."""
        return said(self.folder, self.pio, "run", "-e", name, fails=fails, environment=self.environment)

    def edit(self, old: str, new: str) -> None:
        """Changes platformio.ini."""
        ini = self.folder / "platformio.ini"
        text = ini.read_text(encoding="utf-8")
        assert old in text
        ini.write_text(text.replace(old, new), encoding="utf-8")

    def built(self, name: str) -> Path:
        """The folder of an environment."""
        return self.folder / ".pio/build" / name


def _scons(home: Path) -> Path:
    """The package that PlatformIO takes from its registry, from the SCons that is installed."""
    import SCons

    folder = home / "tool-scons"
    folder.mkdir()
    (folder / "SCons").symlink_to(Path(SCons.__file__).parent)
    (folder / "package.json").write_text('{"name": "tool-scons", "version": "4.41101.0"}')
    (folder / "scons.py").write_text("import SCons.Script\nSCons.Script.main()\n")
    return folder


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("pio"), once_compiled(tmp_path_factory))


@pytest.mark.slow
def test_the_example_prints_the_references_scores_on_a_cortex_m4(project: Project, tmp_path: Path) -> None:
    qemu = needs_tool("qemu-system-arm")
    project.run("m4")
    machine = [qemu, "-M", "mps2-an386", "-semihosting-config", "enable=on,target=native", "-display", "none"]
    command = [*machine, "-monitor", "none", "-serial", "none", "-kernel", "program.elf"]
    done = subprocess.run(command, cwd=project.built("m4"), capture_output=True, text=True, timeout=300)
    assert f"scores: {scores()}\n" in done.stdout + done.stderr
    _emitted_alike(tmp_path, project, "m4", ["ds_cnn", "--board", "cortex-m4", "--name", "keywords"])


@pytest.mark.slow
def test_several_networks_are_built_into_one_program_and_only_what_changed_is_built_again(project, tmp_path):
    model = project.folder / ODD
    model.parent.mkdir()
    model.write_bytes(small())
    (project.folder / "src/main.c").write_text(MAIN)
    python = project.folder / "my tools/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    project.edit("custom_buildtool_name = keywords\n", "custom_buildtool_python = my tools/python\n")
    project.edit("\n[env:m4]", SECTIONS + "\n[env:m4]")
    first = project.run("host")
    assert first.count("Emitting the network") == 2
    assert sorted(compiled_kernels(first)) == sorted(called(project))
    planned = re.findall(r"(?m)^(\w+): arena [\d,]+ of [\d,]+ bytes, weights [\d,]+, F \d\.\d{3}$", first)
    assert sorted(planned) == ["keywords", "wake"]
    program = project.built("host") / "program.elf"
    assert subprocess.run([program], capture_output=True, text=True).stdout == "0 0 0\n"
    words = [str(model), "--board", "host", "--name", "wake", "--image", "resident"]
    _emitted_alike(tmp_path, project, "host", words)

    assert "Emitting" not in (again := project.run("host")) and ": arena " not in again
    assert "Compiling" not in again and "Linking" not in again

    model.write_bytes(retrained_model(small()))
    changed = project.run("host")
    assert "Emitting the network wake\n" in changed and changed.count("Emitting") == 1
    compiled = [line.rpartition("/")[2] for line in changed.splitlines() if line.startswith("Compiling")]
    assert set(compiled) <= {"wake_weights.o"} and "Linking" in changed

    before = called(project)
    model.write_bytes(adding())
    changed = project.run("host")
    assert compiled_kernels(changed) == ["reference/nn_add_s8.o"]
    assert called(project) - before == {"reference/nn_add_s8.o"} and before - called(project)
    archive = project.built("host") / "buildtool/libbuildtool_kernels.a"
    members = subprocess.run([needs_tool("ar"), "t", archive], capture_output=True, text=True, check=True)
    assert set(members.stdout.split()) == {Path(name).name for name in called(project)}
    assert subprocess.run([program], capture_output=True, text=True).stdout == "0 0 0\n"

    model.write_bytes(b"no model")
    refused = project.run("host", fails=True)
    assert f"{ODD}: error: " in refused and "Traceback" not in refused


def compiled_kernels(said: str) -> list[str]:
    """The objects of the kernels that a build compiled."""
    return re.findall(r"(?m)^Compiling \S.*/buildtool/kernels/(\S+)$", said)


def called(project: Project) -> set[str]:
    """The objects of the kernels that both networks call on this machine."""
    return called_kernels(project.built("host") / "buildtool", "keywords", "wake")


def _emitted_alike(folder: Path, project: Project, name: str, words: list[str]) -> None:
    """What the build emitted equals what the command emits."""
    assert cli.run(["emit", *words, "--out", str(folder)]) == 0
    net = words[words.index("--name") + 1]
    emitted = project.built(name) / "buildtool" / net / "src"
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert made and made == {path.name: path.read_bytes() for path in emitted.iterdir()}
