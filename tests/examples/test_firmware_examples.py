"""Applications with a C library, a compiler and a build of their own print what the reference gives."""

import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import signalnets
from made_up import SHOWS, reference, scores
from needs import needs_package, needs_tool
from onecompile import once_compiled
from paths import ROOT
from programs import SCONS, copied, said

from buildtool.graph.tflite.writer import write_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


def test_an_application_with_newlib_prints_through_stdio(tmp_path: Path, compilers: dict[str, str]) -> None:
    needs_tool("arm-none-eabi-gcc")
    needs_tool("qemu-system-arm")
    folder = copied("newlib", tmp_path / "firmware")
    shown = said(folder, *SCONS, "-j2", "run", environment=compilers)
    assert re.findall(SHOWS, shown) == [scores()]
    assert "warning" not in shown
    assert said(folder, *SCONS, "build/app.elf", environment=compilers).count("up to date") == 1


def picture() -> np.ndarray:
    """As camera.c makes it, with 128 taken off."""
    rows, places = np.arange(32).reshape(32, 1), np.arange(96).reshape(1, 96)
    pixels = ((rows * 7 + places * places * 3) % 256 - 128).astype(np.int8)
    return pixels.reshape(1, 32, 32, 3)


def test_a_camera_streams_its_rows(tmp_path: Path, compilers: dict[str, str]) -> None:
    needs_tool("qemu-system-arm")
    folder = copied("camera", tmp_path / "firmware")
    shown = said(folder, *SCONS, "-j2", "run", environment=compilers)
    expected = reference("mobilenetv2:size=32,alpha=0.35,classes=10", picture())
    assert re.findall(SHOWS, shown) == [expected]
    rows, pauses = map(int, re.findall(r"rows (\d+) pauses (\d+)", shown)[0])
    assert rows == 2 * 32 and pauses > 2


def test_a_cxx17_application_is_built_by_make_from_a_bundle(tmp_path: Path) -> None:
    needs_tool("arm-none-eabi-gcc")
    needs_tool("qemu-system-arm")
    folder = copied("bundle", tmp_path / "firmware")
    words = ("build", "ds_cnn", "--board", "cortex-m4", "--name", "keywords", "--bundle", "--out", "networks")
    said(folder, sys.executable, "-m", "buildtool", *words)
    shown = said(folder, "make", "-s", "-j2", "run")
    assert re.findall(SHOWS, shown) == [scores()]
    assert "warning" not in shown
    assert subprocess.run(["make", "-q"], cwd=folder, check=False).returncode == 0


def test_what_examples_have_in_common_is_the_same() -> None:
    """Each stands as it would in a repository of its own."""
    for one, other, names in (
        ("newlib_firmware", "bundle_firmware", ["startup.c"]),
        ("keyword_firmware", "camera_firmware", ["print.h", "print_host.c", "print_semihosting.c"]),
        ("keyword_firmware", "voice_firmware", ["print.h", "print_host.c", "print_semihosting.c"]),
    ):
        for name in names:
            assert (ROOT / "examples" / one / name).read_bytes() == (
                ROOT / "examples" / other / name
            ).read_bytes()


@pytest.mark.parametrize("board", ["host", "qemu-virt-rv32"])
def test_features_and_words_of_a_sound_equal_the_libraries(
    board: str, tmp_path: Path, compilers: dict[str, str]
) -> None:
    """A front end and a network of all frames, also on a moving window; and one that keeps state itself."""
    needs_package("tflite_micro")
    folder = copied("voice", tmp_path / "firmware")
    write_sound(folder / "sound.wav")
    for graph in (signalnets.front_end(), signalnets.words(), signalnets.streaming_words()):
        (folder / f"{graph.name}.tflite").write_bytes(write_model(graph))
    ways = [("words", "20", "0", 49, 49), ("streaming", "10", "0", 98, 32), ("words", "20", "2", 49, 24)]
    for words, step, hop, steps, outputs in ways if board == "host" else ways[1:]:
        given = (
            "front=front.tflite",
            f"words={words}.tflite",
            "sound=sound.wav",
            f"step={step}",
            f"hop={hop}",
        )
        shown = said(folder, *SCONS, "-j2", f"board={board}", *given, "judge", environment=compilers)
        features, classes = re.findall(r"EQUAL to .*, (\d+) different ones", shown)
        assert f"{steps} steps: features EQUAL to TensorFlow Lite Micro's" in shown
        assert f"{outputs} outputs: EQUAL to LiteRT's" in shown
        assert int(features) > 40 and int(classes) > 3


def write_sound(path: Path) -> None:
    """Writes a second of tones that rise and fall, with noise."""
    rng, t = np.random.default_rng(1), np.arange(16000) / 16000
    loudness = np.interp(t, [0, 0.1, 0.4, 0.5, 0.9, 1], [0.01, 0.05, 1, 0.02, 0.7, 0.01])
    tones = np.sin(2 * np.pi * (300 + 1800 * t) * t) + 0.5 * np.sin(2 * np.pi * 2500 * t)
    samples = (9000 * loudness * tones + rng.normal(0, 30, t.size)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, t.size, "NONE", ""))
        file.writeframes(samples.tobytes())


def test_a_sound_of_another_rate_is_refused(tmp_path: Path) -> None:
    folder = copied("voice", tmp_path / "firmware")
    with wave.open(str(folder / "sound.wav"), "wb") as file:
        file.setparams((2, 2, 44100, 0, "NONE", ""))
    given = ("board=host", "front=ds_cnn", "words=ds_cnn", "sound=sound.wav")
    shown = said(folder, *SCONS, *given, "build/host/samples.c", fails=True)
    assert "sound.wav has 44100 Hz, 16 bits and 2 channels: expected 16000 Hz, 16 bits and 1 channel" in shown
    assert not (folder / "build/host/samples.c").exists()
    assert "front=FILE is missing; scons -h says what it is" in said(folder, *SCONS, fails=True)
