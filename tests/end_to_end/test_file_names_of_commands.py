"""The commands with names of files that a shell, an assembler or a linker would take for more than a name."""

import sys
from pathlib import Path

import pytest
from programs import said

from buildtool import zoo

NAME = 'we\'ird "q" $x $(id>ran) `id>ran`; a,b [c]{d} (e)\n*?~#!&|<\u00e9\u65e5> \\t'


def buildtool(folder: Path, *words: object) -> str:
    """What the command says, run in `folder` with its temporary files in a folder of the same name."""
    temporary = folder / f"-t{NAME}"
    temporary.mkdir(exist_ok=True)
    return said(folder, sys.executable, "-m", "buildtool", *words, environment={"TMPDIR": str(temporary)})


@pytest.mark.slow
def test_models_boards_and_folders_may_be_called_anything(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    folder.mkdir()
    model, board, out = f"./-m{NAME}.tflite", f"-b{NAME}.toml", f"-o{NAME}"
    (folder / model).write_bytes(zoo.build("ds_cnn"))
    (folder / board).write_text('extends = "cortex-m4"\n')
    assert "arena" in buildtool(folder, "plan", model, f"--board={board}")
    buildtool(folder, "build", model, f"--board={board}", f"--out={out}")
    (elf,), (plan,) = (folder / out).glob("*.elf"), (folder / out).glob("*.plan")
    said = buildtool(folder, "profile", model, f"--board={board}", "--elf", elf, "--plan", plan)
    assert said.rstrip().endswith("'s reference kernels, to the bit")
    assert not list(tmp_path.rglob("ran"))
