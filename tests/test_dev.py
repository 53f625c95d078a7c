"""./dev on a machine of fake programs: the commands that it runs, and its errors."""

import os
import shutil
import subprocess
import time

import allowedskips
import needs
import pytest
from paths import ROOT

SET_UP_FILES = ["dev", "requirements.txt", "pyproject.toml", "setup.py", "buildtool/plan/place/search.c"]
REAL = "bash cat chmod echo env find flock grep head id mkdir mv rm sed sh sha256sum sleep tail true"
HANG_SECONDS = 600  # ends a call that hangs
WANTED = "clang-19 lld-19 libclang-rt-19-dev llvm-19 qemu-system-arm qemu-system-misc gcc"
EXTRAS = "gcc-arm-none-eabi libnewlib-arm-none-eabi chromium chromium-driver bazel-bootstrap"

FAKE = """#!/bin/sh
name=${0##*/}
echo "$name $*" >>"$CALLS"
"""

# Plays python3, and .venv/bin/python, to which `-m venv` copies it.
PYTHON = (
    FAKE
    + """
case "$*" in
    *version_info*) [ -z "$OLD_PYTHON" ] ;;
    *"ensurepip, venv"*) [ -z "$NO_VENV" ] || [ -e "$CALLS.venv" ] ;;
    "-m venv "*) mkdir -p "$3/bin" && cat "$0" >"$3/bin/python" && chmod +x "$3/bin/python" ;;
    *"install -r "*)
        sleep "${PIP_SECONDS:-0}"
        [ -z "$PIP_FAILS" ] || { echo "no such version"; exit 1; } ;;
esac
"""
)

APT_CACHE = """#!/bin/sh
[ -e "$CALLS.updated" ] || [ -z "$OLD_LISTS" ] || exit 0
case " $OFFERED " in *" $2 "*) echo "  Candidate: 1.0" ;; *) echo "  Candidate: (none)" ;; esac
"""

# `install` makes the package's programs. `update` makes the package lists known.
APT_GET = (
    FAKE
    + """
case "$*" in *update) : >"$CALLS.updated"; exit ;; esac
for package in "$@"; do
    case $package in
        lld-*) program=ld.$package ;;
        clang-*|gcc|qemu-system-arm|chromium) program=$package ;;
        gcc-arm-none-eabi) program=arm-none-eabi-gcc ;;
        chromium-driver) program=chromedriver ;;
        qemu-system-misc) program=qemu-system-riscv32 ;;
        python3-venv) : >"$CALLS.venv"; continue ;;
        *) continue ;;
    esac
    cat "$FAKE" >"$BIN/$program"
    chmod +x "$BIN/$program"
done
"""
)


class Machine:
    """A checkout with the real ./dev, and a PATH with only the programs of the test."""

    def __init__(self, home):
        self.root, self.bin, self.lists = home / "checkout", home / "bin", home / "lists"
        self.calls_file, fake = home / "calls", home / "fake"
        self.root.mkdir()
        self.bin.mkdir()
        (self.lists / "partial").mkdir(parents=True)
        for name in SET_UP_FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name in REAL.split():
            (self.bin / name).symlink_to(shutil.which(name))
        fake.write_text(FAKE)
        self.env = {
            "PATH": str(self.bin),
            "BIN": str(self.bin),
            "CALLS": str(self.calls_file),
            "FAKE": str(fake),
            "DEV_APT_LISTS": str(self.lists),
            "OFFERED": f"clang-16 lld-16 {WANTED} clang-22 python3-venv {EXTRAS}",
        }

    def add(self, name, text=FAKE):
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def add_tools(self):
        for name in ("clang-22", "ld.lld-22", "qemu-system-arm", "qemu-system-riscv32", "gcc"):
            self.add(name)
        self.add("python3", PYTHON)

    def add_apt(self, user=0):
        """Adds apt. `user`: the user's number; root (0) may install."""
        (self.bin / "id").unlink()
        self.add("id", f"#!/bin/sh\necho {user}\n")
        self.add("apt-get", APT_GET)
        self.add("apt-cache", APT_CACHE)
        self.add("dpkg", "#!/bin/sh\nexit 1\n")

    def age_lists(self):
        week_ago = time.time() - 7 * 86400
        os.utime(self.lists / "partial", (week_ago, week_ago))

    def start(self, *command, **env):
        return subprocess.Popen(
            [self.root / "dev", *command],
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def dev(self, *command, **env):
        with self.start(*command, **env) as child:
            out, err = child.communicate(timeout=HANG_SECONDS)
        return subprocess.CompletedProcess(command, child.returncode, out, err)

    def refuse(self, *words, **env):
        """Runs ./dev, which must refuse. Returns its message."""
        result = self.dev(*words, "true", **env)
        assert result.returncode == 1
        return result.stderr

    def change(self, name):
        """Changes a file of the checkout."""
        with (self.root / name).open("a") as file:
            file.write("\n# changed\n")

    def verbs(self):
        """Returns the last word of each call of apt-get since the previous question."""
        return [call.split()[-1] for call in self.calls() if call.startswith("apt-get")]

    def calls(self):
        """Returns the calls of the fakes since the previous question."""
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        self.calls_file.unlink(missing_ok=True)
        return text.splitlines()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def ready(machine):
    machine.add_tools()
    assert machine.dev("true").returncode == 0
    machine.calls()
    return machine


NAMES = "arm-gcc bazel browser docs gdb mcuboot nginx platformio quantize redis split sweep xtensa"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("", 2, "usage: ./dev [--with NAME]... COMMAND"),
        ("--wiht gdb true", 1, "dev: error: unknown option '--wiht'\ndev:   hint: ./dev --help"),
        *(
            (words, 1, f"--with needs one of these names: {NAMES}")
            for words in ("--with", "--with bazzel true")
        ),
    ],
)
def test_what_it_does_not_know_sets_up_nothing(machine, words, status, said):
    machine.add_tools()
    result = machine.dev(*words.split())
    assert result.returncode == status
    assert said in result.stderr
    assert machine.calls() == []


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_lists_the_commands_and_what_can_be_added(machine, word):
    machine.add_tools()
    result = machine.dev(word)
    assert (result.returncode, result.stderr, machine.calls()) == (0, "", [])
    assert result.stdout == machine.dev().stderr
    commands, _, extras = result.stdout.partition("--with NAME adds")
    for name in ("buildtool", "scons", "pytest", "ruff", "clang-format"):
        assert f"\n  {name}" in commands
    assert [line.split()[0] for line in extras.splitlines()[2:]] == NAMES.split()
    assert set(needs.WITH.values()) <= set(NAMES.split())


def test_the_first_call_makes_the_environment_and_then_runs_the_command(machine):
    machine.add_tools()
    result = machine.dev("sh", "-c", 'echo "$PATH"; exit 7')
    assert result.returncode == 7
    assert result.stdout == f"{machine.root}/.venv/bin:{machine.bin}\n"
    calls = machine.calls()
    assert f"python3 -m venv {machine.root}/.venv" in calls
    assert sum("install -r" in call for call in calls) == 1
    assert sum("--no-deps --no-build-isolation -e" in call for call in calls) == 1


def test_the_second_call_starts_no_python_and_no_apt(ready):
    ready.add_apt()
    result = ready.dev("sh", "-c", "exit 3")
    assert (result.returncode, result.stdout, result.stderr) == (3, "", "")
    assert ready.calls() == []


@pytest.mark.parametrize("name", SET_UP_FILES)
def test_a_changed_file_repeats_the_set_up(ready, name):
    ready.change(name)
    assert ready.dev("true").returncode == 0
    calls = ready.calls()
    assert any("install -r" in call for call in calls)
    assert not any("-m venv" in call for call in calls)  # the environment itself is kept


def test_a_moved_checkout_gets_a_new_environment(ready):
    moved = ready.root.with_name("moved")
    ready.root.rename(moved)
    ready.root = moved
    assert ready.dev("true").returncode == 0
    assert f"python3 -m venv {moved}/.venv" in ready.calls()


def test_without_apt_it_lists_what_is_missing(machine):
    machine.add("python3", PYTHON)
    machine.add("gcc")
    message = machine.refuse()
    for words in ("no apt-get here", "clang and ld.lld, version 16 or newer", "qemu-system-arm"):
        assert words in message
    assert "- gcc" not in message


def test_without_rights_it_prints_the_line_to_run(machine):
    machine.add("python3", PYTHON)
    machine.add_apt(user=1000)
    assert f"run: sudo apt-get install -y --no-install-recommends {WANTED}\n" in machine.refuse()
    assert machine.calls() == []


def test_root_gets_the_newest_clang_that_has_its_lld(machine):
    machine.add("python3", PYTHON)
    machine.add_apt()
    result = machine.dev("true")
    assert result.returncode == 0, result.stderr
    (install,) = [call for call in machine.calls() if call.startswith("apt-get")]
    assert install.endswith(f" install --no-install-recommends {WANTED}")


@pytest.mark.parametrize(("old", "env"), [(False, {"OLD_LISTS": "yes"}), (True, {})], ids=["unknown", "old"])
def test_lists_that_know_no_package_or_are_old_are_updated_once(machine, old, env):
    """The update comes before the choice of a clang."""
    machine.add("python3", PYTHON)
    machine.add_apt()
    if old:
        machine.age_lists()
    assert machine.dev("true", **env).returncode == 0
    assert machine.verbs() == ["update", "gcc"]


def test_a_folder_that_may_not_be_written_is_said_plainly(machine):
    machine.add_tools()
    (machine.root / ".venv").write_text("")  # a file in the way stops root too; permissions would not
    message = machine.refuse()
    assert "cannot be written" in message
    assert "rm:" not in message and "mkdir:" not in message
    assert machine.calls() == []


def test_a_failure_shows_the_logs_end_and_the_next_call_repairs(machine):
    machine.add_tools()
    result = machine.dev("echo", "ran", PIP_FAILS="yes")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "| no such version" in result.stderr
    assert str(machine.root / ".venv/setup.log") in result.stderr
    machine.calls()
    result = machine.dev("echo", "ran")
    assert result.stdout == "ran\n"
    assert any("-m venv" in call for call in machine.calls())  # from scratch: a part may be broken


@pytest.mark.slow
def test_two_calls_at_once_set_up_once(machine):
    machine.add_tools()
    children = [machine.start("echo", "ran", PIP_SECONDS="0.5") for _ in range(2)]
    for child in children:
        with child:
            out, err = child.communicate(timeout=HANG_SECONDS)
            assert (child.returncode, out) == (0, "ran\n"), err
    assert sum("-m venv" in call for call in machine.calls()) == 1


# ---- --with NAME ---------------------------------------------------------------------------------


@pytest.fixture
def served(ready):
    """A machine that is set up, with apt."""
    ready.add_apt()
    return ready


def test_an_extra_is_installed_once(served):
    result = served.dev("--with", "browser", "echo", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n"), result.stderr
    apt, pip = served.calls()
    assert apt.endswith(" install --no-install-recommends chromium chromium-driver")
    assert " selenium==" in pip
    assert f"-c {served.root}/requirements.txt" in pip
    result = served.dev("--with", "browser", "echo", "ran")
    assert (result.stdout, result.stderr) == ("ran\n", "")
    assert served.calls() == []
    assert served.dev("--with", "arm-gcc", "--with", "browser", "--with", "split").returncode == 0
    apt, pip = served.calls()  # without a command; an installed extra is skipped
    assert apt.endswith(" gcc-arm-none-eabi libnewlib-arm-none-eabi")
    assert " tensorflow-cpu==" in pip


def test_ci_runs_what_a_newcomer_runs_and_lets_no_test_vanish():
    script = (ROOT / ".ci/run").read_text()
    extras = " ".join(f"--with {name}" for name in NAMES.split())
    assert f"./dev {extras} pytest" in script
    assert f"{allowedskips.SWITCH}=1" in script
    assert os.access(ROOT / "dev", os.X_OK)
