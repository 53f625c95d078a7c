"""What a build runs after a change: every line of it, and SCons's explanation."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_clang
from onecompile import once_compiled
from paths import ROOT
from programs import scons, with_tools
from retrained import retrained_model

from buildtool import zoo
from buildtool.api import handle
from buildtool.emit.image import MAGIC

VERBS = ("planning", "compiling", "assembling", "archiving", "linking", "placing", "writing", "buildtool")
# Prints the programs that the build's own process starts: the service, but no compilers.
TOLD = """
import subprocess
class Told(subprocess.Popen):
    def __init__(self, args, *more, **named):
        print("started", *args, flush=True)
        super().__init__(args, *more, **named)
subprocess.Popen = Told
"""
# A fake compiler whose objects are their sources' bytes: a comment in a kernel changes its object.
FAKE = """\
#!/usr/bin/env bash
given=("$@") output= sources=()
while (($#)); do
    case $1 in
        --version) exec {real} --version ;;
        -v) echo " $0 -cc1" >&2 ;;
        -o) output=$2; shift ;;
        -Map=*) : >"${{1#-Map=}}" ;;
        -isystem | -T | -I) shift ;;
        -*) ;;
        *) sources+=("$1") ;;
    esac
    shift
done
cat "${{sources[@]}}" > "$output"
"""


# A fake file system without times: by its stamp, each file is the one that was read first.
LYING = """
import buildtool.base.digests
buildtool.base.digests.stamp = lambda there: (0, 0, 0, 0)
buildtool.base.digests.at_rest = lambda there, when: True
buildtool.base.digests.MAPPED_NS = -(1 << 62)
"""


class Tree:
    """A folder with the SConstruct and its tools. `home` is the checkout of the buildtool that they use."""

    def __init__(self, folder: Path, home: Path, variables: dict[str, str]) -> None:
        self.folder, self.home = with_tools(folder), home
        self.variables = variables | {"XDG_CACHE_HOME": str(folder.parent / "cache")}
        (folder / "site_scons/site_init.py").write_text(TOLD)

    def scons(self, *words: str) -> str:
        return scons(self.folder, *words, home=self.home, **self.variables)

    def ran(self, *words: str) -> list[str]:
        """The programs that ran, in order, with paths relative to the build's or the checkout's folder."""
        lines = [line for line in self.scons(*words).splitlines() if line.startswith(VERBS)]
        return [line.replace(f"{self.home}/", "") for line in lines]

    def times(self, below: str) -> dict[str, int]:
        paths = (self.folder / below).rglob("*")
        return {str(path): path.stat().st_mtime_ns for path in paths if path.is_file()}


def weights_in(elf: Path) -> bytes:
    """The weight image in a linked program, found by its magic."""
    data = elf.read_bytes()
    return data[data.index(MAGIC) :]


M4 = "build/cortex-m4/net"
NETWORK = [
    f"compiling {M4}/src/net.c",
    "compiling plugins/buildtool_plugins/harness/harness.c",  # includes the network's header
]
IMAGE = [
    f"archiving {M4}/libnet_reserving.a",
    f"linking {M4}/linked/net.elf",
]
WEIGHTS = [
    f"placing weights in {M4}/net.elf",
    f"buildtool sizes {M4}/net.elf --board cortex-m4 --out {M4}",
]


@pytest.mark.slow
def test_only_what_a_change_concerns_is_made_anew(tmp_path, tmp_path_factory):
    """A sequence of builds; each starts from the one before it."""
    tree = Tree(tmp_path / "tree", ROOT, once_compiled(tmp_path_factory))
    words = ["board=cortex-m4", "model=net.tflite"]
    model = tree.folder / "net.tflite"
    image, elf = tree.folder / f"{M4}/src/net_weights.bin", tree.folder / f"{M4}/net.elf"
    model.write_bytes(zoo.build("ds_cnn"))

    first = tree.ran("-j1", *words)  # of two jobs, the lines may run into one another
    of_network = [
        *("planning net.tflite", NETWORK[0], f"assembling {M4}/src/net_weights.S", *IMAGE, *WEIGHTS),
        *("writing build/cortex-m4/cortex-m4.ld", "writing compile_commands.json"),
    ]
    of_board = [line for line in first if "kernels/" in line or "_plugins/" in line]
    assert sorted(set(first) - set(of_board)) == sorted(of_network)
    assert tree.ran(*words) == []

    # retrained: weights, scales, zero points, names
    before = image.read_bytes()
    model.write_bytes(retrained_model(model.read_bytes(), seed=1))
    output = tree.scons("--debug=explain", *words)
    assert [line for line in output.splitlines() if line.startswith(VERBS)] == [
        "planning net.tflite",
        *WEIGHTS,
    ]
    assert f"rebuilding `{M4}/src/net.c' because `net.tflite' changed" in output
    assert f"rebuilding `{M4}/net.elf' because `{M4}/src/net_weights.bin' changed" in output
    assert image.read_bytes() != before
    assert len(image.read_bytes()) == len(before)
    assert weights_in(elf).startswith(image.read_bytes())
    assert os.access(elf, os.X_OK)

    # a limit that the plan keeps, and one that it does not
    assert tree.ran("ram=20K", *words) == ["planning net.tflite"]
    output = tree.scons("ram=8K", "--debug=explain", *words)
    new = [
        "compiling kernels/reference/nn_accumulate_s8.c",
        "compiling kernels/reference/nn_avg_pool_sums_s8.c",
    ]
    assert sorted(
        line.replace(f"{ROOT}/", "") for line in output.splitlines() if line.startswith(VERBS)
    ) == sorted(["planning net.tflite", *NETWORK, *new, *IMAGE, *WEIGHTS])
    for limit, what in (("20K", "is no longer a dependency"), ("8K", "is a new dependency")):
        request = f"the request board=cortex-m4 model=net.tflite ram={limit}, of digest"
        assert re.search(rf"`{request} [0-9a-f]{{16}}' {what}", output)

    # a target that another program wrote is built again with its dependants; then everything is up to date
    source = tree.folder / f"{M4}/src/net.c"
    source.write_bytes(source.read_bytes() + b"int mine;\n")
    output = tree.scons("ram=8K", "--debug=explain", *words)
    assert f"rebuilding `{M4}/src/net.c' because `the file itself' changed" in output
    assert f"rebuilding `{M4}/obj/net.o' because `{M4}/src/net.c' changed" in output

    # another board: its own folder, and nothing of the first changes
    before_m4 = tree.times("build/cortex-m4")
    parts = (f"{M4}/net.elf", "build/host/net/obj/net.o")
    ran = tree.ran("-j1", "ram=8K", "board=cortex-m4,host", "model=net.tflite", *parts)
    assert tree.times("build/cortex-m4") == before_m4
    assert ran == ["planning net.tflite", "compiling build/host/net/src/net.c"]

    # the firmware image with placed weights computes the reference's outputs
    output = tree.scons("ram=8K", "run", *words)
    assert output.rstrip().endswith("'s reference kernels, to the bit")

    # nothing to do: no line, no service; only the compiler's identity is checked
    lines = tree.scons("ram=8K", *words).splitlines()
    asked = [
        line for line in lines if line.startswith("started ") and re.search(r" empty\.| --version$", line)
    ]
    assert [line for line in lines if not line.endswith("is up to date.") and line not in asked] == []

    # another plan, from a file
    request = {"model": str(model), "board": "cortex-m4", "options": {"ram": "20K"}}
    (tree.folder / "net.plan").write_bytes(handle({"kind": "plan", **request})["locked"])
    assert set(tree.ran("plan=net.plan", *words)) == {"planning net.tflite", *NETWORK, *IMAGE, *WEIGHTS}

    # another topology: the kernels that no network has called yet; then all of it is removed
    listed = tree.folder / f"{M4}/src/net_kernels.txt"
    before_kernels = {*listed.read_text().split(), "reference/nn_accumulate_s8.o"}
    model.write_bytes(zoo.build("resnet8"))
    ran = tree.ran(*words)
    kernels = {line.split("kernels/")[1].replace(".c", ".o") for line in ran if "compiling kernels/" in line}
    assert kernels == set(listed.read_text().split()) - before_kernels and kernels
    assert set(NETWORK) <= set(ran)
    tree.scons("-c", *words)
    assert tree.times("build/cortex-m4") == {}


def quick_tree(folder: Path, below: Path, home: Path = ROOT) -> tuple[Tree, Path]:
    """A tree in `folder` whose compiler is a script that never changes, and the program that it runs."""
    compiler, behind = below / "compilers/clang", below / "behind/compiler"
    for path in (compiler, behind):
        path.parent.mkdir(parents=True)
    compiler.write_text(f'#!/bin/sh\nexec {behind} "$@"\n')
    behind.write_text(FAKE.format(real=find_clang().path))
    for path in (compiler, behind):
        path.chmod(0o755)
    tree = Tree(folder, home, {"BUILDTOOL_CLANG": str(compiler)})
    (tree.folder / "net.tflite").write_bytes(zoo.build("ds_cnn"))
    return tree, behind


@pytest.mark.slow
def test_another_compiler_compiles_everything_and_another_kernel_itself(tmp_path: Path) -> None:
    """The compiler is behind an unchanged script. The checkout is a copy, so that kernels can be changed."""
    home = tmp_path / "home"
    for name in ("buildtool", "plugins", "kernels"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    tree, behind = quick_tree(tmp_path / "tree", tmp_path, home)
    words = ["board=cortex-m4", "model=net.tflite", f"{M4}/linked/net.elf"]
    first = tree.ran("-j1", *words)
    assert len(first) > 20
    with behind.open("a") as file:
        file.write('printf other >> "$output"\n')
    made = [line for line in first if line.startswith(("compiling", "assembling", "archiving", "linking"))]
    assert tree.ran("-j1", *words) == made
    assert (tree.folder / f"{M4}/linked/net.elf").read_bytes().endswith(b"other")
    assert tree.ran(*words) == []

    called = ["cortex_m_dsp/nn_conv2d_s8_dsp.c", "reference/nn_softmax_s8.c"]
    for name in (*called, "reference/nn_add_s8.c"):  # which the network does not call
        with (home / "kernels" / name).open("a") as file:
            file.write("/* A remark. */\n")
    found = tree.ran("-j1", *words)
    assert sorted(found[:2]) == [f"compiling kernels/{name}" for name in called]
    assert found[2:] == IMAGE
    assert tree.ran(*words) == []


OWN = """
import os
DefaultEnvironment(tools=[])
env = Environment(tools=["cc", "c++", "link", "ar", "as", "buildtool_network"], ENV=dict(os.environ))
env.UseBoard("cortex-m4")
env.Replace(CXX=env["CC"])
app = env.Clone()
app.Append(CCFLAGS=["-DAPP"])
app.Object("one.o", "one.c")
app.StaticLibrary("two", ["two.c", "three.S", "four.cpp"])
"""


@pytest.mark.slow
def test_the_users_own_objects_are_compiled_again_by_another_compiler_behind_an_unchanged_script(tmp_path):
    """Also after a change of the compiler's environment variables, which SCons does not track either."""
    tree, behind = quick_tree(tmp_path / "tree", tmp_path)
    (tree.folder / "SConstruct").write_text(OWN)
    names = ("one.c", "two.c", "three.S", "four.cpp")
    for name in names:
        (tree.folder / name).touch()
    objects = sorted(f"{'assembling' if name.endswith('S') else 'compiling'} {name}" for name in names)

    def made() -> list[str]:
        return sorted(line for line in tree.ran() if line.split(" ")[1] in names)

    assert made() == objects
    assert made() == []
    with behind.open("a") as file:
        file.write('printf other >> "$output"\n')
    assert made() == objects
    assert (tree.folder / "one.o").read_bytes() == b"other"
    tree.variables["CCC_OVERRIDE_OPTIONS"] = "# +-O1"
    assert made() == objects
    assert made() == []


@pytest.mark.slow
def test_hash_inputs_reads_every_file_again(tmp_path: Path) -> None:
    """All cached facts about files are wrong here."""
    tree, _ = quick_tree(tmp_path / "tree", tmp_path)
    tree.variables["PYTHONPATH"] = f"{tmp_path}:{ROOT}"
    (tmp_path / "sitecustomize.py").write_text(LYING)
    words = ["board=cortex-m4", "model=net.tflite", f"{M4}/src/net_weights.bin"]
    tree.ran(*words)
    model = tree.folder / "net.tflite"
    model.write_bytes(retrained_model(model.read_bytes(), seed=5))
    assert tree.ran(*words) == []
    assert tree.ran("hash_inputs=1", *words) == ["planning net.tflite"]


TWO_BOARDS = """
DefaultEnvironment(tools=[])
env = Environment(tools=["buildtool_network"])
env.UseBoard("cortex-m4")
env.NeuralNetwork("net.tflite")
other = env.Clone()
other.UseBoard("cortex-m55")
other.NeuralNetwork("net.tflite")
"""


@pytest.mark.slow
def test_an_environment_that_was_cloned_for_another_board_compiles_that_boards_kernels(tmp_path):
    tree, _ = quick_tree(tmp_path / "tree", tmp_path)
    (tree.folder / "SConstruct").write_text(TWO_BOARDS)
    assert tree.ran("build").count("compiling kernels/runtime/nn_image.c") == 2
    for board in ("cortex-m4", "cortex-m55"):
        listed = (tree.folder / f"build/{board}/net/src/net_kernels.txt").read_text().split()
        compiled = tree.times(f"build/{board}/kernels")
        assert sorted(compiled) == sorted(f"{tree.folder}/build/{board}/kernels/{name}" for name in listed)
