"""Builds of another model that are killed: nothing that they leave is taken for the model's own."""

import pytest
from killedbuilds import OTHERS, Kill, Project, model
from onecompile import once_compiled

# Some of what `python tests/support/killedbuilds.py` kills: half of a file, all objects, all but the record.
KILLS = [Kill("interface", "half", 1), Kill("topology", "after", 6), Kill("weights", "record is whole", 0, 2)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("killed"), once_compiled(tmp_path_factory))


@pytest.mark.slow
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_what_a_killed_build_leaves_is_made_anew(project: Project, kill: Kill) -> None:
    assert project.killed(kill)
    project.put(model(1))
    assert not project.is_current()
    assert project.differences() == []


@pytest.mark.slow
def test_a_target_that_somebody_changed_is_made_anew_and_the_users_own_is_left_alone(
    project: Project,
) -> None:
    """The tool's targets are what SCons recorded; what the user does to his program is his."""
    project.restore()
    emitted, program = project.folder / "build/host/net/src/net.c", project.folder / "app.elf"
    emitted.write_bytes(b"half of a fi")
    signed = program.read_bytes() + b"signature"
    program.write_bytes(signed)
    assert project.build() == ""
    assert emitted.read_bytes() == project.expected["build/host/net/src/net.c"]
    assert program.read_bytes() == signed


@pytest.mark.slow
def test_a_damaged_record_makes_everything_anew(project: Project) -> None:
    project.restore()
    project.put(OTHERS["topology"])
    assert project.build() == ""
    (project.folder / ".sconsign.dblite").write_bytes(b"no record at all")
    assert project.differences() == []
