"""Applications written for TFLM's interpreter: the example beside TFLM itself, and other networks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from litert import interpreter
from loaded import twin
from made_up import generated
from needs import needs_package, needs_shared, needs_tool
from paths import ROOT
from programs import copied, said
from statenets import by_rows

from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo import build as build_file
from buildtool.zoo import graph as build_graph
from buildtool.zoo.drawn import NetBuilder

pytestmark = pytest.mark.slow

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wold-style-cast", "-pedantic", "-Werror", "-O1")
BARE = ("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
QEMU = "qemu-system-arm -M mps2-an386 -semihosting-config enable=on,target=native -display none -monitor none"


@pytest.mark.parametrize("board", ["host", "cortex-m4"])
def test_person_detection_prints_what_tflm_computes(board: str, tmp_path: Path) -> None:
    needs_package("tflite_micro")
    for tool in ("cmake", "ninja", "qemu-system-arm"):
        needs_tool(tool)
    from tflite_micro.python.tflite_micro import runtime

    model = needs_shared("models/mlperf_vww96.tflite")
    tflm = runtime.Interpreter.from_file(str(model))
    lines = []
    for picture in generated(3 * 27648).reshape(3, 1, 96, 96, 3):
        tflm.set_input(picture, 0)
        tflm.invoke()
        lines.append("scores: " + " ".join(map(str, tflm.get_output(0).ravel().tolist())))
    assert len(set(lines)) > 1
    own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    folder = copied("tflm", tmp_path / "firmware")
    own["BUILDTOOL_CMAKE_DIR"] = said(folder, "buildtool", "--cmake-dir", environment=own).strip()
    said(folder, "cmake", "--preset", board, f"-DMODEL={model}", environment=own)
    said(folder, "cmake", "--build", "--preset", board, environment=own)
    words = [*QEMU.split(), "-serial", "none", "-kernel"] if board != "host" else []
    shown = said(folder, *words, folder / "build" / board / ("app.elf" if words else "app"))
    assert re.findall(r"scores: [-\d ]*\d", shown) == lines
    assert re.findall(r"^input: (.*), arena: \d+$", shown, re.MULTILINE) == ["1 96 96 3"]


def two_sides() -> bytes:
    """A network with two inputs and two outputs."""
    net = NetBuilder(1)
    x, y = net.input((1, 6, 5, 4)), net.input((1, 3, 4))
    z = net.conv(x, 4, kernel=(3, 3), same=True)
    return write_model(net.graph([net.dense(net.flatten(z), 7), net.dense(net.flatten(y), 3)]))


NETWORKS = (  # name, options
    ("wake", ()),
    ("seen", ("--image", "stream", "--objective", "ram")),
    ("heard", ()),  # with state: a row per invoke
    ("sides", ()),
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a folder of sources with networks of every form."""
    folder, session = tmp_path_factory.mktemp("tflm"), Session()
    (folder / "heard.tflite").write_bytes(write_model(by_rows(rewrite(build_graph("ds_cnn")), -128)))
    (folder / "sides.tflite").write_bytes(two_sides())
    (folder / "twin.toml").write_text(twin(9200, 1024))
    for name, options in NETWORKS:
        file = folder / f"{name}.tflite"
        words = (
            "build",
            str(file) if file.exists() else "ds_cnn",
            "--board",
            "host",
            "--name",
            name,
            *options,
        )
        assert run([*words, "--bundle", "--out", str(folder / "nets")], session) == 0
    words = (
        "emit",
        "ds_cnn",
        "--board",
        str(folder / "twin.toml"),
        "--name",
        "twin",
        "--arena-in",
        "ram,fast",
    )
    assert run([*words, "--out", str(folder / "twin")], session) == 0
    return folder


def flags(bundle: Path) -> list[str]:
    nets = [f"-I{bundle}/nets/networks/{name}" for name, _ in NETWORKS]
    return [*STRICT, *BARE, f"-I{bundle}/nets/kernels/include", f"-I{bundle}/twin", *nets]


def test_networks_of_every_form_run_in_one_program_without_code_before_main(bundle: Path) -> None:
    gcc = needs_tool("gcc")
    (bundle / "Makefile").write_text(
        f"all:\ninclude nets/sources.mk\nall:\n\t{gcc} -c -O1 $(NN_CFLAGS) $(NN_CPPFLAGS) $(NN_SOURCES)\n"
        "\tar rcs libnn.a *.o\n"
    )
    subprocess.run(["make", "-s"], cwd=bundle, check=True, stdin=subprocess.DEVNULL)
    source = ROOT / "tests/examples/tflm_networks.cpp"
    nulls = "g++ -fno-delete-null-pointer-checks"  # also of -fsanitize=undefined: no address is known
    for compiler, standard in (
        ("g++", "c++11"),
        ("g++", "c++17"),
        (nulls, "c++11"),
        ("clang -x c++", "c++11"),
    ):
        words = [*compiler.split(), f"-std={standard}", *flags(bundle), "-c", str(source), "-o", "app.o"]
        subprocess.run([needs_tool(words[0]), *words[1:]], cwd=bundle, check=True)
        shown = subprocess.run(["nm", "app.o"], cwd=bundle, check=True, capture_output=True, text=True).stdout
        assert not re.search(r"__cxa|_Znw|_GLOBAL__sub|__dso_handle", shown)
        subprocess.run([needs_tool("gcc"), "app.o", "libnn.a", "-o", "app"], cwd=bundle, check=True)
        lines = said(bundle, bundle / "app").splitlines()
        whole = litert_outputs(build_file("ds_cnn"), [generated(490).reshape(1, 49, 10, 1)])
        assert lines[:3] == [f"{name} 0: {whole[0]}" for name in ("wake", "seen", "heard")]
        inputs = [generated(120).reshape(1, 6, 5, 4), generated(12).reshape(1, 3, 4)]
        both = litert_outputs(two_sides(), inputs)
        assert lines[3:] == [f"sides {i}: {values}" for i, values in enumerate(both)]


def litert_outputs(model: bytes, inputs: list[np.ndarray]) -> list[str]:
    engine = interpreter(model)
    for detail, value in zip(engine.get_input_details(), inputs, strict=True):
        engine.set_tensor(detail["index"], value)
    engine.invoke()
    outputs = [engine.get_tensor(d["index"]).ravel().tolist() for d in engine.get_output_details()]
    return [" ".join(map(str, values)) for values in outputs]


def test_a_plan_with_two_arenas_is_refused_by_name(bundle: Path) -> None:
    text = '#include "twin.h"\n#include "nn_tflm.h"\nNN_TFLM_MODEL(model, twin, TWIN);\n'
    words = [needs_tool("g++"), "-std=c++11", *flags(bundle), "-fsyntax-only", "-x", "c++", "-"]
    shown = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert shown.returncode != 0
    assert re.findall("error: .*", shown.stderr)[0].endswith("this plan has two arenas: use the C interface")
