"""The launcher of the kernels' library: the kernels that networks call, and no others, are compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_host_compiler

from buildtool.base.compiler import dependencies
from buildtool.fronts.cmake import called_kernels
from buildtool.fronts.cmake.requests import Context


class Library:
    """A library with the kernels `add` and `sum`; `sum` includes a header."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.base = folder, folder / "a $b"
        (folder / "sum.h").write_text("#define START 1\n")
        for name, text in {
            "add": "int add;",
            "sum": '#include "sum.h"\nint sum = START;',
            "max": "no C",
        }.items():
            (folder / f"{name}.c").write_text(f"{text}\n")
        sources = {f"family/{name}.o": str(folder / f"{name}.c") for name in ("add", "sum", "max")}
        called_kernels.write(str(folder / "all"), Context(values={}, argument=[]), sources)
        (folder / "sources.c").write_text("typedef int none;\n")
        (folder / "compiler").write_text("1")
        (folder / "networks").write_text(f"{folder}/list\n")

    def compile(self, *names: str) -> int:
        """Compiles what is needed where a network calls the kernels `names`; returns the status."""
        (self.folder / "list").write_text("\n".join(f"family/{name}.o" for name in names))
        paths = (self.folder / "all", self.folder / "networks", self.base)
        assert called_kernels.update(*map(str, paths)) == 0
        made = str(self.folder / "sources.c.o")
        words = [
            find_host_compiler(),
            "-DBUILDTOOL_CONFIG=Debug",
            "-O1",
            "-MD",
            "-MT",
            made,
            "-MF",
            f"{made}.d",
        ]
        words += ["-o", made, "-c", str(self.folder / "sources.c")]
        return called_kernels.compile_sources(str(self.base), str(self.folder / "compiler"), *words)

    def times(self) -> dict[str, int]:
        return {path.stem: path.stat().st_mtime_ns for path in self.folder.glob("family/*.o")}


def test_what_has_changed_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library = Library(tmp_path)
    assert library.compile("sum") == 0
    first = library.times()
    assert library.compile("add", "sum") == 0
    assert library.times().keys() == {"add", "sum"} and library.times()["sum"] == first["sum"]
    read = dependencies((tmp_path / "sources.c.o.d").read_bytes().split(b"\n", 1)[1])
    assert {str(tmp_path / name) for name in ("add.c", "sum.c", "sum.h")} <= set(read)
    (tmp_path / "sum.h").write_text("#define START 22\n")
    second = library.times()
    assert library.compile("add", "sum") == 0
    assert {name for name, time in library.times().items() if second[name] != time} == {"sum"}
    listed = f"{library.base}.Debug.objects"
    archive = subprocess.run(["ar", "rcs", str(tmp_path / "lib.a"), f"@{listed}"], check=False)
    members = subprocess.run(["ar", "t", str(tmp_path / "lib.a")], capture_output=True, text=True, check=True)
    assert archive.returncode == 0 and members.stdout.split() == ["add.o", "sum.o"]
    (tmp_path / "compiler").write_text("2")  # another compiler behind the same name
    third = library.times()
    assert library.compile("sum") == 0 and library.times()["sum"] != third["sum"]
