"""The description of a build agrees with what is emitted, compiled and linked, and needs no model."""

import functools
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from needs import needs_tool
from onecompile import once_compiled
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import ToolError, UsageError
from buildtool.fronts.cli import main as cli
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import board_names, load_target

NET = "ds_cnn"
FAMILIES = ["host", "cortex-m4", "cortex-m55", "hifive1", "qemu-virt-rv32v", "xcore"]
FOREIGN = ("esp32", "esp32-s3", "esp32-s3-psram")  # built by compilers that no registry has
PLANS = [{}, {"image": "stream", "objective": "ram"}]


@pytest.fixture(scope="module", autouse=True)
def compilers(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in once_compiled(tmp_path_factory).items():
            patch.setenv(name, value)
        yield


@functools.cache
def described(board, model=NET, **more):
    return handle({"kind": "describe", "board": board, "model": model, **more})


def group(answer, name):
    return next(group for group in answer["groups"] if group["name"] == name)


def path(answer, place, emitted):
    """The path of a place on this machine."""
    if place["root"] == "emitted":
        return emitted / place["path"]
    return Path(answer["roots"].get(place["root"], ""), place["path"])


class Front:
    """A very small build system: it turns an answer into commands, and runs them."""

    def __init__(self, answer, folder):
        self.answer, self.tools, self.folder = answer, answer["tools"], folder
        self.emitted = folder / "emitted"
        self.emitted.mkdir()

    def emit(self, request):
        answer = handle({"kind": "emit", **request})
        assert sorted(answer["files"]) == sorted(self.answer["network"]["emitted"])
        assert answer["net"] == self.answer["network"]["net"]
        for name, data in answer["files"].items():
            (self.emitted / name).write_bytes(data)

    def objects(self, name):
        sources = group(self.answer, name)
        includes = [f"-I{path(self.answer, place, self.emitted)}" for place in sources["includes"]]
        objects: list[Path] = []
        for source in sources["sources"]:
            if name == "kernels" and source["object"] not in self.called():
                continue
            objects.append(self.folder / name / source["object"])
            if name == "kernels" and objects[-1].is_file():
                continue  # it is the same for all networks and plans
            objects[-1].parent.mkdir(parents=True, exist_ok=True)
            reads = [path(self.answer, place, self.emitted) for place in source["reads"]]
            assert all(file.is_file() for file in reads)
            flags = [f"{self.tools['incbin']}{file.parent}" for file in reads]
            file = path(self.answer, source["file"], self.emitted)
            self.run(
                self.tools["cc"], *self.tools["cflags"], *includes, *flags, "-c", file, "-o", objects[-1]
            )
        return objects

    def called(self):
        """The objects of the kernels that the network needs."""
        return (self.emitted / self.answer["network"]["kernels"]).read_text().split()

    def image(self):
        library = self.folder / self.answer["network"]["library"]
        library.unlink(missing_ok=True)
        members = [object_ for name in self.answer["library"] for object_ in self.objects(name)]
        self.run(self.tools["ar"], *self.tools["arflags"], library, *members)
        objects = [object_ for name in self.answer["image"] for object_ in self.objects(name)]
        image, flags = self.folder / self.answer["network"]["image"], (*self.tools["ldflags"], *self.script())
        self.run(self.tools["cc"], *self.tools["cflags"], *objects, library, *flags, "-o", image)
        return image

    def script(self):
        script = self.answer["script"]
        if script is None:
            return []
        (self.folder / script["name"]).write_bytes(script["data"])
        return [f"{script['flag']}{self.folder / script['name']}"]

    def command(self, name, **slots):
        words = self.answer["commands"][name]
        assert cli.run([word if isinstance(word, str) else str(slots[word["slot"]]) for word in words]) == 0

    def run(self, *words):
        process = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("board", ["cortex-m4", "hifive1", "xcore"])  # for other boards see the builds below
def test_the_files_are_those_that_are_emitted_whatever_the_plan(board, tmp_path):
    front = Front(described(board), tmp_path)
    for options in PLANS:
        front.emit({"model": NET, "board": board, "options": options})


@pytest.mark.slow  # the fast tests do the same with SCons (tests/scons)
@pytest.mark.parametrize(
    ("board", "toolchain", "net", "plans"),
    [
        ("cortex-m4", "gcc", NET, PLANS),
        ("xcore", None, "autoencoder", PLANS[:1]),  # of few kernels, which take long to compile
    ],
)
def test_builds_made_from_the_answer_alone_are_exact(board, toolchain, net, plans, tmp_path, capsys):
    if toolchain == "gcc":
        needs_tool("arm-none-eabi-gcc")
    front = Front(described(board, net, toolchain=toolchain), tmp_path)
    for options in plans:
        front.emit({"model": net, "board": board, "options": options})
        image = front.image()
        plan = front.emitted / front.answer["network"]["plan"]
        front.command("validate", model=net, board=board, image=image, plan=plan)
        assert capsys.readouterr().out.rstrip().endswith("'s reference kernels, to the bit")
    front.command("sizes", image=image, board=board, out=tmp_path)
    names = [*front.answer["network"]["binaries"], front.answer["network"]["report"]]
    assert all((tmp_path / name).is_file() for name in names)
    assert {file.name for file in tmp_path.glob("*.bin")} == set(front.answer["network"]["binaries"])


@pytest.mark.parametrize("board", [name for name in board_names() if name not in FOREIGN])
def test_the_library_is_the_whole_of_the_boards_kernels(board):
    kernels = group(described(board), "kernels")
    files = {path(described(board), source["file"], ROOT) for source in kernels["sources"]}
    assert kernels_root() / "runtime" / "nn_image.c" in files
    for family in (*load_target(board).board.core.families, "reference"):
        assert set((kernels_root() / family).glob("*.c")) <= files
    assert len({source["object"] for source in kernels["sources"]}) == len(files)


def test_no_model_is_read_and_the_network_is_called_as_its_file(tmp_path):
    network = described("host", str(tmp_path / "Wake Word.tflite"))["network"]
    assert network["net"] == "wake_word"
    names = described("host")["network"]["emitted"]
    assert network["emitted"] == [name.replace(NET, "wake_word") for name in names]
    assert described("host", str(tmp_path / "a.onnx"), name="mine")["network"]["net"] == "mine"
    assert described("host", "ds_cnn:seed=3")["network"]["net"] == "ds_cnn_seed3"
    unread = {"path": str(tmp_path / "b.tflite"), "sha256": "0" * 64}
    assert handle({"kind": "describe", "board": "host", "model": unread})["network"]["net"] == "b"


@pytest.mark.parametrize("board", FAMILIES)
def test_the_answer_is_plain_values_and_always_the_same(board):
    first, second = (msgpack.packb(handle({"kind": "describe", "board": board, "model": NET})) for _ in "12")
    assert first == second
    answer = msgpack.unpackb(first)
    for row in [*answer["groups"], *filter(None, [answer["serial"]])]:
        for place in [*row["includes"], *(source["file"] for source in row["sources"])]:
            assert place["root"] in ("emitted", *answer["roots"]), place
            assert not Path(place["path"]).is_absolute()


def test_an_application_gets_the_driver_of_the_boards_serial_port():
    port = described("stm32f746g-disco")["serial"]
    assert [Path(source["file"]["path"]).name for source in port["sources"]] == ["stm32_usart_v2.c"]
    assert {f"-DWIRE_BASE={0x40011000}u", "-DWIRE_TX_PIN=9", "-DWIRE_CORE_HZ=216000000u"} < {*port["flags"]}
    assert not {*port["flags"]} & {*described("stm32f746g-disco")["tools"]["cflags"]}
    assert described("host")["serial"] is None


@pytest.mark.parametrize("toolchain", ["clang", "gcc"])
def test_what_a_board_takes_from_its_base_is_in_the_answer_and_the_base_among_the_files(toolchain, tmp_path):
    """RAM and stack are in the linker script, and the core's flags are in the flags of every source."""
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    mine.write_text('extends = "base.toml"\n')

    def described(text):
        base.write_text(f'extends = "cortex-m4"\n{text}\n')
        answer = handle({"kind": "describe", "board": str(mine), "toolchain": toolchain})
        files = [path(answer, place, tmp_path) for place in answer["depends"]]
        core = "cortex-m4.toml"  # the board's file, and its core's
        assert [file.name for file in files] == ["mine.toml", "base.toml", "cortex-m4.toml", core]
        assert all(file.is_file() for file in files)
        assert answer["script"]["name"] == "mine.ld"
        return answer

    plain = described("")
    for text in ('stack_bytes = "4K"', '[memory.psram]\nsize = "9K"'):
        assert described(text)["script"]["data"] != plain["script"]["data"]
    flags = described('[core]\ncflags = ["-mcpu=cortex-m4", "-mthumb"]')["tools"]["cflags"]
    assert flags != plain["tools"]["cflags"]


def test_mistakes_are_refused():
    for request, error, words in (
        ({"board": "cortex-m5"}, UsageError, "unknown board"),
        ({"board": "host", "model": "ds_cn"}, UsageError, "no zoo network is called"),
        ({"board": "cortex-m4", "toolchain": "clangg"}, ToolError, "has no toolchain"),
        ({"board": "host", "name": "x"}, UsageError, "no effect without a model"),
        ({"board": "host", "model": NET, "image_version": "1.2"}, UsageError, "no effect without 'sign'"),
        ({"board": "host", "modle": NET}, UsageError, "modle"),
        ({"board": "host", "options": {"ram": "8K"}}, UsageError, "ram"),
    ):
        with pytest.raises(error, match=words):
            handle({"kind": "describe", **request})


def test_a_library_of_the_users_is_part_of_the_answer():
    library = ROOT / "tests/support/cmsis_nn"
    answer = handle({"kind": "describe", "board": "cortex-m4", "model": NET, "cmsis_nn": str(library)})
    assert answer["roots"]["library"] == str(library)
    startup = [source["file"] for source in group(answer, "startup")["sources"]]
    assert {"root": "library", "path": "Source/stand_in_s8.c"} in startup
    assert "--cmsis-nn" in answer["commands"]["profile"]


def test_describing_imports_neither_numpy_nor_the_planner():
    """A build with nothing to do waits for this answer, too."""
    code = f"""
import sys
from buildtool.api import handle
handle({{"kind": "describe", "board": "host", "model": "{NET}"}})
heavy = {{name for name in sys.modules if name in ("numpy", "tflite") or name.startswith("buildtool.plan.")}}
print(*heavy - {{"buildtool.plan.models"}})
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert process.stdout.split() == []
