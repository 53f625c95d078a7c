"""The command line: errors in one style, JSON alone on standard output, exit statuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from buildtool import __version__, zoo
from buildtool.base.code_digest import home
from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.fronts.cli import arguments
from buildtool.fronts.cli import main as cli

COMMAND = [sys.executable, "-m", "buildtool"]
NET = "ds_cnn"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["anlyze"], "error: unknown command 'anlyze' [USAGE]", "did you mean 'analyze'?"),
        (["plan"], "error: the following arguments are required: MODEL [USAGE]", "--help"),
        (["plan", NET, "--bord", "host"], "error: unknown option '--bord' [USAGE]", "'--board'"),
        (["plan", NET, "--boa", "host"], "error: unknown option '--boa' [USAGE]", "'--board'"),
        (["plan", NET, "-b", "hots"], "error: unknown board 'hots' [USAGE]", "'host'"),
        (
            ["plan", NET, "-b", "host", "--strategy", "layerwse"],
            "--strategy: 'layerwse' is not one of best",
            "'layerwise'",
        ),
        (["plan", NET, "-b", "host", "--in-place", "row"], "--in-place: 'row' is not one of rows", "'rows'"),
        (["plan", NET, "-b", "host", "--image", "residnt"], "--image: 'residnt' is not one of", "'resident'"),
        (["plan", "ds_cn", "-b", "host"], "is called 'ds_cn' [USAGE]", "'ds_cnn'"),
        (["plan", "no.tflite", "-b", "host"], "no.tflite: error: cannot read the model", "path"),
        (["validate", NET, "-b", "host", "--inputs", "0"], "--inputs: 0 is not a whole number above 0", ""),
        (["validate", NET, "-b", "host", "--seed", "-1"], "--seed: '-1' is not a whole number from 0", ""),
        (
            ["validate", NET, "-b", "host", "--reference", "litrt"],
            "--reference: 'litrt' is not one of",
            "'litert'",
        ),
        (["validate", NET, "-b", "cortex-m4", "--sanitize"], "--sanitize: sanitizers run", "--board host"),
        (
            ["validate", NET, "-b", "host", "--input", "x.npy", "--seed", "1"],
            "--seed: the input comes",
            "without --seed",
        ),
        (["zoo", "--out", "here"], "error: --out needs the name of a network", "buildtool zoo"),
        (["zoo", "ds_cn"], "'ds_cn'", "'ds_cnn'"),
        (["boards", "all"], "unknown action 'all'", "new"),
    ],
)
def test_a_mistake_in_usage_exits_2_with_a_hint(words, error, hint, capsys):
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    first, *others = err.splitlines()
    assert out == ""
    assert error in first
    assert len(others) == bool(hint) and all(line.startswith("  hint: ") and hint in line for line in others)


def test_an_error_in_the_model_exits_1_and_names_the_file_as_the_user_did(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for path in ("bad.tflite", str(tmp_path / "bad.tflite")):
        Path(path).write_bytes(b"\x1c\0\0\0TFL3 and no more")
        words = ["plan", path, "-b", "host"]
        assert cli.run(words) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"{path}: error: ") and "[MODEL]" in err
        assert cli.run([*words, "--json"]) == 1
        out, err = capsys.readouterr()
        error = json.loads(out)["error"]
        assert (err, error["code"], error["path"]) == ("", "MODEL", path)


@pytest.mark.parametrize(
    "words",
    [["boards"], ["ops"], ["zoo"], ["analyze", NET, "-b", "host"], ["plan", NET, "-b", "cortex-m4"]],
    ids=lambda words: words[0],
)
def test_json_is_all_that_is_printed_and_carries_a_schema(words, capsys):
    assert cli.run([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["schema"] == 1


def test_zoo_writes_the_networks_file_or_names_it(tmp_path, capsys):
    assert cli.run(["zoo", "ds_cnn:seed=1", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "written: ds_cnn_seed1.tflite\n"
    assert (tmp_path / "ds_cnn_seed1.tflite").read_bytes() == zoo.build("ds_cnn:seed=1")
    (tmp_path / "file").write_text("")
    assert cli.run(["zoo", NET, "--out", str(tmp_path / "file")]) == 2
    assert f"{tmp_path}/file/ds_cnn.tflite: error: cannot write" in capsys.readouterr().err


def test_version_and_usage_errors_load_no_numpy():
    code = """
import sys
from buildtool.fronts.cli import main as cli
try:
    cli.run(sys.argv[1:])
except SystemExit:
    pass
print("numpy" in sys.modules, "msgpack" in sys.modules)
"""
    for words in (["--version"], ["anlyze"], ["plan", "--help"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert result.stdout.splitlines()[-1] == "False False"


def test_an_interrupt_is_quiet():
    code = """
import sys
from buildtool.fronts.cli import main as cli
from buildtool import api as service
def interrupted(request, session):
    raise KeyboardInterrupt
service.handle = interrupted
sys.argv = ["buildtool", "boards"]
cli.main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.slow
def test_build_writes_firmware_and_a_report(tmp_path, capsys):
    out = tmp_path / "firmware"
    assert cli.run(["build", NET, "-b", "cortex-m4", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    names = sorted(path.name for path in out.iterdir())
    assert {"ds_cnn.elf", "ds_cnn.bin", "ds_cnn.h", "ds_cnn.c", "ds_cnn_weights.bin"} <= set(names)
    assert f"written to {out}: {', '.join(names)}" in " ".join(text.split())
    assert cli.run(["sizes", str(out / "ds_cnn.elf"), "-b", "cortex-m4", "--json"]) == 0
    for memory in json.loads(capsys.readouterr().out)["sizes"]:
        assert memory["used"] == sum(section["bytes"] for section in memory["sections"])
        if memory["used"]:
            assert f"{memory['used']:,}" in text


@pytest.mark.slow
def test_validate_takes_a_users_input_and_tells_a_difference(tmp_path, monkeypatch, capsys):
    path = tmp_path / "input.npy"
    np.save(path, np.zeros((49, 10, 1), np.int8))
    words = ["validate", NET, "-b", "host", "--input", str(path)]
    assert cli.run([*words, "--tensors"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("EQUAL to LiteRT ")

    from buildtool.firmware.run.judge import Judge

    right = Judge.refer

    def wrong(judge, inputs, reset):
        return {t: value ^ 1 for t, value in right(judge, inputs, reset).items()}

    monkeypatch.setattr(Judge, "refer", wrong)
    assert cli.run(words) == 1
    sentence = "kernels by up to 1: 1 input, 0 equal, 1 differs in 12 values; first in input 0 at #12 SOFTMAX"
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_what_follows_two_dashes_is_no_option(capsys):
    assert cli.run(["plan", "-b", "host", "--", "--json"]) == 2
    assert "no model file and no zoo network is called '--json'" in capsys.readouterr().err
    args = arguments.parse(["plan", "--board", "host", "--", "--net.tflite"])
    assert args.model == "--net.tflite"
    with pytest.raises(UsageError, match="unknown option '--boadr'"):
        arguments.parse(["plan", "--boadr", "host", "--", "--net.tflite"])


# ---- streams, and internal errors --------------------------------------------------------------------


def shell(line, **env):
    """Runs a shell line. $BUILDTOOL is the `buildtool` of these tests."""
    with_command = {**os.environ, "BUILDTOOL": " ".join(COMMAND), **env}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=with_command, check=False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("$BUILDTOOL boards > /dev/full", "No space left on device"),
        ("$BUILDTOOL boards --json > /dev/full", "No space left on device"),
        ("$BUILDTOOL --help > /dev/full", "No space left on device"),
        ("$BUILDTOOL boards >&-", "standard output is closed"),
        ("$BUILDTOOL boards --json >&- <&-", "standard output is closed"),
        ("$BUILDTOOL nothing --json >&-", "unknown command 'nothing' [USAGE]"),
    ],
)
def test_an_answer_that_nobody_can_take_is_an_error(line, says):
    result = shell(line)
    assert result.returncode == (2 if "nothing" in line else 1)
    assert says in result.stderr
    assert "Traceback" not in result.stderr and "Exception ignored" not in result.stderr


@pytest.mark.slow
def test_names_that_the_output_has_no_characters_for_are_escaped(tmp_path):
    (tmp_path / "n\u00e4tz.tflite").write_bytes(zoo.build("ds_cnn"))
    for env in (
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ):
        result = shell(f"cd {tmp_path} && $BUILDTOOL plan n*.tflite -b host --strategy layerwise", **env)
        assert result.returncode == 0, result.stderr
        assert "tz on host: layerwise" in result.stdout


@pytest.mark.parametrize(
    "words",
    [["--json"], ["plan", "--json", "--nope"], ["plan", NET, "--json", "--board"], ["nothing", "--json"],
     ["boards", "--json=3"], ["zoo", NET, "--json", "--out", "/dev/null/x"]],
    ids=" ".join,
)  # fmt: skip
def test_with_json_every_error_is_one_document(words, capsys):
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["error"]["code"] == "USAGE"


def test_a_fault_of_ours_says_what_was_asked_and_how_to_report_it(monkeypatch, capsys):
    def fail(_request, _session):
        raise KeyError("lost")

    monkeypatch.setattr("buildtool.api.handle", fail)
    assert cli.run(["boards"]) == cli.INTERNAL == 70
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0].startswith("error: internal error: KeyError: 'lost' (test_cli.py:")
    assert "please report it" in lines[1]
    assert lines[2] == "  asked: buildtool boards"
    assert "KeyError: 'lost'" in lines[-1]
    assert cli.run(["boards", "--json"]) == 70
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (err, answer["error"]["code"]) == ("", "INTERNAL")
    assert answer["report"]["asked"] == "buildtool boards --json"
    assert "KeyError: 'lost'" in answer["report"]["traceback"][-1]


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (OSError(28, "No space left on device", "/tmp/x.o"), "/tmp/x.o: error: the system refuses: No space"),
        (PermissionError(13, "Permission denied", "/a"), "/a: error: the system refuses: Permission denied"),
        (MemoryError(), "error: this needs more memory than the machine has [MACHINE]"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/x']"), "(TMPDIR)"),
        (
            BuildtoolError("it broke", path="net.tflite", operator="#3 ADD"),
            "net.tflite: error: #3 ADD: it broke [ERROR]\n",
        ),
    ],
    ids=["disk", "permission", "memory", "no folder", "error of ours"],
)
def test_errors_below_the_surface_and_what_the_machine_refuses_exit_1(refused, says, monkeypatch, capsys):
    def fail(_request, _session):
        raise refused

    monkeypatch.setattr("buildtool.api.handle", fail)
    assert cli.run(["boards"]) == 1
    assert says in capsys.readouterr().err


def test_a_network_of_no_operators_ends_like_any_other(tmp_path, capsys):
    from flatfiles import FileTensor
    from samplefiles import Sheet

    sheet = Sheet()
    x = sheet.add(FileTensor((1, 4)))
    path = tmp_path / "nothing.tflite"
    path.write_bytes(sheet.bytes([x], [x]))
    for board in ("host", "xcore"):
        words = ["plan", str(path), "-b", board]
        for more in ([], ["--objective", "ram"]):
            assert cli.run([*words, *more]) == 0
            assert cli.run([*words, *more, "--ram", "8"]) == 1
            assert "requires 16 bytes" in capsys.readouterr().err


def test_the_version_names_the_package_and_where_it_lies(capsys):
    assert cli.run(["--version"]) == 0
    output = capsys.readouterr().out
    assert output == f"buildtool {__version__}, from buildtool-mcu in {home()}\n"
    installed = Path(sys.executable).with_name("buildtool")
    assert subprocess.run([installed, "--version"], capture_output=True, text=True).stdout == output
