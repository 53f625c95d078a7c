"""The identity of a compiler: its programs, the files that they read, and the variables that they use.

The identity is part of cache keys. A compiler's name is not enough, because it may belong to a script or a
link, and a configuration file or a variable may add flags. So we run the compiler with `-v` and its flags.
Its output and the content of all files that the output names make up the identity.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.digests import Digests

PASSED = "BUILDTOOL_COMPILER_ENV"  # names of further variables that compilers get, separated by commas
# The variables that programs need in order to start and to find their temporary files.
_NEEDED = ("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# Variables that change what compilers, assemblers and linkers read or write, according to their manuals.
VARIABLES = tuple(
    """CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH OBJCPLUS_INCLUDE_PATH COMPILER_PATH
    GCC_EXEC_PREFIX GCC_COMPARE_DEBUG LIBRARY_PATH LD_RUN_PATH LDEMULATION CCC_OVERRIDE_OPTIONS CCC_ADD_ARGS
    CLANG_NO_DEFAULT_CONFIG QA_OVERRIDE_GCC3_OPTIONS DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES SOURCE_DATE_EPOCH
    GNUTARGET CL _CL_ INCLUDE SDKROOT MACOSX_DEPLOYMENT_TARGET NIX_CFLAGS_COMPILE NIX_LDFLAGS LD_PRELOAD
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH XTENSA_GNU_CONFIG CCACHE_PREFIX CCACHE_COMPILER""".split()
)
_SECONDS = 120.0
_SCRIPT_BYTES = 1 << 20  # upper limit for the part of a script that is searched
_MOST_SPACES = 16  # upper limit for the spaces in the path of a compiler's file
_YOUNG_NS = 50_000_000  # file times may lag behind the clock by one kernel tick
_LIBRARIES = re.compile(r"^\s*(?:\S+ => )?(/.+) \(0x", re.MULTILINE)
_SEARCHED = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)\nEnd of search list", re.DOTALL)
_DEPENDENCY = re.compile(r"(?:\\[ #\\]|\$\$|[^\s\\$])+|\\(?!\n)")


@dataclass(frozen=True)
class Identity:
    """A compiler with its flags.

    `digest`: identifies everything about it.
    `files`: its programs, libraries and settings.
    `folders`: those in which it searches for its own headers and the system's, in order.
    """

    digest: str
    files: tuple[str, ...]
    folders: tuple[str, ...]


@functools.cache
def known_files() -> Digests:
    """Returns the recorded digests of compilers' files. All projects of this user share the records."""
    return Digests("compilers")


def environment() -> dict[str, str]:
    """Returns the environment variables for compilers: those that compilers need, and those that the user
    lists in the variable PASSED.
    """
    names = (*_NEEDED, *passed())
    return {**{name: os.environ[name] for name in names if name in os.environ}, "LC_ALL": "C"}


def passed() -> dict[str, str]:
    """Returns the environment variables, with their values, that the user lists in the variable PASSED."""
    names = re.split(r"[,\s]+", os.environ.get(PASSED, ""))
    return {name: os.environ[name] for name in sorted(set(names)) if name in os.environ}


def identify(
    command: Sequence[str], variables: Mapping[str, str], ldflags: Sequence[str] | None = None
) -> Identity | None:
    """Returns the identity of the compiler `command` (name or path, and flags), run with the environment
    `variables`. With `ldflags`, the identity includes the linker, called with these flags. Returns None if
    the compiler fails, or one of its files cannot be read.
    """
    variables = {**variables, "LC_ALL": "C"}
    text = _query(command, variables, ldflags)
    if text is None:
        return None
    path = variables.get("PATH", os.defpath)
    driver = os.path.realpath(shutil.which(command[0], path=path) or command[0])
    programs = {driver}
    for line in text.splitlines():  # programs at the beginning of a line, and the driver behind a wrapper
        match = re.match(r' ?"?([^"\s|]+)', line) if line.startswith((" ", '"')) else None
        match = match or re.match(r"COLLECT_(?:GCC|LTO_WRAPPER)=(\S+)", line)
        program = shutil.which(match[1], path=path) if match else None
        names = [program] if program else list(_find_spaced_files(line))[:1]
        programs |= set(map(os.path.realpath, names))
    paths = {*programs, *_find_files(text)}
    digest = hashlib.sha256(text.encode(errors="surrogateescape"))
    digests = known_files()
    try:
        contents = {name: digests.digest(name) for name in {*paths, *_find_script_files(paths)}}
        libraries = _find_libraries({name: contents[name] for name in programs}, variables)
        contents |= {name: digests.digest(name) for name in libraries - contents.keys()}
    except OSError:
        return None
    for part in (*command, *(f"{name}={variables[name]}" for name in VARIABLES if name in variables)):
        digest.update(b"\0" + part.encode(errors="surrogateescape"))
    for name, content in sorted(contents.items()):
        digest.update(f"\0{name}\0{content}".encode(errors="surrogateescape"))
    digests.save()
    search = _SEARCHED.search(text)
    folders = tuple(line.strip() for line in search[1].splitlines()) if search else ()
    return Identity(digest.hexdigest(), tuple(sorted(contents)), folders)


def _query(command: Sequence[str], variables: Mapping[str, str], ldflags: Sequence[str] | None) -> str | None:
    """Returns what a compiler prints with -v for a file without code. Names of temporary files are removed.

    With `ldflags` it is asked with -### instead: it prints the commands that compile and link the file, and
    runs none of them. Returns None if the compiler cannot be run or fails.
    """
    words = ["-v", "-c", "-o", "empty.o"] if ldflags is None else ["-###", "-o", "empty", *ldflags]
    with tempfile.TemporaryDirectory() as folder:
        # a declaration, because -pedantic -Werror refuse a file without any
        Path(folder, "empty.c").write_text("typedef int empty;\n")
        try:
            result = subprocess.run(
                [*command, "empty.c", *words],
                cwd=folder,
                env={**variables, **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder)},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
        if result.returncode:
            return None
        output = (result.stderr + result.stdout).decode(errors="surrogateescape")
        output = output.replace(os.path.realpath(folder), "").replace(folder, "")
        return re.sub(r"/(cc|empty-)\w{6}\b", "", output)


def _find_files(text: str) -> Iterator[str]:
    """Yields the regular files whose paths appear anywhere in a text."""
    text = re.sub("^Configured with: .*", "", text, flags=re.MULTILINE)  # paths of the machine that built it
    words = {word.strip("'\"();,|") for word in text.split()}
    words |= set(re.findall(r'"([^"\n]+)"', text))
    words |= {line.partition(": ")[2].strip() for line in text.splitlines()}  # "Configuration file: /a b.cfg"
    words |= {word.partition("=")[2] for word in words}
    yield from (word for word in words if os.path.isabs(word) and os.path.isfile(word))  # noqa: PTH113, PTH117
    for line in text.splitlines():
        yield from _find_spaced_files(line)


def _find_spaced_files(line: str) -> Iterator[str]:
    """Yields the existing files whose paths appear in a line. The paths may contain spaces: GCC's -v quotes
    no path.
    """
    for start in (match.start() for match in re.finditer(r"(?<![^\s=\"'])/", line)):
        ends = [start + match.start() for match in re.finditer(r"[\s\"]|$", line[start:])]
        names = [line[start:end] for end in ends[:_MOST_SPACES]]
        file = next((name for name in names if os.path.isfile(name)), None)  # noqa: PTH113
        if file is not None:
            yield file


def _find_script_files(files: Iterable[str]) -> set[str]:
    """Returns the files that scripts among `files` name by an absolute path, and those that such scripts name
    in turn.

    The output of the compiler does not name a program that a script runs for some sources only, or after the
    compiler.
    """
    paths: set[str] = set()
    queue = list(files)
    while queue:
        try:
            with Path(queue.pop()).open("rb") as file:
                text = file.read(_SCRIPT_BYTES) if file.read(2) == b"#!" else b""
        except OSError:
            continue
        words = re.findall(rb"/[^\s\"'`;|&<>(){}$=:,]+", text) + re.findall(rb"[\"'](/[^\"'\n]+)[\"']", text)
        new = {os.path.realpath(word.decode(errors="surrogateescape")) for word in words} - paths
        new = {path for path in new if os.path.isfile(path)}  # noqa: PTH113
        paths |= new
        queue += new
    return paths


def _find_libraries(programs: Mapping[str, str], variables: Mapping[str, str]) -> set[str]:
    """Returns the shared libraries that `programs` (path -> digest) load. For example, most of Clang's code
    is in a shared library.
    """

    def list_loaded(program: str) -> str:
        with Path(program).open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
        try:
            command = ["ldd", program]
            result = subprocess.run(command, env=dict(variables), capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return "\n".join(_LIBRARIES.findall(result.stdout.decode(errors="surrogateescape")))

    digests, libraries = known_files(), set[str]()
    cache_file = "/etc/ld.so.cache"
    search_path = _list_libraries(variables.get("LD_LIBRARY_PATH", "").split(":"))
    settings = [
        digests.digest(cache_file) if Path(cache_file).is_file() else "",
        variables.get("LD_PRELOAD", ""),
        *search_path,
    ]
    for program, content in programs.items():
        # Toolchains keep their own libraries there.
        text = "\0".join([*settings, *_list_libraries([f"{Path(program).parent}/../lib"])])
        loaded: list[str] = []
        # The second time with the digests of these libraries: a new version of one may load others.
        for _ in range(2):
            text += "\0".join(f"{name} {digests.digest(name)}" for name in loaded if Path(name).is_file())
            key = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
            loaded = digests.of_content(program, content, list_loaded, f"libraries {key}").split("\n")
        libraries |= {*loaded} - {""}
    return libraries


def _list_libraries(folders: Iterable[str]) -> Iterator[str]:
    """Yields each folder, followed by the names of the libraries in it."""
    for folder in filter(None, folders):
        yield folder
        with contextlib.suppress(OSError):
            yield from sorted(name for name in os.listdir(folder) if ".so" in name)  # noqa: PTH208


# ---- headers that are found by a search --------------------------------------------------------------------

Fact = tuple[str, str]  # a path, and the digest of the file there ("": no file)


def dependencies(rule: bytes) -> list[str]:
    """Returns the prerequisites of a Make rule that a compiler has written (-MD)."""
    text = rule.decode(errors="surrogateescape").replace("\\\n", " ")
    _, _, files = text.partition(": ")
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in _DEPENDENCY.findall(files)]


def facts(identity: Identity, files: Iterable[str]) -> list[Fact]:
    """Returns (path, digest) of each file that decides what a compilation reads ("": the file does not
    exist).

    `files` are those that the compilation has read. For a header in one of the compiler's folders, the path
    of the same name in each of these folders is listed, too: a file that appears there later may hide the
    present header. Raises OSError if a file cannot be read.
    """
    paths: set[str] = set()
    for path in files:
        parents = [folder for folder in identity.folders if path.startswith(f"{folder}/")]
        if parents:
            name = path[len(max(parents, key=len)) :]
            paths |= {folder + name for folder in identity.folders}
        paths.add(path)
    return [(path, _digest(path)) for path in sorted(paths)]


def are_current(known: Iterable[Sequence[str]]) -> bool:
    """Whether all files still have the content that the facts `known` record."""
    try:
        return all(_digest(path) == digest for path, digest in known)
    except OSError:
        return False


def changed_since(known: Iterable[Fact], when_ns: int) -> bool:
    """Whether a file of the facts `known` may have changed after `when_ns` (ns since 1970)."""
    return any(digest and Path(path).stat().st_ctime_ns > when_ns - _YOUNG_NS for path, digest in known)


def _digest(path: str) -> str:
    try:
        return known_files().digest(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
