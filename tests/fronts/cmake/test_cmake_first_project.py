"""The tutorials with CMake, done in an empty folder; LiteRT says what the programs print."""

from pathlib import Path

import numpy as np
import pytest
from firstprojects import FirstProject, keyword_class, litert_scores
from needs import needs_tool

pytestmark = pytest.mark.slow


def followed(page: str, folder: Path, commands: int) -> FirstProject:
    """The page's project, after its commands."""
    for tool in ("clang", "qemu-system-arm"):
        needs_tool(tool)
    project = FirstProject(page, folder)
    assert sorted(project.files) == ["CMakeLists.txt", "main.c"]
    assert project.follow() == commands
    return project


def test_the_first_project_can_be_followed(tmp_path: Path) -> None:
    project = followed("cmake-first-project.md", tmp_path, 6)
    assert project.shown("qemu") == f"{keyword_class()}\n"
    project.check_refusal("CMakeLists.txt", "RAM 12K", "RAM 4K", "cmake --build build")


def test_the_wake_word_is_heard_where_litert_hears_it_on_whole_windows(tmp_path: Path) -> None:
    project = followed("wake-word.md", tmp_path, 6)
    noise, rows = 1, []
    for frame in range(150):
        row = []
        for i in range(10):
            noise = (noise * 1664525 + 1013904223) & 0xFFFFFFFF
            row.append(((frame + 100 * i) & 255) - 128 if 60 <= frame < 100 else (noise >> 28) - 8)
        rows.append(row)
    silence = [[83] * 10] * 49  # zero points
    sound = np.array(silence + rows)
    scores = litert_scores("ds_cnn", (sound[end - 49 : end] for end in range(51, 200, 2)))
    mean, heard, lines = -128.0, False, []
    for hop, score in enumerate(int(classes[11]) for classes in scores):
        mean += int((score - mean) / 4)
        lines += [f"{40 * (hop + 1)} ms: score {score}"] if hop % 5 == 4 else []
        lines += ["the wake word!"] if mean > 64 and not heard else []
        heard = mean > 64 or (heard and mean > 0)
    assert lines.count("the wake word!") == 1
    assert project.shown("qemu").splitlines() == lines


def test_the_camera_s_pictures_have_litert_s_scores(tmp_path: Path) -> None:
    project = followed("camera.md", tmp_path, 7)
    y, x = np.mgrid[:96, :96]
    pictures = []
    for picture in range(3):
        disk = (x - 24 - 24 * picture) ** 2 + (y - 48) ** 2 < 400
        line = np.where(disk, 0xFD8A, y << 5 | x >> 3)
        pictures.append(np.stack([line >> 8 & 0xF8, line >> 3 & 0xFC, line << 3 & 0xF8], axis=-1) - 128)
    scores = litert_scores("mobilenetv1_025_96", pictures)
    lines = [f"no person {none}, person {person}" for none, person in scores]
    assert project.shown("qemu").splitlines() == lines
