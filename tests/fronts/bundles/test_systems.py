"""Packages of build systems: their files by the systems' rules, and their examples, built with stand-ins.

A stand-in does what the files use of the real functions. `benchmarks/bundles.py` runs the real systems.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from needs import needs_package, needs_tool
from programs import said

from buildtool.base.errors import UsageError
from buildtool.base.session import Session
from buildtool.fronts.bundles.systems import PACKAGES, core_of, facts_of, refuse_core
from buildtool.fronts.cli.main import run

SESSION = Session()
SYSTEMS = [str(system) for system in PACKAGES if system != "plain"]
EQUAL = "wake: EQUAL to the reference in 12 bytes of output\n"
STRICT = ("-Wall", "-Wextra", "-Werror")

STAND_INS = Path(__file__).with_name("systems")  # of the real functions and rules: what the files use of them


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each system, with networks for every core."""
    out = tmp_path_factory.mktemp("systems")
    for system in SYSTEMS:
        bundle(out / system / "nn", system)
    return out


def bundle(out: Path, system: str, *words: str, board: str = "host", status: int = 0) -> None:
    net = ("build", f"--bundle={system}", "ds_cnn", "--board", board, "--name", "wake", "--out", str(out))
    assert run([*net, *words], SESSION) == status


def built_by_cmake(source: Path, folder: Path, *words: str) -> str:
    """What the program prints that a project builds."""
    said(folder, needs_tool("cmake"), "-S", str(source), "-B", "build", *words)
    said(folder, "cmake", "--build", "build", "-j2")
    name = "nn_example" if (folder / "build/nn_example").is_file() else "app"
    return subprocess.run([folder / "build" / name], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_riots_example_is_equal_and_a_changed_output_is_reported(folders: Path, tmp_path: Path) -> None:
    needs_tool("make")
    for name in ("base", "include"):
        shutil.copy(STAND_INS / f"riot_{name}.mk", tmp_path / f"Makefile.{name}")
    example = folders / "riot/nn/example"
    said(example, "make", f"RIOTBASE={tmp_path}", "app")
    assert said(example, "./app") == EQUAL
    golden = example / "nn_golden_wake.h"
    text = golden.read_text()
    first = re.search(r"wake_golden_output0\[12\] = \{\n(\d+),", text)
    assert first is not None
    golden.write_text(text[: first.start(1)] + str(int(first[1]) ^ 1) + text[first.end(1) :])
    said(example, "make", f"RIOTBASE={tmp_path}", "app")
    golden.write_text(text)
    shown = said(example, "./app", fails=True)
    assert shown == "wake: 1 of 12 bytes of output DIFFER from the reference\n"


@pytest.mark.slow
def test_picos_example_is_equal(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "external").mkdir()
    (tmp_path / "pico").mkdir()
    shutil.copy(STAND_INS / "pico.cmake", tmp_path / "external/pico_sdk_import.cmake")
    (tmp_path / "pico/stdlib.h").write_text("static inline void stdio_init_all(void) {}\n")
    assert built_by_cmake(folders / "pico/nn/example", tmp_path, f"-DPICO_SDK_PATH={tmp_path}") == EQUAL


def test_a_network_may_be_called_as_a_target_of_an_sdk(tmp_path: Path) -> None:
    bundle(tmp_path, "pico", "--name", "pico_stdlib")
    text = (tmp_path / "CMakeLists.txt").read_text()
    assert "add_library(pico_stdlib_network STATIC" in text and "add_library(pico_stdlib " not in text


@pytest.mark.slow
def test_esp_idfs_example_is_equal(folders: Path, tmp_path: Path) -> None:
    text = (STAND_INS / "idf.cmake").read_text().replace("@nn@", str(folders / "idf/nn"))
    (tmp_path / "CMakeLists.txt").write_text(text)
    assert built_by_cmake(tmp_path, tmp_path) == EQUAL


@pytest.mark.slow
def test_zephyrs_example_is_equal(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "ZephyrConfig.cmake").write_text(
        "set(APPLICATION_SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR})\n" + (STAND_INS / "zephyr.cmake").read_text()
    )
    example = folders / "zephyr/nn/example"
    (tmp_path / "prj.conf").write_bytes((example / "prj.conf").read_bytes())
    assert built_by_cmake(example, tmp_path, f"-DZephyr_DIR={tmp_path}") == EQUAL


@pytest.mark.slow
def test_a_packs_example_is_equal(folders: Path, tmp_path: Path) -> None:
    """As the tools of CMSIS-Pack do: private include folders and definitions are those of a component."""
    pack = folders / "cmsis-pack/nn"
    components = ET.parse(pack / "buildtool.networks.pdsc").findall("components/component")
    public, sources = [], []
    for component in components:
        files = component.findall("files/file")
        public += [f"-I{pack}/{f.get('name')}" for f in files if f.get("category") == "include"]
    for number, component in enumerate(components):
        (tmp_path / f"pre{number}.h").write_text(component.findtext("Pre_Include_Local_Component_h", ""))
        names = [f.get("name") for f in component.findall("files/file") if f.get("category") == "source"]
        sources += [(f"pre{number}.h", f"{pack}/{name}") for name in names]
    objects = [f"{i}.o" for i in range(len(sources))]
    for name, (before, source) in zip(objects, sources, strict=True):
        said(tmp_path, needs_tool("gcc"), *STRICT, *public, "-include", before, "-c", source, "-o", name)
    example = [f"{pack}/example/{name}" for name in ("main.c", "nn_check.c")]
    said(tmp_path, "gcc", *STRICT, *public, *example, *objects, "-o", "app")
    assert said(tmp_path, "./app") == EQUAL


def test_build_files_name_files_that_exist_and_texts_parse(folders: Path) -> None:
    yaml = needs_package("yaml")  # tflite-micro needs it
    for system in SYSTEMS:
        nn = folders / system / "nn"
        listing = json.loads((nn / "sources.json").read_text())
        assert listing["system"] == system
        named = [nn / name for name in PACKAGES[system].templates]  # type: ignore[index]
        text = "".join(path.read_text() for path in named if "example" not in path.parts)
        for source in listing["sources"]:
            assert (nn / source).is_file() and source in text, (system, source)
        array, assembly = ((nn / listing[key][0]).name in text for key in ("arrays", "assembly"))
        assert (array, assembly) in ((False, True), (True, system == "pico"))
        for path in nn.rglob("*.yml"):
            assert yaml.safe_load(path.read_text())
        assert "{{" not in "".join(path.read_text() for path in named)
    component = yaml.safe_load((folders / "idf/nn/idf_component.yml").read_text())
    assert component["version"] == listing["buildtool"] and component["license"] == "Apache-2.0"
    module = yaml.safe_load((folders / "zephyr/nn/zephyr/module.yml").read_text())
    assert all((folders / "zephyr/nn" / name).exists() for name in module["build"].values())


@pytest.mark.slow
def test_a_folder_is_for_one_system_and_its_networks_share_it(tmp_path: Path, capsys) -> None:
    for name in ("nap", "wake"):
        bundle(tmp_path / name, "riot", "--name", name)
        bundle(tmp_path / "both", "riot", "--name", name)
    check = (tmp_path / "both/example/nn_check.c").read_text()
    assert "return check_nap() + check_wake();" in check
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    bundle(tmp_path / "both", "zephyr", status=2)
    assert "the folder is for RIOT" in " ".join(capsys.readouterr().err.split())
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_cores_and_values_that_do_not_fit_leave_nothing(tmp_path: Path, capsys) -> None:
    for system, board, words in (
        ("pico", "cortex-m4", "pico-sdk does not support the core of 'cortex-m4'"),
        ("cmsis-pack", "hifive1", "CMSIS-Pack does not support the core of 'hifive1' (riscv)"),
        ("riott", "host", "unknown bundle 'riott'"),
    ):
        bundle(tmp_path / "out", system, board=board, status=2)
        assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
    net = ["--board", "host", "--out", str(tmp_path / "out")]
    assert run(["build", "--bundle", "ds_cnn", *net], SESSION) == 0  # the next word is the model
    assert (tmp_path / "out/sources.mk").is_file()
    assert run(["build", "ds_cnn", *net[:3], str(tmp_path / "riot"), "--bundle", "riot"], SESSION) == 0
    assert (tmp_path / "riot/Makefile.dep").is_file()


def test_systems_call_a_core_by_their_own_names() -> None:
    facts = facts_of("x", core_of(["-mcpu=cortex-m0plus", "-mthumb"]))
    assert facts["depends"] == "CPU_CORTEX_M0 || CPU_CORTEX_M0PLUS"
    assert (facts["dcores"], facts["device"]) == (["Cortex-M0", "Cortex-M0+"], "ARMCM0P")
    facts = facts_of("x", core_of(["-mcpu=cortex-m55+nofp"]))
    assert (facts["depends"], facts["dcores"]) == ("CPU_CORTEX_M55 && ARMV8_1_M_MVEI", ["Cortex-M55"])
    assert facts_of("esp32-s3", core_of(["-mlongcalls"]))["targets"] == ["esp32s3"]
    assert core_of(["-march=rv32imac_zicsr_zve32x_zvl128b"]) == core_of(["-march=rv32gcv"]) == "riscv-v"
    assert core_of(["-march=rv32imac_zicsr", "-mabi=ilp32"]) == "riscv"
    for system in PACKAGES:
        refuse_core(system, "host", core_of([]))  # none is refused
    with pytest.raises(UsageError, match="does not support"):
        refuse_core(list(PACKAGES)[1], "x", "cortex-m55")
