"""The identity of a compiler: the programs that it runs, the files that these read, the variables they use.

A name says little: it may be a script or a link, and a configuration file or a variable may add flags. So the
compiler is asked (`-v`, with its flags); its answer and the content of all files in it make up its identity.
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

PASSED = "BUILDTOOL_COMPILER_ENV"  # names of variables that compilers get as well, with commas between them
# What programs need in order to start, and to find their temporary files.
_NEEDED = ("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# Variables that change what compilers, assemblers and linkers read or make, as their manuals list them.
VARIABLES = tuple(
    """CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH OBJCPLUS_INCLUDE_PATH COMPILER_PATH
    GCC_EXEC_PREFIX GCC_COMPARE_DEBUG LIBRARY_PATH LD_RUN_PATH LDEMULATION CCC_OVERRIDE_OPTIONS CCC_ADD_ARGS
    CLANG_NO_DEFAULT_CONFIG QA_OVERRIDE_GCC3_OPTIONS DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES SOURCE_DATE_EPOCH
    GNUTARGET CL _CL_ INCLUDE SDKROOT MACOSX_DEPLOYMENT_TARGET NIX_CFLAGS_COMPILE NIX_LDFLAGS LD_PRELOAD
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH XTENSA_GNU_CONFIG CCACHE_PREFIX CCACHE_COMPILER""".split()
)
_SECONDS = 120.0
_SCRIPT_BYTES = 1 << 20  # of a script that are looked at
_MOST_SPACES = 16  # in the path of a compiler's file
_YOUNG_NS = 50_000_000  # clocks of files run behind by up to a tick of the kernel's
_LIBRARIES = re.compile(r"^\s*(?:\S+ => )?(/.+) \(0x", re.MULTILINE)
_SEARCHED = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)\nEnd of search list", re.DOTALL)
_DEPENDENCY = re.compile(r"(?:\\[ #\\]|\$\$|[^\s\\$])+|\\(?!\n)")


@dataclass(frozen=True)
class Identity:
    """A compiler with its flags: `digest` identifies all of it; `files`: its programs, libraries and
    settings; `folders`: where it looks for its own and the system's headers, in its order.
    """

    digest: str
    files: tuple[str, ...]
    folders: tuple[str, ...]


@functools.cache
def known_files() -> Digests:
    """The digests of compilers' files, of all projects of this user."""
    return Digests("compilers")


def environment() -> dict[str, str]:
    """The variables that compilers run with: the ones they need, and the ones that PASSED names."""
    wanted = (*_NEEDED, *passed())
    return {**{name: os.environ[name] for name in wanted if name in os.environ}, "LC_ALL": "C"}


def passed() -> dict[str, str]:
    """The variables that the user wants compilers to have, with their values."""
    names = re.split(r"[,\s]+", os.environ.get(PASSED, ""))
    return {name: os.environ[name] for name in sorted(set(names)) if name in os.environ}


def identify(
    command: Sequence[str], variables: Mapping[str, str], ldflags: Sequence[str] | None = None
) -> Identity | None:
    """Identifies the compiler of `command` (name or path, and flags), run with `variables`; None: it does not
    say. `ldflags`: identifies the linker too, called with these flags.
    """
    variables = {**variables, "LC_ALL": "C"}
    text = _said(command, variables, ldflags)
    if text is None:
        return None
    path = variables.get("PATH", os.defpath)
    own = os.path.realpath(shutil.which(command[0], path=path) or command[0])
    programs = {own}
    for line in text.splitlines():  # the programs that begin a line, and the driver behind a wrapper
        match = re.match(r' ?"?([^"\s|]+)', line) if line.startswith((" ", '"')) else None
        match = match or re.match(r"COLLECT_(?:GCC|LTO_WRAPPER)=(\S+)", line)
        program = shutil.which(match[1], path=path) if match else None
        names = [program] if program else list(_spaced_files(line))[:1]
        programs |= set(map(os.path.realpath, names))
    named = {*programs, *_named_files(text)}
    digest = hashlib.sha256(text.encode(errors="surrogateescape"))
    seen = known_files()
    try:
        contents = {name: seen.digest(name) for name in {*named, *_named_by_scripts(named)}}
        libraries = _libraries({name: contents[name] for name in programs}, variables)
        contents |= {name: seen.digest(name) for name in libraries - contents.keys()}
    except OSError:
        return None
    for part in (*command, *(f"{name}={variables[name]}" for name in VARIABLES if name in variables)):
        digest.update(b"\0" + part.encode(errors="surrogateescape"))
    for name, content in sorted(contents.items()):
        digest.update(f"\0{name}\0{content}".encode(errors="surrogateescape"))
    seen.save()
    searched = _SEARCHED.search(text)
    folders = tuple(line.strip() for line in searched[1].splitlines()) if searched else ()
    return Identity(digest.hexdigest(), tuple(sorted(contents)), folders)


def _said(command: Sequence[str], variables: Mapping[str, str], ldflags: Sequence[str] | None) -> str | None:
    """The output of a compiler for an empty file, without the names of temporary files.
    With `ldflags`, what it would run in order to compile and link that file: nothing is run then.
    """
    words = ["-v", "-c", "-o", "empty.o"] if ldflags is None else ["-###", "-o", "empty", *ldflags]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "empty.c").touch()
        try:
            done = subprocess.run(
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
        if done.returncode:
            return None
        said = (done.stderr + done.stdout).decode(errors="surrogateescape")
        said = said.replace(os.path.realpath(folder), "").replace(folder, "")
        return re.sub(r"/(cc|empty-)\w{6}\b", "", said)


def _named_files(text: str) -> Iterator[str]:
    """The regular files that a text names anywhere."""
    text = re.sub("^Configured with: .*", "", text, flags=re.MULTILINE)  # of where it was built
    words = {word.strip("'\"();,|") for word in text.split()}
    words |= set(re.findall(r'"([^"\n]+)"', text))
    words |= {line.partition(": ")[2].strip() for line in text.splitlines()}  # "Configuration file: /a b.cfg"
    words |= {word.partition("=")[2] for word in words}
    yield from (word for word in words if word.startswith("/") and os.path.isfile(word))  # noqa: PTH113
    for line in text.splitlines():
        yield from _spaced_files(line)


def _spaced_files(line: str) -> Iterator[str]:
    """The files that a line names. Their paths may have spaces: GCC's -v quotes no path."""
    for start in (match.start() for match in re.finditer(r"(?<![^\s=\"'])/", line)):
        ends = [start + match.start() for match in re.finditer(r"[\s\"]|$", line[start:])]
        names = [line[start:end] for end in ends[:_MOST_SPACES]]
        file = next((name for name in names if os.path.isfile(name)), None)  # noqa: PTH113
        if file is not None:
            yield file


def _named_by_scripts(files: Iterable[str]) -> set[str]:
    """The files that scripts among `files`, and scripts among those, name by a whole path.
    A script may run a program for some sources alone, or after the compiler, which then says nothing of it.
    """
    named: set[str] = set()
    waiting = list(files)
    while waiting:
        try:
            with Path(waiting.pop()).open("rb") as file:
                text = file.read(_SCRIPT_BYTES) if file.read(2) == b"#!" else b""
        except OSError:
            continue
        words = re.findall(rb"/[^\s\"'`;|&<>(){}$=:,]+", text) + re.findall(rb"[\"'](/[^\"'\n]+)[\"']", text)
        new = {os.path.realpath(word.decode(errors="surrogateescape")) for word in words} - named
        new = {path for path in new if os.path.isfile(path)}  # noqa: PTH113
        named |= new
        waiting += new
    return named


def _libraries(programs: Mapping[str, str], variables: Mapping[str, str]) -> set[str]:
    """The shared libraries that `programs` (path -> digest) load: clang's code lies in one."""

    def listed(program: str) -> str:
        with Path(program).open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
        try:
            command = ["ldd", program]
            done = subprocess.run(command, env=dict(variables), capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return "\n".join(_LIBRARIES.findall(done.stdout.decode(errors="surrogateescape")))

    seen, libraries = known_files(), set[str]()
    known = "/etc/ld.so.cache"
    searched = _there(variables.get("LD_LIBRARY_PATH", "").split(":"))
    how = [seen.digest(known) if Path(known).is_file() else "", variables.get("LD_PRELOAD", ""), *searched]
    for program, content in programs.items():
        # Toolchains have libraries of their own there.
        text = "\0".join([*how, *_there([f"{Path(program).parent}/../lib"])])
        loaded: list[str] = []
        # Once more for what is loaded: another library of the same name may load others.
        for _ in range(2):
            text += "\0".join(f"{name} {seen.digest(name)}" for name in loaded if Path(name).is_file())
            asked = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
            loaded = seen.of_content(program, content, listed, f"libraries {asked}").split("\n")
        libraries |= {*loaded} - {""}
    return libraries


def _there(folders: Iterable[str]) -> Iterator[str]:
    """Each folder, followed by the names of the libraries in it."""
    for folder in filter(None, folders):
        yield folder
        with contextlib.suppress(OSError):
            yield from sorted(name for name in os.listdir(folder) if ".so" in name)  # noqa: PTH208


# ---- headers that no source names by its place -------------------------------------------------------------

Fact = tuple[str, str]  # a path, and the digest of the file there ("": there is none)


def dependencies(rule: bytes) -> list[str]:
    """The files of a rule for Make, as compilers write it (-MD)."""
    text = rule.decode(errors="surrogateescape").replace("\\\n", " ")
    _, _, listed = text.partition(": ")
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in _DEPENDENCY.findall(listed)]


def facts(identity: Identity, files: Iterable[str]) -> list[Fact]:
    """The facts that decide which headers are read, and their content; `files`: those that were read.
    A header may later appear in another of the compiler's folders, and be read there. Raises OSError.
    """
    paths: set[str] = set()
    for path in files:
        within = [folder for folder in identity.folders if path.startswith(f"{folder}/")]
        if within:
            name = path[len(max(within, key=len)) :]
            paths |= {folder + name for folder in identity.folders}
        paths.add(path)
    return [(path, _digest(path)) for path in sorted(paths)]


def are_so(known: Iterable[Sequence[str]]) -> bool:
    """Whether all files still have the content that the facts record."""
    try:
        return all(_digest(path) == digest for path, digest in known)
    except OSError:
        return False


def changed_since(known: Iterable[Fact], when_ns: int) -> bool:
    """Whether one of the files of facts may have changed after `when_ns` (ns since 1970)."""
    return any(digest and Path(path).stat().st_ctime_ns > when_ns - _YOUNG_NS for path, digest in known)


def _digest(path: str) -> str:
    try:
        return known_files().digest(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
