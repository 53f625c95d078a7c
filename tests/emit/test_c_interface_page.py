"""Each program on the page of the C interface compiles without a warning and prints the reference's bytes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from loaded import SLOW_WEIGHTS, twin
from made_up import SHOWS, scores
from needs import needs_tool
from paths import ROOT
from statenets import by_rows

from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo import graph as build_graph

PAGE = (ROOT / "docs/reference/c-interface.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```(c|cpp)\n(.*?)^```$", PAGE)
# name, board, options: the application writes the input; the network asks for its rows; weights are loaded;
# the arena is in two memories, and neither can hold all of it
NETWORKS = (
    ("wake", "host", ()),
    ("seen", "host", ("--image", "stream", "--objective", "ram")),
    ("slow", "slow.toml", ()),
    ("twin", "twin.toml", ("--arena-in", "ram,fast")),
    ("heard", "host", ()),  # the same with its input image in a state, one row per invoke
    ("hops", "host", ("--hop", "2")),  # on a moving window
    ("safe", "host", ("--self-test", "1", "--guards", "invoke")),
)
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-O1")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a folder with a library of the networks, their headers and the drivers."""
    folder, session = tmp_path_factory.mktemp("page"), Session()
    (folder / "slow.toml").write_text(SLOW_WEIGHTS)
    (folder / "twin.toml").write_text(twin(9200, 1024))
    models = {"heard": str(folder / "heard.tflite")}
    whole = rewrite(build_graph("ds_cnn"))
    Path(models["heard"]).write_bytes(write_model(by_rows(whole, -128)))
    for name, board, options in NETWORKS:
        board_name = str(folder / board) if board.endswith(".toml") else board
        words = ("build", models.get(name, "ds_cnn"), "--board", board_name, "--name", name, *options)
        assert run([*words, "--bundle", "--out", str(folder / "nets")], session) == 0
    shutil.copytree(Path(__file__).with_name("page"), folder, dirs_exist_ok=True)
    gcc = needs_tool("gcc")
    (folder / "Makefile").write_text(
        f"all: libnn.a drivers.o\ninclude nets/sources.mk\nCFLAGS := -std=c99 {' '.join(STRICT)}\n"
        f"libnn.a:\n\t{gcc} -c $(CFLAGS) $(NN_CFLAGS) $(NN_CPPFLAGS) $(NN_SOURCES)\n\tar rcs $@ *.o\n"
        f"drivers.o: drivers.c libnn.a\n\t{gcc} -c $(CFLAGS) $(NN_INCLUDES) drivers.c -o $@\n"
    )
    subprocess.run(["make", "-s"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.mark.slow
def test_every_program_of_the_page_gives_the_references_bytes(library: Path) -> None:
    compilers = {"c": ("gcc", "-std=c99"), "cpp": ("g++", "-std=c++17")}
    folders = [f"-I{library}", f"-I{library}/nets/kernels/include"]
    folders += [f"-I{library}/nets/networks/{name}" for name, _, _ in NETWORKS]
    for number, (language, text) in enumerate(BLOCKS):
        compiler, standard = compilers[language]
        source, program = library / f"{number}.{language}", library / f"{number}.elf"
        source.write_text(text)
        words = [*folders, source, library / "drivers.o", library / "libnn.a", "-o", program]
        subprocess.run([needs_tool(compiler), standard, *STRICT, *words], check=True)
        process = subprocess.run([program], capture_output=True, text=True, check=False)
        assert process.returncode == 0, text
        assert re.findall(SHOWS, process.stdout) == [scores()] * text.count("show("), text


def test_every_status_and_every_macro_is_on_the_page() -> None:
    image = (ROOT / "kernels/include/nn_image.h").read_text()
    codes = re.findall(r"^    (NN_(?:OK|ERROR\w*))", image, re.MULTILINE)
    assert len(codes) > 7
    texts = (ROOT / "kernels/include/nn_status_text.h").read_text()
    for code in codes:
        assert f"| `{code}` |" in PAGE
        assert f"case {code}:" in texts
    header = (ROOT / "buildtool/emit/header.py").read_text()
    for macro in set(re.findall(r"#define \{macro\}_([A-Z]\w*)", header)) - {"H", "QUANTIZATION_H", "PLAN"}:
        assert f"`NAME_{macro}" in PAGE or macro == "OPERATORS", macro
