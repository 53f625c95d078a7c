"""What a build does after a change, by build system: which actions ran, and how long the command took.

    python benchmarks/build_systems.py [SYSTEM…] [--runs N]

The projects are those in examples/, in folders of their own. Their program for this machine is built in five
states: from nothing; with nothing changed; with other weights of the same network; with a limit on RAM that
changes the plan; with another main.c. "Without buildtool" is a project of the same build system that has the
same C as plain sources. Bazel's server and buildtool's daemon run all the time, as they do for users; the
cache on disk is empty at first. Times are medians, in CPU seconds of all processes, servers included, so that
they are similar on a busy machine; the first build is one run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from buildtool import zoo

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
BOARD = "host"
ROOMY, TIGHT = "20K", "8K"
CHANGES = ("first build", "nothing", "weights", "RAM limit", "main.c")
Actions = Counter[str]


@dataclass
class Project:
    """A project in a folder, and how to build it.

    - `words`: the command that builds it.
    - `patterns`: for each action, what its lines in the output look like.
    - `before`: commands that run before each build.
    - `ending`: the command that stops a server of the build system.
    """

    name: str
    folder: Path
    words: list[str]
    patterns: Mapping[str, str]
    options: str  # the file in which the limit on RAM stands; "": a project without buildtool
    before: list[list[str]] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)

    def build(self) -> tuple[float, Actions]:
        """Builds the project; returns the CPU seconds, and how often each action ran."""
        began = cpu_seconds()
        said = "".join(self._run(words) for words in [*self.before, self.words])
        seconds = cpu_seconds() - began
        counts: Actions = Counter()
        for line in said.splitlines():
            for action, pattern in self.patterns.items():
                counts[action] += bool(re.search(pattern, line))
        return seconds, counts

    def change(self, what: str, turn: int) -> None:
        """Makes the change `what` in the project's files, a different one for each `turn`."""
        if what == "weights":
            (self.folder / "net.tflite").write_bytes(zoo.build(f"ds_cnn:seed={turn + 1}"))
        elif what == "RAM limit":
            path = self.folder / self.options
            text, limits = path.read_text(), (ROOMY, TIGHT)
            old = ROOMY if ROOMY in text else TIGHT
            (new,) = set(limits) - {old}
            path.write_text(text.replace(old, new))
        elif what == "main.c":
            names = ("main.c", "main.cpp", "src/main.c")
            source = next(path for name in names if (path := self.folder / name).exists())
            source.write_text(f"{source.read_text()}\nint changed_{turn};\n")

    def end(self) -> None:
        """Stops the build system's server, if there is one."""
        if self.ending:
            self._run(self.ending)

    def _run(self, words: list[str]) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )
        if done.returncode:
            raise SystemExit(f"{self.name}: {words} failed:\n{done.stdout}")
        return done.stdout


def cpu_seconds() -> float:
    """Returns the CPU time of the servers, and of all other processes started here that have ended.

    The servers are the living processes that have this benchmark's cache in their environment.
    """
    mark = f"XDG_CACHE_HOME={os.environ['XDG_CACHE_HOME']}\0".encode()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                # utime, stime, cutime and cstime; the name before them, in brackets, may contain spaces
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    """Returns the environment for commands, in which programs of this Python are found first."""
    found = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    return {
        name: value for name, value in found.items() if name not in ("BUILDTOOL_DAEMON", "BUILDTOOL_CACHE")
    }


# ---- the projects ------------------------------------------------------------------------------------


def copied(example: str, folder: Path, edits: Mapping[str, tuple[str, str]]) -> Path:
    """Copies an example to `folder`, with a model file; returns the folder.

    `edits` has for each file an old text and its replacement.
    """
    shutil.copytree(EXAMPLES / example, folder)
    (folder / "net.tflite").write_bytes(zoo.build("ds_cnn"))
    for name, (old, new) in edits.items():
        path = folder / name
        text = path.read_text()
        if old not in text:
            raise SystemExit(f"{path} has no {old!r}")
        path.write_text(text.replace(old, new, 1))
    return folder


SCONS = {
    "emit": r"^planning ",
    "compile": r"^compiling |^assembling | -c ",
    "archive": r"^archiving |\bar rc ",
    "link": r"^linking |-o \S*app",
}
CMAKE = {
    "emit": r"Planning network",
    "compile": r"Building (C|CXX|ASM) object",
    "archive": r"Linking C static library",
    "link": r"Linking C(XX)? executable",
}
MAKE = {
    "emit": r"files written,",
    "compile": r" -c ",
    "archive": r"ar rcs ",
    "link": r"-o \S*app\.elf",
}
BAZEL = {
    "emit": r"\[action 'Emitting the network",
    "compile": r"# \S+ \[action 'Compiling ",
    "archive": r"# \S+ \[action 'Linking \S+\.a'",
    "link": r"# \S+ \[action 'Linking \S*app",
}
PLATFORMIO = {
    "emit": r"^[Ee]mitting ",
    "compile": r"^Compiling ",
    "archive": r"^Archiving ",
    "link": r"^Linking ",
}


def scons(folder: Path) -> Project:
    """Returns a project whose SConstruct uses buildtool's tool for SCons."""
    edit = ('name="keywords")', f'name="keywords", ram="{ROOMY}")')
    copied("keyword_firmware", folder, {"SConstruct": edit})
    words = ["scons", "-Q", f"board={BOARD}", "model=net.tflite", f"build/{BOARD}/app.elf"]
    return Project("SCons", folder, words, SCONS, "SConstruct")


def plain_scons(folder: Path) -> Project:
    """Returns a project whose SConstruct compiles the emitted C as plain sources."""
    bundled(folder)
    (folder / "SConstruct").write_text(PLAIN_SCONS)
    return Project("SCons", folder, ["scons", "-Q"], SCONS, "")


def cmake(folder: Path, generator: str, name: str) -> Project:
    """Returns a CMake project that uses buildtool's CMake package."""
    edit = ('BOARD "${BUILDTOOL_BOARD}")', f'BOARD "${{BUILDTOOL_BOARD}}" RAM {ROOMY})')
    copied("cmake_firmware", folder, {"CMakeLists.txt": edit})
    more = ["-DMODEL=net.tflite", f"-Dbuildtool_DIR={run(['buildtool', '--cmake-dir'])}"]
    return configured(Project(name, folder, [], CMAKE, "CMakeLists.txt"), generator, more)


def plain_cmake(folder: Path, generator: str, name: str) -> Project:
    """Returns a project that uses the CMakeLists.txt of the bundle with the emitted C."""
    bundled(folder)
    (folder / "CMakeLists.txt").write_text(PLAIN_CMAKE)
    return configured(Project(name, folder, [], CMAKE, ""), generator, [])


def configured(project: Project, generator: str, more: list[str]) -> Project:
    """Configures a CMake project, and returns it with its build command."""
    words = ["cmake", "-G", generator, "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *more]
    run(words, project.folder)
    project.words = ["cmake", "--build", "build", "--target", "app"]
    return project


def bazel(folder: Path) -> Project:
    """Returns a Bazel workspace with buildtool's rules. Actions run in the sandbox, Bazel's default."""
    edit = ('model = "ds_cnn",', f'model = "net.tflite",\n    ram = "{ROOMY}",')
    copied("bazel_firmware", folder, {"BUILD.bazel": edit})
    return started(folder, "BUILD.bazel")


def plain_bazel(folder: Path) -> Project:
    """Returns a Bazel workspace whose BUILD file compiles the emitted C as plain sources."""
    bundled(folder)
    for name in ("WORKSPACE", "third_party", ".bazelignore", "buildtool.bzl", ".bazelrc"):
        source = EXAMPLES / "bazel_firmware" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    text = (folder / "WORKSPACE").read_text()
    (folder / "WORKSPACE").write_text(
        "\n".join(line for line in text.splitlines() if "buildtool" not in line) + "\n"
    )
    (folder / ".bazelrc").write_text("build --nosandbox_debug\n")
    (folder / "buildtool.bzl").unlink()
    (folder / "BUILD.bazel").write_text(PLAIN_BAZEL)
    return started(folder, "")


def started(folder: Path, options: str) -> Project:
    """Returns a Bazel project with its own Bazel server."""
    start = ["bazel", f"--output_user_root={folder.parent}/bazel_root_{folder.name}"]
    python = f"--repo_env=BUILDTOOL_PYTHON={sys.executable}"
    words = [*start, "build", "--subcommands", python, ":app.elf"]
    return Project("Bazel", folder, words, BAZEL, options, ending=[*start, "shutdown"])


def platformio(folder: Path) -> Project:
    """Returns a PlatformIO project that uses buildtool."""
    edit = (
        "custom_buildtool_model = ds_cnn",
        f"custom_buildtool_model = net.tflite\ncustom_buildtool_ram = {ROOMY}",
    )
    copied("platformio_firmware", folder, {"platformio.ini": edit})
    return with_scons(folder, "platformio.ini")


def plain_platformio(folder: Path) -> Project:
    """Returns a PlatformIO project with the emitted C as one of its libraries."""
    bundled(folder)
    for name in ("platform", "src"):
        shutil.copytree(EXAMPLES / "platformio_firmware" / name, folder / name)
    for name in ("main.c", "print.h", "print_host.c"):
        (folder / name).unlink()
    (folder / "lib").mkdir()
    (folder / "networks").rename(folder / "lib" / "networks")
    (folder / "lib/networks/library.json").write_text(PLAIN_LIBRARY)
    (folder / "platformio.ini").write_text(PLAIN_INI)
    (folder / "platform/builder/main.py").write_text(PLAIN_PLATFORM)
    return with_scons(folder, "")


def with_scons(folder: Path, options: str) -> Project:
    """Returns a PlatformIO project that uses this Python's SCons, not one from PlatformIO's registry."""
    import SCons

    tool = folder.parent / f"scons_{folder.name}"
    shutil.copytree(Path(SCons.__file__).parent, tool / "SCons")
    (tool / "package.json").write_text('{"name": "tool-scons", "version": "4.41101.0"}')
    (tool / "scons.py").write_text("import sys\nimport SCons.Script\nsys.exit(SCons.Script.main())\n")
    ini = folder / "platformio.ini"
    named = f"platform_packages = platformio/tool-scons@symlink://{tool}"
    ini.write_text(ini.read_text().replace("[env]\n", f"[env]\n{named}\n", 1))
    words = ["env", f"PLATFORMIO_CORE_DIR={folder.parent}/core_{folder.name}", "pio", "run", "-e", BOARD]
    return Project("PlatformIO", folder, words, PLATFORMIO, options)


def make(folder: Path) -> Project:
    """Returns a project with a Makefile; before each make, `buildtool build --bundle` writes the bundle."""
    copied("bundle_firmware", folder, {})
    words = (
        f"buildtool build net.tflite --board {BOARD} --name keywords --ram {ROOMY} --bundle --out networks"
    )
    (folder / "bundle.sh").write_text(words + "\n")
    words_of_make = ["make", "TARGET=host"]
    return Project("bundle, make", folder, words_of_make, MAKE, "bundle.sh", before=[["sh", "bundle.sh"]])


def plain_make(folder: Path) -> Project:
    """Returns the project of `make`, but its bundle is written only once."""
    project = make(folder)
    run(["sh", "bundle.sh"], folder)
    return Project(project.name, folder, project.words, project.patterns, "")


def bundled(folder: Path) -> None:
    """Fills a folder with the sources of the application and a bundle of the network."""
    folder.mkdir()
    for name in ("main.c", "print.h", "print_host.c"):
        shutil.copy(EXAMPLES / "keyword_firmware" / name, folder)
    (folder / "net.tflite").write_bytes(zoo.build("ds_cnn"))
    words = ["buildtool", "build", "net.tflite", "--board", BOARD, "--name", "keywords", "--ram", ROOMY]
    run([*words, "--bundle", "--out", "networks"], folder)


PLAIN_SCONS = """\
DefaultEnvironment(tools=[])
env = Environment(tools=["cc", "link", "ar"])
env.Append(CPPPATH=["networks/kernels/include", "networks/networks/keywords"])
env.Append(CPPDEFINES=["NN_WEIGHTS_IN_C"], CCFLAGS=["-O3", "-ffp-contract=off"])
sources = [*Glob("networks/kernels/*/*.c"), *Glob("networks/networks/keywords/*.c")]
env.Program("app.elf", ["main.c", "print_host.c", env.StaticLibrary("nn", sources)])
"""
PLAIN_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(plain C ASM)
add_subdirectory(networks)
add_executable(app main.c print_host.c)
target_link_libraries(app PRIVATE keywords)
"""
PLAIN_BAZEL = """\
cc_library(
    name = "keywords",
    srcs = glob(["networks/kernels/*/*.c", "networks/networks/keywords/*.c"]),
    hdrs = glob(["networks/**/*.h"]),
    copts = ["-O3", "-ffp-contract=off"],
    defines = ["NN_WEIGHTS_IN_C"],
    includes = ["networks/kernels/include", "networks/networks/keywords"],
)

cc_binary(name = "app.elf", srcs = ["main.c", "print.h", "print_host.c"], deps = [":keywords"])
"""
PLAIN_LIBRARY = """\
{"name": "networks", "version": "0.1.0", "build": {"srcDir": ".", "includeDir": "networks/keywords",
 "srcFilter": "+<**/*.c>",
 "flags": ["-O3", "-ffp-contract=off", "-DNN_WEIGHTS_IN_C"]}}
"""
PLAIN_PLATFORM = """\
from SCons.Script import DefaultEnvironment
env = DefaultEnvironment()
env.Replace(CC="gcc", LINK="gcc", AR="ar", ARFLAGS=["rcsD"], RANLIBCOM="", PROGSUFFIX=".elf", SIZETOOL=None)
env.Append(CCFLAGS=["-O3", "-ffunction-sections"], LINKFLAGS=["-Wl,--gc-sections"])
env.Default(env.BuildProgram())
"""
PLAIN_INI = """\
[env]
platform = symlink://platform
build_flags = -Ilib/networks/kernels/include

[env:host]
board = host
build_src_filter = +<*> -<print_semihosting.c>
"""


def run(words: list[str], folder: Path | None = None) -> str:
    """Returns what a command prints on standard output; ends the benchmark if it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise SystemExit(f"{words} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


# ---- the table ---------------------------------------------------------------------------------------

Make = Callable[[Path], Project]
SYSTEMS: dict[str, tuple[Make, Make]] = {
    "scons": (scons, plain_scons),
    "ninja": (
        lambda folder: cmake(folder, "Ninja", "CMake, Ninja"),
        lambda folder: plain_cmake(folder, "Ninja", "CMake, Ninja"),
    ),
    "makefiles": (
        lambda folder: cmake(folder, "Unix Makefiles", "CMake, Makefiles"),
        lambda folder: plain_cmake(folder, "Unix Makefiles", "CMake, Makefiles"),
    ),
    "bazel": (bazel, plain_bazel),
    "platformio": (platformio, plain_platformio),
    "make": (make, plain_make),
}


def measured(project: Project, changes: tuple[str, ...], runs: int) -> dict[str, str]:
    """Returns one table cell for each change: the median of the seconds, and the actions that ran."""
    cells = {}
    try:
        for change in changes:
            times, ran = [], Counter[str]()
            for turn in range(1 if change == CHANGES[0] else runs):
                project.change(change, turn)
                seconds, ran = project.build()
                times.append(seconds)
            what = ", ".join(f"{action} {count}" for action, count in ran.items() if count) or "nothing"
            cells[change] = f"{statistics.median(times):.2f}: {what}"
    finally:
        project.end()
    return cells


def main() -> int:
    """Prints the table: one row for each build system and project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("systems", nargs="*", choices=[[], *SYSTEMS], help="by default all")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print("| build system | project | " + " | ".join(CHANGES) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in CHANGES) + " |")
    for name in args.systems or SYSTEMS:
        with tempfile.TemporaryDirectory() as home:
            os.environ["XDG_CACHE_HOME"] = f"{home}/cache"
            for kind, make_it in zip(("with a network", "without buildtool"), SYSTEMS[name], strict=True):
                project = make_it(Path(home, kind.split()[0]))
                changes = CHANGES if project.options else (CHANGES[0], CHANGES[1], CHANGES[4])
                cells = measured(project, changes, args.runs)
                row = [project.name, kind, *(cells.get(change, "") for change in CHANGES)]
                print("| " + " | ".join(row) + " |", flush=True)
            run(["buildtool", "daemon", "stop"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
