"""A board that the project's board extends: one with an older time, and a link that leads elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cmakeprojects import CMakeProject, cmake_dir  # noqa: F401

TEXT = """cmake_minimum_required(VERSION 3.20)
project(p C)
find_package(buildtool 0.1 CONFIG REQUIRED)
buildtool_add_network(net MODEL autoencoder BOARD mine.toml)
"""
EMIT = ("--target", "net_emit")


@pytest.mark.parametrize("how", ["file", "link", "link to a board of buildtool's"])
def test_a_base_that_is_another_with_an_older_time_is_planned_for(
    tmp_path: Path,
    cmake_dir: str,  # noqa: F811
    how: str,
) -> None:
    project = CMakeProject(tmp_path / "p", cmake_dir, TEXT)
    base = project.folder / "base.toml"
    (project.folder / "mine.toml").write_text('extends = "base.toml"\n')
    for name, alignment in (("one", 16), ("other", 64)):
        path = tmp_path / f"{name}.toml"
        path.write_text(f'extends = "host"\nalignment = {alignment}\n')
        os.utime(path, (1e9, 1e9))
    first = tmp_path / "one.toml"
    if how == "link to a board of buildtool's":
        import buildtool_plugins.host

        first = Path(next(iter(buildtool_plugins.host.__path__)), "boards/host.toml")
    if how == "file":
        first.replace(base)
    else:
        base.symlink_to(first)
    project.configure()
    project.build(*EMIT)
    source = project.build_folder / "buildtool/net/net.c"
    before = source.read_bytes()
    base.unlink()
    if how == "file":
        (tmp_path / "other.toml").replace(base)
    else:
        base.symlink_to(tmp_path / "other.toml")
    assert "it has changed since the folder was configured" in project.said(*EMIT, fails=True)
    project.build(*EMIT)
    assert source.read_bytes() != before
    assert not project.build(*EMIT)
