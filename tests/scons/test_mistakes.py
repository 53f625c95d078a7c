"""Mistakes in a user's SConstruct: errors end at the user's line, without lines of the tools."""

from pathlib import Path

import pytest
from paths import ROOT
from programs import scons

from buildtool import zoo

BEGIN = f"""
env = Environment(
    tools=["buildtool_network"], toolpath=[{str(ROOT / "site_scons/site_tools")!r}]
)
"""
BOARD = 'env.UseBoard("cortex-m4")\n'
NETWORK = BOARD + 'net = env.NeuralNetwork("own.tflite")\n'
TWO = NETWORK + 'other = env.NeuralNetwork("own.tflite", "elsewhere", ram="64K")\n'
OTHERS = BOARD + 'env.Command("build/cortex-m4/own/src/own.c", [], "")\n'

# (The script; its last line has the mistake), (what the error says).
AT_READ_TIME = [
    ('env.UseBoard("cortex-m5")', "unknown board 'cortex-m5' [USAGE]\n  hint: did you mean 'cortex-m55'?"),
    ('env.UseBoard("mine.toml")', "mine.toml: error: there is no such board file"),
    ('env.UseBoard("cortex-m4", toolchain="icc")', "board 'cortex-m4' has no toolchain 'icc'"),
    ('env.UseBoard("cortex-m4", thraeds=2)', "UseBoard has no option 'thraeds': did you mean"),
    ('env.UseBoard("cortex-m4", ram="64K")', "no option 'ram': it is an option of NeuralNetwork"),
    ('env.UseBoard("cortex-m4", threads="many")', "threads: 'many' is not a whole number"),
    ("env.UseBoard()", "UseBoard: missing a required argument: 'board'"),
    ('env.NeuralNetwork("own.tflite")', "NeuralNetwork needs a board [USAGE]\n  hint: call UseBoard"),
    (BOARD + 'env.NeuralNetwork("own.tflite", rma="64K")', "no option 'rma': did you mean 'ram'?"),
    (BOARD + 'env.NeuralNetwork("own.tflite", cmsis_nn="x")', "it is an option of UseBoard"),
    (BOARD + 'env.NeuralNetwork("own.tflite", ram=[64])', "ram: [64] is not a number of bytes"),
    (BOARD + 'env.NeuralNetwork("own.tflite", strategy="bset")', "hint: did you mean 'best'?"),
    (BOARD + 'env.NeuralNetwork("own.tflite", name=3)', "is a C identifier in lower case, not '3'"),
    (BOARD + 'env.NeuralNetwork("owm.tflite")', "owm.tflite: error: cannot read the model: there is no"),
    (BOARD + "env.NeuralNetwork(64)", "model: 64 is neither a name nor a file"),
    (BOARD + 'env.NeuralNetwork("own.tflite", plan="own.plan")', "own.plan: error: cannot read the plan"),
    (NETWORK + 'env.NetworkFirmware(net, formats="elf")', "formats: 'elf' is not one of bin, hex, uf2"),
    (NETWORK + "env.NetworkFirmware(net.library)", "needs the network that NeuralNetwork returned"),
    (NETWORK + 'env.RunNetwork(net, "own.elf")', "RunNetwork needs the network's firmware"),
    (NETWORK + 'env.RunNetwork(net, env.NetworkFirmware(net), inputs="many")', "inputs: 'many' is not"),
    (NETWORK + 'env.NeuralNetwork("own.tflite", ram="64K")', "is called 'own' too"),
    (TWO + 'env.Program("app", [net.library, other.library])', "'own.tflite' (SConstruct:"),
    (TWO + 'env.Program("app", net.library, LIBS=[other.reserving])', "called 'own': 'own.tflite'"),
    (NETWORK + 'env.NetworkFirmware(net, image_version="1.2.3")', "it has no effect without 'sign'"),
    (OTHERS + 'env.NeuralNetwork("own.tflite")', "different actions were specified for the same target"),
]


def write(folder: Path, script: str) -> int:
    """Writes an SConstruct that ends with `script`, and a model. Returns the number of its last line."""
    text = BEGIN + script + "\n"
    (folder / "SConstruct").write_text(text)
    (folder / "own.tflite").write_bytes(zoo.build("ds_cnn"))
    return text.count("\n")


# SCons itself reports one that the tool finds at once, one of the service, and one of SCons's own.
@pytest.mark.slow
@pytest.mark.parametrize(("script", "expected"), [AT_READ_TIME[at] for at in (3, 13, -1)])
def test_an_error_while_scons_reads_ends_at_the_users_line(
    tmp_path: Path, script: str, expected: str
) -> None:
    line = write(tmp_path, script)
    said = scons(tmp_path, status=2)
    assert expected in said
    assert said.endswith(f'File "{tmp_path}/SConstruct", line {line}, in <module>\n')
    assert "site_tools" not in said and "Traceback" not in said


@pytest.mark.slow
def test_every_mistake_is_told_with_the_users_line(tmp_path: Path) -> None:
    """One SConstruct makes all of them, and prints the errors."""
    text, lines = "from SCons.Errors import UserError\n", []
    for script, _ in AT_READ_TIME[:-1]:
        *before, last = script.splitlines()
        text += "\n".join([BEGIN, *before, "try:", f"    {last}", ""])
        lines.append(text.count("\n"))
        text += "except UserError as error:\n    print(f'{error}\\n=')\n"
    (tmp_path / "SConstruct").write_text(text)
    (tmp_path / "own.tflite").write_bytes(zoo.build("ds_cnn"))
    errors = scons(tmp_path, "-n").split("\n=\n")
    assert len(errors) == len(lines) + 1
    for (script, expected), line, error in zip(AT_READ_TIME, lines, errors, strict=False):
        assert expected in error
        assert f"SConstruct:{line}:" in error, script


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (zoo.build("ds_cnn"), 'ram="4K"', "the limit is 4,096: 256 too many"),
        (zoo.build("ds_cnn"), 'ram="4K", strategy="layerwise"', "hint: ram=8880; strategy=best ram="),
        (zoo.build("ds_cnn")[:3000], "", "own.tflite: error: the file is damaged"),
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
