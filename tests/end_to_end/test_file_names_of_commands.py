"""The commands with names of files that a shell, an assembler or a linker would take for more than a name."""

import tempfile
from pathlib import Path

import pytest

from buildtool import zoo
from buildtool.fronts.cli import main as cli

NAME = 'we\'ird "q" $x $(id>ran) `id>ran`; a,b [c]{d} (e)\n*?~#!&|<\u00e9\u65e5> \\t'


@pytest.mark.slow
def test_models_boards_and_folders_may_be_called_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / NAME
    model, board, out, temporary = f"./-m{NAME}.tflite", f"-b{NAME}.toml", f"-o{NAME}", f"-t{NAME}"
    (folder / temporary).mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / temporary))
    Path(model).write_bytes(zoo.build("ds_cnn"))
    Path(board).write_text('extends = "cortex-m4"\n')

    def buildtool(*words: object) -> str:
        assert cli.run([*map(str, words)]) == 0
        return capsys.readouterr().out

    assert "arena" in buildtool("plan", model, f"--board={board}")
    buildtool("build", model, f"--board={board}", f"--out={out}")
    (elf,), (plan,) = Path(out).glob("*.elf"), Path(out).glob("*.plan")
    said = buildtool("profile", model, f"--board={board}", "--elf", folder / elf, "--plan", folder / plan)
    assert said.rstrip().endswith("'s reference kernels, to the bit")
    assert not list(tmp_path.rglob("ran"))
