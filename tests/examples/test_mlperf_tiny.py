"""The example for MLPerf Tiny: the protocol, its arithmetic, and all four networks on an emulated board."""

import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from buildtool_plugins.tools.find import find_host_compiler
from needs import needs_package, needs_tool
from onecompile import once_compiled
from paths import KERNELS, MODELS, ROOT, TESTS
from programs import SCONS, copied, said

from buildtool.api import handle

SOURCES = ("protocol.c", "text.c", "network.c", "host.c")
FLAGS = ("-std=c99", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
TRAINED = {"kws": "mlperf_kws", "vww": "mlperf_vww96", "ic": "mlperf_resnet8", "ad": "mlperf_ad"}
TWINS = {"kws": "ds_cnn", "vww": "mobilenetv1_025_96", "ic": "resnet8", "ad": "autoencoder"}
NANOSECONDS = 32  # an instruction in QEMU, as in SConstruct
QEMU = "qemu-system-arm -display none -monitor none -serial stdio -icount shift=5 -M mps2-an386 -kernel"


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware of a network of four floats that hands its input on. Sanitizers watch it."""
    program = tmp_path_factory.mktemp("mlperf") / "firmware"
    folder = ROOT / "examples/mlperf_tiny"
    include = [f"-I{path}" for path in (TESTS / "examples/mlperf_twin", KERNELS / "include", folder)]
    defines = ["-DTH_INPUT=TH_FLOAT", '-DTH_MODEL_VERSION="ad01"']
    words = [
        find_host_compiler(),
        *FLAGS,
        *WARNINGS,
        *include,
        *defines,
        *(folder / name for name in SOURCES),
    ]
    subprocess.run([*map(str, words), "-o", str(program)], check=True)
    return program


def answers(firmware: Path, sent: bytes) -> list[list[str]]:
    """Returns the lines of each answer; the first one is that of the start."""
    done = subprocess.run([firmware], input=sent, capture_output=True, check=True)
    parts = done.stdout.decode("latin-1").split("m-ready\r\n")
    assert parts[-1] == ""
    return [part.splitlines() for part in parts[:-1]]


def loaded(values: bytes) -> str:
    return f"db load {len(values)}%db {values.hex()}%"


@pytest.mark.parametrize(
    "board", sorted((ROOT / "examples/mlperf_tiny/qemu").glob("*.toml")), ids=lambda p: p.stem
)
def test_boards_in_qemu_have_the_machine_and_the_port_that_the_firmware_needs(board: Path) -> None:
    answer = handle({"kind": "describe", "board": str(board), "model": "ds_cnn"})
    assert answer["serial"] is not None
    assert handle({"kind": "plan", "board": str(board), "model": "ds_cnn"})["arena_bytes"] > 0


def test_each_command_has_its_answer(firmware: Path) -> None:
    sent = "name%\r\nprofile%db load 4%db 0aFf%db 1020%db print%foo 3%%help%"
    start, *found, usage = answers(firmware, sent.encode())
    assert start[0] == "m-timestamp-mode-performance" and start[2:] == ["m-init-done"]
    assert re.fullmatch(r"m-lap-us-\d+", start[1])
    assert found == [
        ["m-name-dut-[buildtool]"],
        ["m-profile-[ULPMark for tinyML Firmware V0.0.1]", "m-model-[ad01]"],
        ["m-[Expecting 4 bytes]"],
        [],
        ["m-load-done"],
        ["m-buffer-0a-ff-10-20"],
        ["e-[Unknown command: foo]"],
        ["e-[Empty command]"],
    ]
    assert any(line.startswith("infer N [W]") for line in usage)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("db 00", "No bytes are expected: 'db load' first"),
        ("infer 1", "0 of 0 bytes are loaded: 'db load' and 'db' first"),
        ("results", "No results: status 0"),
        ("db load 27649", "Supplied buffer size 27649 exceeds maximum of 27648"),
        ("db load 99999999999999999999", "Command 'db load' must be >0 bytes"),
        ("db load 0", "Command 'db load' must be >0 bytes"),
        ("db load -4", "Command 'db load' must be >0 bytes"),
        ("db load", "Command 'db load' requires the # of bytes"),
        ("db", "Command 'db' requires a subcommand"),
        ("db load 4%db 001", "Insufficient number of hex digits"),
        ("db load 4%db 0g", "Invalid hex digit 'g'"),
        ("db load 4%db 0000%infer 1", "2 of 4 bytes are loaded: 'db load' and 'db' first"),
        ("db load 1%db 00%infer 0", "Inference iterations must be >0"),
        ("db load 1%db 00%infer 1x", "Inference iterations must be >0"),
        ("db load 1%db 00%infer 1 -1", "Inference warmup must be >=0"),
        ("x" * 81, "A command has at most 80 characters"),
        ("db " + "0" * 1000, "A command has at most 80 characters"),
    ],
)
def test_a_wrong_command_is_an_error_and_the_next_one_is_served(
    command: str, error: str, firmware: Path
) -> None:
    found = answers(firmware, f"{command}%name%".encode())
    assert found[-2:] == [[f"e-[{error}]"], ["m-name-dut-[buildtool]"]]


def test_an_input_of_another_size_has_no_results(firmware: Path) -> None:
    """Not even those of the inference before it."""
    sent = loaded(bytes(16)) + "infer 1 0%" + loaded(bytes(12)) + "infer 1 0%results%"
    *_, good, _, _, bad, again = answers(firmware, sent.encode())
    assert good[-1] == "m-results-[0.000]"
    assert bad[0] == "e-[Input db has 12 bytes, expected 16]" and bad[-1] == "e-[No results: status 0]"
    assert again == ["e-[No results: status 0]"]


def test_the_buffer_has_what_any_parts_of_it_were(firmware: Path) -> None:
    rng = random.Random(1)
    for size in (1, 7, 8, 9, 490, 27648):
        data, at, sent = rng.randbytes(size), 0, f"db load {size}%"
        while at < size:
            part = data[at : at + rng.randint(1, 38)]
            at += len(part)
            sent += f"db {part.hex().upper() if at % 2 else part.hex()}{'ab' if at == size else ''}%"
        *_, last, shown = answers(firmware, f"{sent}db print%".encode())
        assert last == ["m-load-done"]
        assert bytes.fromhex("".join(line[9:].replace("-", "") for line in shown)) == data
        assert all(len(line) == 9 + 23 for line in shown[:-1])


def test_every_terminator_is_answered_whatever_bytes_come(firmware: Path) -> None:
    rng = random.Random(2)
    words = [
        b"db",
        b"load",
        b"print",
        b"infer",
        b"name",
        b"%",
        b"%",
        b" ",
        b"7",
        b"0f",
        b"results",
        b"\0",
        b"\xff",
    ]
    sent = b"".join(rng.choice(words) if rng.random() < 0.9 else rng.randbytes(40) for _ in range(20000))
    assert len(answers(firmware, sent + b"%")) == sent.count(b"%") + 2


def test_floats_are_quantised_and_results_rounded_as_the_official_firmware_does(firmware: Path) -> None:
    """round() away from zero; "%0.3f" of the mean squared difference, in float32 and in order."""
    rng = np.random.default_rng(3)
    scale = np.float32(0.1)
    ties = (rng.integers(-300, 300, (40, 4)) * np.float32(0.05)).astype("<f4")
    spread = (rng.normal(0, 1, (40, 4)) * 10.0 ** rng.integers(-4, 4, (40, 1))).astype("<f4")
    exact = np.float32([[100 + n / 16, 100, 100, 100] for n in range(16)])
    inputs = [*ties, *spread, *exact.astype("<f4")]
    found = answers(firmware, "".join(loaded(x.tobytes()) + "infer 1 0%" for x in inputs).encode())
    results = set()
    for values, lines in zip(inputs, found[3::3], strict=True):
        scaled = [float(v) for v in values / scale]
        whole = [int(abs(v) + 0.5) * (1 if v > 0 else -1) + 3 for v in scaled]
        output = (np.clip(whole, -128, 127) - 3).astype(np.float32) * scale
        mean = np.add.accumulate(np.square(output - values), dtype=np.float32)[-1] / np.float32(4)
        assert lines[-1] == f"m-results-[{mean:.3f}]"
        results.add(lines[-1])
    assert len(results) > 40
    strange = np.float32([[np.nan] * 4, [np.inf] * 4, [-np.inf, 0, 0, 0]])
    for lines in answers(firmware, "".join(loaded(x.tobytes()) + "infer%" for x in strange).encode())[3::3]:
        assert lines[-1] == "m-results-[inf]"


def model(network: str) -> str:
    """The official network where ../shared has it, else the zoo's of the same form."""
    path = MODELS / f"{TRAINED[network]}.tflite"
    return str(path) if path.is_file() else TWINS[network]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The example, whose networks share the board's objects; and its environment."""
    folder = copied("mlperf_tiny", tmp_path_factory.mktemp("mlperf") / "firmware")
    return folder, once_compiled(tmp_path_factory)


def built(project: tuple[Path, dict[str, str]], network: str) -> Path:
    """Builds a network's firmware for Cortex-M4."""
    folder, compilers = project
    said(folder, *SCONS, "-j2", f"network={network}", f"model={model(network)}", environment=compilers)
    return folder / f"build/cortex-m4/{network}/{network}.elf"


def played(elf: Path, *options: str) -> str:
    """Plays the runner; returns what it prints."""
    words = ("runner.py", f"--program={QEMU} {elf}", f"--model={model(elf.stem)}", *options)
    return said(elf.parents[3], sys.executable, *words)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["kws", "ad"])  # one with classes, and one whose result is a number
def test_both_modes_give_litert_s_results_on_an_emulated_board(network: str, project) -> None:
    needs_package("ai_edge_litert")
    needs_tool("qemu-system-arm")
    elf = built(project, network)
    assert "2 results, 2 different ones: EQUAL to LiteRT's" in played(elf, "--samples=2")
    shown = played(elf, "--mode=performance", "--windows=1", "--iterations=3")
    assert "1 results, 1 different ones: EQUAL to LiteRT's" in shown


@pytest.mark.slow
def test_the_clock_in_qemu_counts_the_instructions_that_profile_counts(project) -> None:
    needs_package("ai_edge_litert")
    needs_tool("qemu-system-arm")
    shown = played(built(project, "ad"), "--mode=performance", "--windows=2", "--iterations=20")
    options = {"image": "resident"}
    request = {"kind": "profile", "model": model("ad"), "board": "cortex-m4", "options": options}
    counted = handle(request)["instructions"]
    times = re.findall(r"20 inferences, ([\d,]+) us", shown)
    assert len(times) == 2
    for text in times:
        measured = int(text.replace(",", "")) * 1000 / NANOSECONDS / 20
        assert counted <= measured <= 1.01 * counted
