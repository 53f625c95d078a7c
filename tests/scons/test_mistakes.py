"""Mistakes in a user's SConstruct: errors end at the user's line, without lines of the tools."""

from pathlib import Path

import pytest
from paths import ROOT
from programs import scons

from buildtool import zoo

BEGIN = f"""
env = Environment(
    tools=["cc", "link", "ar", "as", "buildtool_network"], toolpath=[{str(ROOT / "site_scons/site_tools")!r}]
)
"""
BOARD = 'env.UseBoard("cortex-m4")\n'
NETWORK = BOARD + 'net = env.NeuralNetwork("own.tflite")\n'
OTHERS = BOARD + 'env.Command("build/cortex-m4/own/src/own.c", [], "")\n'

# (The script; its last line has the mistake), (what the error says), (is it one of the fast tier).
AT_READ_TIME = [
    (
        'env.UseBoard("cortex-m5")',
        "unknown board 'cortex-m5' [USAGE]\n  hint: did you mean 'cortex-m55'?",
        True,
    ),
    ('env.UseBoard("mine.toml")', "mine.toml: error: there is no such board file", False),
    ('env.UseBoard("cortex-m4", toolchain="icc")', "board 'cortex-m4' has no toolchain 'icc'", False),
    ('env.UseBoard("cortex-m4", thraeds=2)', "UseBoard has no option 'thraeds': did you mean", True),
    ('env.UseBoard("cortex-m4", threads="many")', "threads: 'many' is not a whole number", False),
    ("env.UseBoard()", "UseBoard: missing a required argument: 'board'", True),
    ('env.NeuralNetwork("own.tflite")', "NeuralNetwork needs a board [USAGE]\n  hint: call UseBoard", True),
    (BOARD + 'env.NeuralNetwork("own.tflite", rma="64K")', "no option 'rma': did you mean 'ram'?", False),
    (BOARD + 'env.NeuralNetwork("own.tflite", ram=[64])', "ram: [64] is not a number of bytes", True),
    (BOARD + 'env.NeuralNetwork("own.tflite", strategy="bset")', "hint: did you mean 'best'?", False),
    (BOARD + 'env.NeuralNetwork("own.tflite", name=3)', "is a C identifier in lower case, not '3'", False),
    (
        BOARD + 'env.NeuralNetwork("owm.tflite")',
        "owm.tflite: error: cannot read the model: there is no",
        True,
    ),
    (BOARD + "env.NeuralNetwork(64)", "model: 64 is neither a name nor a file", False),
    (
        BOARD + 'env.NeuralNetwork("own.tflite", plan="own.plan")',
        "own.plan: error: cannot read the plan",
        False,
    ),
    (
        NETWORK + 'env.NetworkFirmware(net, formats="elf")',
        "formats: 'elf' is not one of bin, hex, uf2",
        False,
    ),
    (NETWORK + "env.NetworkFirmware(net.library)", "needs the network that NeuralNetwork returned", False),
    (NETWORK + 'env.RunNetwork(net, "own.elf")', "RunNetwork needs the network's firmware", False),
    (
        NETWORK + 'env.RunNetwork(net, env.NetworkFirmware(net), inputs="many")',
        "inputs: 'many' is not",
        False,
    ),
    (
        NETWORK + 'env.NeuralNetwork("own.tflite", ram="64K")',
        ":1: error: the network at SConstruct:6:7",
        False,
    ),
    (
        OTHERS + 'env.NeuralNetwork("own.tflite")',
        "different actions were specified for the same target",
        False,
    ),
]


def write(folder: Path, script: str) -> int:
    """Writes an SConstruct that ends with `script`, and a model. Returns the number of its last line."""
    text = BEGIN + script + "\n"
    (folder / "SConstruct").write_text(text)
    (folder / "own.tflite").write_bytes(zoo.build("ds_cnn"))
    return text.count("\n")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(script, expected, marks=() if is_fast else pytest.mark.slow)
        for script, expected, is_fast in AT_READ_TIME
    ],
)
def test_an_error_while_scons_reads_ends_at_the_users_line(
    tmp_path: Path, script: str, expected: str
) -> None:
    line = write(tmp_path, script)
    said = scons(tmp_path, status=2)
    assert expected in said
    assert said.endswith(f'File "{tmp_path}/SConstruct", line {line}, in <module>\n')
    assert "site_tools" not in said and "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (zoo.build("ds_cnn"), 'ram="4K"', "the limit is 4,096: 464 too many"),
        (zoo.build("ds_cnn"), 'ram="4K", strategy="layerwise"', "hint: ram=8880; strategy=best ram="),
        (zoo.build("ds_cnn")[:3000], "", "own.tflite: error: the file is damaged"),
        (b"no model", "", "own.tflite: error: not a TensorFlow Lite file"),
    ],
)
def test_an_error_of_the_planner_ends_at_the_users_line(
    tmp_path: Path, model: bytes, options: str, expected: str
) -> None:
    line = write(tmp_path, BOARD + f'env.NeuralNetwork("own.tflite", {options})')
    (tmp_path / "own.tflite").write_bytes(model)
    said = scons(tmp_path, "build/cortex-m4/own/src/own.c", status=2)
    assert expected in said
    *_, note, of_scons = said.splitlines()
    assert note == f"SConstruct:{line}:1: note: requested here"
    assert of_scons == "scons: *** [build/cortex-m4/own/src/own.c] Error 1"


@pytest.mark.slow
def test_a_call_that_moves_to_another_line_builds_nothing_again(tmp_path: Path) -> None:
    """The lines for errors are no part of a command."""
    write(tmp_path, NETWORK.replace("cortex-m4", "host") + "env.NetworkFirmware(net)")
    scons(tmp_path, "-j2")
    script = tmp_path / "SConstruct"
    script.write_text("# A remark.\n" + script.read_text())
    assert scons(tmp_path) == "scons: `.' is up to date.\n"


@pytest.mark.slow
def test_a_model_and_a_board_may_be_nodes(tmp_path: Path) -> None:
    """As other tools of SCons return them."""
    (tmp_path / "mine.toml").write_text('extends = "cortex-m4"\n')
    write(
        tmp_path,
        'env.UseBoard(env.File("mine.toml"))\n'
        'env.NeuralNetwork(env.Command("copy.tflite", "own.tflite", Copy("$TARGET", "$SOURCE")))',
    )
    assert "planning copy.tflite" in scons(tmp_path, "build/mine/copy/src/copy.c")
