"""Killed builds of another model: their files are never taken for the model's own."""

import pytest
from killedbuilds import OTHERS, Kill, Project
from onecompile import once_compiled

# Half of a file, all but the record.
KILLS = [Kill("interface", "half", 1), Kill("topology", "record is whole", 0, 2)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("killed"), once_compiled(tmp_path_factory))


@pytest.mark.slow
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_what_a_killed_build_leaves_is_made_anew(project: Project, kill: Kill) -> None:
    assert project.killed(kill)
    assert project.differences() == []


@pytest.mark.slow
def test_a_target_that_somebody_changed_is_made_anew_and_the_users_own_is_left_alone(project):
    """The tool's targets must be those that SCons recorded; users may change their own programs."""
    project.restore()
    program = project.folder / "app.elf"
    signed = program.read_bytes() + b"signature"
    program.write_bytes(signed)
    assert project.build() == ""
    assert program.read_bytes() == signed
    (project.folder / "build/host/net/src/net.c").write_bytes(b"half of a fi")
    assert project.differences() == []  # the program as well, since it was linked from that file


@pytest.mark.slow
def test_what_was_made_from_a_strangers_file_is_made_anew_with_it(project: Project) -> None:
    """For example, a compiler that outlives its build replaces the object that was linked."""
    project.restore()
    compiled = project.folder / "build/host/net/obj/net.o"
    compiled.write_bytes(b"an object of another network")
    made = [
        project.folder / name for name in ("build/host/net/libnet.a", "build/host/net/net.elf", "app.elf")
    ]
    before = [path.stat().st_mtime_ns for path in made]
    assert project.differences() == []
    assert not {*before} & {path.stat().st_mtime_ns for path in made}
    assert project.is_current()


@pytest.mark.slow
def test_a_damaged_record_makes_everything_anew(project: Project) -> None:
    project.restore()
    project.put(OTHERS["topology"])
    assert project.build() == ""
    (project.folder / ".sconsign.dblite").write_bytes(b"no record at all")
    assert project.differences() == []
