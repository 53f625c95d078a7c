"""Networks by name from the shell: a narrow resnet18 to exact firmware, a vgg16 that cannot fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import splitnets
from needs import needs_package

pytestmark = pytest.mark.slow
WORDS = (
    "--width 0.0625 --epochs 1 --fine-tune 1 --factors 2 --max-drop 100 --comparisons none --images 8 --json"
)
NAME = "größe 'small'"  # of the output folder


def run(folder: Path, words: str, data: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "buildtool", "split", *words.split(), *WORDS.split(), "--data", data, *more],
        cwd=folder,
        env=os.environ | {"BUILDTOOL_DAEMON": "off"},
        capture_output=True,
        text=True,
        check=False,
    )


def split(folder: Path, words: str, data: str, *more: str) -> dict[str, Any]:
    """The command's answer; it ends with status 0."""
    needs_package("keras")
    needs_package("tensorflow")
    done = run(folder, words, data, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], blocks: int) -> None:
    assert found["factors"] == [2] * blocks
    assert found["firmware"]["equal"] == found["firmware"]["images"] == 8
    assert found["firmware"]["board_equal"] == found["firmware"]["board_images"] == 16
    assert found["misses"] == ""
    by_block, side_by_side, _ = found["tables"]
    assert [row["kept"] for row in by_block["rows"]] == [2] * blocks
    rows = {row["network"]: row for row in side_by_side["rows"]}
    assert list(rows) == ["given", "I"]
    assert rows["given"]["flash"] > rows["given"]["weights"] > rows["I"]["weights"]


def test_vgg16_that_no_split_brings_within_the_flash_is_not_trained(tmp_path: Path) -> None:
    needs_package("keras")
    needs_package("tensorflow")
    few = splitnets.data(160)
    wide = {name: np.repeat(np.repeat(getattr(few, name), 4, 1), 4, 2) for name in ("train_x", "test_x")}
    np.savez(tmp_path / "data.npz", **wide, train_y=few.train_y, test_y=few.test_y)
    done = run(tmp_path, "vgg16 --board cortex-m4 --flash 50K", "data.npz")
    assert done.returncode == 1
    assert "no structure of" in done.stdout and "meets the goals on cortex-m4; " in done.stdout
    assert not list(tmp_path.glob("split/**/*.keras"))


def test_resnet18_from_folders_of_jpeg_and_png(tmp_path: Path) -> None:
    image = needs_package("PIL.Image")
    few = splitnets.data(160)
    for part, x, y in (("train", few.train_x, few.train_y), ("test", few.test_x, few.test_y)):
        for index, (pixels, label) in enumerate(zip(x, y, strict=True)):
            path = (
                tmp_path / "my photos" / part / f"Klasse {label}" / f"{index}.{('png', 'jpg')[index % 4 > 1]}"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            made = image.fromarray(pixels).resize((40, 33 + index % 3))
            (made.convert("L") if index % 5 == 0 else made).save(path)
    found = split(tmp_path, "resnet18 --board cortex-m4 --batch 32 --flash 80K", "my photos", "--out", NAME)
    check(found, 4)
    assert found["plan"]["flash_bytes"] + found["plan"]["code_bytes"] <= 80 * 1024
    assert (tmp_path / NAME / "split.tflite").is_file()
