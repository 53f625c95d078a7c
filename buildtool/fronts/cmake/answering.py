"""Answers the questions of the CMake package with CMake commands.

`run.py ask WHAT FILE` reads the request from standard input, and writes the answer to FILE.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.client import BuildtoolError, UsageError, hashing_always, options_of
from buildtool.client import options as table
from buildtool.fronts.cmake import called_kernels, describing, inputs, requests
from buildtool.fronts.cmake.describing import depends, describe, group, is_native, locate
from buildtool.fronts.cmake.quoting import path, quote, set_lines, set_list, shell, write_whole
from buildtool.fronts.cmake.requests import Context

if TYPE_CHECKING:
    from buildtool.client import answers

_LIBRARY = "library"  # the root of the user's own kernels, which are not start-up code
_TARGET = "--target="
_OWN = ("-O", "-std=", _TARGET)  # flags that CMake sets itself: build type, language standard, target
_ANY = "network.tflite"  # with a network, `describe` says whether the board is this machine; it is not read


def main(words: Sequence[str]) -> int:
    """Answers the request on standard input. Returns the exit status: 1 after an error, which CMake shows."""
    what, out = words
    lines = sys.stdin.buffer.read().decode(errors="surrogateescape").split("\n")
    context = Context.read(lines)
    try:
        with hashing_always(bool(context["hash_inputs"])):
            text = "\n".join(_QUESTIONS[what](context)) + "\n"
        write_whole(Path(out), text.encode(errors="surrogateescape"))
    except BuildtoolError as error:
        text = error.message(*table.CMAKE) + "\n"
        sys.stderr.buffer.write(text.encode(errors="surrogateescape"))
        return 1
    return 0


# ---- networks, firmware, start-up code ---------------------------------------------------------------


def network(context: Context) -> Iterator[str]:
    """Yields `set` commands for a network's library: its rule, its sources, and the kernels of its board."""
    call = requests.read_call(context)
    answer = describe(context, call.described)
    note = describing.check(context, answer, is_native(answer))
    files = answer["network"]
    assert files is not None  # the request has a model
    emitted = path(context["emitted"])
    own, kernels = group(answer, "network"), group(answer, "kernels")
    yield set_list("note", [note] if note else [])
    yield set_list("emit_depends", [*call.files, *call.depends, _write_command(context, call)])
    others = [name for name in files["emitted"] if name != files["kernels"]]
    yield set_list("emitted_files", [f"{emitted}/{name}" for name in others])
    yield set_list("network_includes", _includes(answer, own, emitted))
    yield set_list("network_sources", [locate(answer, s["file"], emitted) for s in own["sources"]])
    yield from _properties(answer, own, emitted)
    yield set_list("exact", [shell(answer["tools"]["exact"])])
    yield set_list("defines", answer["tools"]["defines"])
    yield set_list("kernels_called", [f"{emitted}/{files['kernels']}"])
    yield from _kernels(context, answer, kernels, f"{emitted}.kernels")
    check_file = inputs.write(context, call.files, answer)
    yield set_lines("configure_depends", [*depends(answer), check_file])


def _write_command(context: Context, call: requests.NetworkCall) -> str:
    """Writes the command line that plans the network to a file, and returns the file's path.

    Without such a file, Ninja would print the whole command above the error if planning fails.
    """
    emitted, hashed = context["emitted"], ["--hash-inputs"] if context["hash_inputs"] else []
    shared = [
        f"--{name.replace('_', '-')}={context[name]}" for name in ("cache_url", "cache_mode") if context[name]
    ]
    words = [*call.words, *hashed, *shared, "--out", emitted, "--stamp", f"{emitted}.planned"]
    write_whole(Path(f"{emitted}.command"), json.dumps(words, indent=1).encode(errors="surrogateescape"))
    return f"{emitted}.command"


def _kernels(
    context: Context, answer: answers.DescribeAnswer, kernels: answers.SourceGroup, file: str
) -> Iterator[str]:
    """Yields `set` commands for the kernels of the board, and writes `file` with the sources of all kernels.

    The variable `kernels_key` tells boards of the same name apart if their kernels or flags differ. Only the
    kernels that networks call are compiled.
    """
    chosen = {source["object"]: locate(answer, source["file"]) for source in kernels["sources"]}
    library = [source for source in group(answer, "startup")["sources"] if _is_library(source)]
    others = {f"library/{source['object']}": locate(answer, source["file"]) for source in library}
    called_kernels.write(file, context, chosen, others)
    includes, tools = _includes(answer, kernels), answer["tools"]
    sources = [*chosen.values(), *others.values()]
    text = "\0".join([*sources, "", *includes, "", *tools["exact"], "", *tools["defines"]])
    plain = re.sub(r"[^a-z0-9]+", "_", answer["board"].lower()).strip("_") or "board"
    yield set_list("kernels", [f"buildtool_kernels_{plain}{'_library' if others else ''}"])
    yield set_list("kernels_key", [_digest(text)[:8]])
    yield set_list("kernels_includes", includes)


def firmware(context: Context) -> Iterator[str]:
    """Yields `set` commands with the sources and flags of a test firmware, and the commands that run it."""
    call = requests.read_call(context)
    flashed: dict[str, object] = {name: context[name] for name in ("sign", "image_version") if context[name]}
    flashed |= {"formats": context.format} if context.format else {}
    answer = describe(context, {**call.described, **flashed}, same_kind=True)
    files = answer["network"]
    assert files is not None  # the request has a model
    emitted, parts = context["emitted"], [group(answer, name) for name in answer["image"]]
    sources = {
        f"{part['name']}/{source['object']}": locate(answer, source["file"], emitted)
        for part in parts
        for source in part["sources"]
        if not _is_library(source)
    }
    called_kernels.write(f"{context['folder']}.called", context, sources)
    includes = [folder for part in parts for folder in _includes(answer, part, emitted)]
    yield set_list("image_includes", dict.fromkeys(includes))
    yield set_list("image_name", [files["image"].rpartition(".")[0]])
    yield set_list("image_binaries", [*files["binaries"], files["report"]])
    yield from _linking(context, answer)
    slots = {
        "model": call.given["model"],
        "board": call.given["board"],
        "cmsis_nn": call.given.get("cmsis_nn", ""),
        "plan": f"{emitted}/{files['plan']}",
        "image": "$<TARGET_FILE:${name}>",
        "out": "${out}",
        "session": "${out}/debug",
    }
    for command, words in answer["commands"].items():
        filled = [word if isinstance(word, str) else slots[word["slot"]] for word in words]
        names = [option.name for option in options_of(command)]
        board_options = [
            name for name in (*requests.DESK, "outputs") if call.given.get(name) and name in names
        ]
        given = [f"{table.BY_NAME[name].flagged}={call.given[name]}" for name in board_options]
        # Names of tensors may have semicolons, at which CMake would split them.
        filled += [word.replace(";", r"\;") for word in given]
        # Only CMake knows the firmware image and its folder, so it must expand these two words.
        expanded = (slots["image"], slots["out"])
        text = " ".join(f'"{word}"' if word in expanded else quote(word) for word in filled)
        yield f"set({command}_words {text})"
    yield set_lines("configure_depends", depends(answer))


def startup(context: Context) -> Iterator[str]:
    """Yields `set` commands with the sources of a board's start-up code, and flags that link a program."""
    words = context.argument
    unknown = next((word for word in (*words[:1], *words[2:]) if word != "BOARD"), "")
    if unknown or len(words) not in (0, 2):
        text = f"unknown keyword '{unknown}'" if unknown else "BOARD needs exactly one value"
        raise UsageError(text, hint="the only keyword is BOARD, with a board")
    named = words[1] if words else context["board"]
    if not named:
        raise UsageError("BOARD is missing (buildtool's toolchain files also set the board)")
    board = requests.file_or_name(context, table.BY_NAME["board"], named)
    answer = describe(context, {"board": board}, same_kind=True)
    part = group(answer, "startup")
    yield set_list(
        "image_sources", [locate(answer, s["file"]) for s in part["sources"] if not _is_library(s)]
    )
    yield from _properties(answer, part)
    yield set_list("image_includes", _includes(answer, part))
    yield from _linking(context, answer)
    yield set_lines("configure_depends", depends(answer))


def _linking(context: Context, answer: answers.DescribeAnswer) -> Iterator[str]:
    """Yields `set` commands with the flags for the firmware image. Libraries come after the objects."""
    tools, script = answer["tools"], answer["script"]
    yield set_list("image_flags", [shell(tools["cflags"])] if tools["cflags"] else [])
    flags = [word for word in tools["ldflags"] if not word.startswith("-l")]
    path = f"{context['folder']}/{re.sub('[^A-Za-z0-9_.+-]', '_', script['name'])}" if script else ""
    if script:
        flags.append(script["flag"] + path)
    yield set_list("image_ldflags", [shell(flags)] if flags else [])
    yield set_list("image_libraries", [word for word in tools["ldflags"] if word.startswith("-l")])
    yield set_list("script", [path] if path else [])
    yield f"set(script_text {quote(script['data'].decode() if script else '')})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _includes(answer: answers.DescribeAnswer, part: answers.SourceGroup, emitted: str = "") -> list[str]:
    return [locate(answer, place, emitted) for place in part["includes"]]


def _is_library(source: answers.Source) -> bool:
    return source["file"]["root"] == _LIBRARY


def _properties(
    answer: answers.DescribeAnswer, part: answers.SourceGroup, emitted: str = ""
) -> Iterator[str]:
    """Yields commands that set properties of assembly files, and of sources that read files without #include.

    Assembly needs the flags of C, which select the core.
    """
    for source in part["sources"]:
        path = locate(answer, source["file"], emitted)
        reads = [locate(answer, place, emitted) for place in source["reads"]]
        folders = dict.fromkeys(read.rpartition("/")[0] for read in reads)
        flags = [f"{answer['tools']['incbin']}{folder}" for folder in folders]
        assembly = path.endswith(".S")
        options = [*(["-xassembler-with-cpp"] if assembly else []), *flags]
        properties = {"OBJECT_DEPENDS": reads, "COMPILE_OPTIONS": options, "LANGUAGE": ["C"] * assembly}
        for name, values in properties.items():
            if values:
                yield f"set_property(SOURCE {quote(path)} PROPERTY {name} {' '.join(map(quote, values))})"


# ---- toolchains --------------------------------------------------------------------------------------


def toolchain(context: Context) -> Iterator[str]:
    """Yields `set` commands with compilers, flags and the system's name.

    The flags leave out start-up code and linker script. The digest shows whether the settings have changed
    since CMake first configured the folder.
    """
    board = requests.file_or_name(context, table.BY_NAME["board"], context["board"])
    choice = {"toolchain": context["toolchain"]} if context["toolchain"] else {}
    answer = describe(context, {"board": board, "model": _ANY, **choice})
    settings = list(_settings(answer, board))
    yield from settings
    yield set_list("toolchain_digest", [_digest("\n".join(settings))])
    yield set_lines("configure_depends", depends(answer))


def _settings(answer: answers.DescribeAnswer, board: str) -> Iterator[str]:
    tools, native = answer["tools"], is_native(answer)
    target = next((word.removeprefix(_TARGET) for word in tools["cflags"] if word.startswith(_TARGET)), "")
    yield set_list("BUILDTOOL_BOARD", [board])
    if not native:
        yield set_list("CMAKE_SYSTEM_NAME", ["Generic"])
        yield set_list("CMAKE_SYSTEM_PROCESSOR", [target.partition("-")[0] or answer["board"]])
        # nothing links without a linker script
        yield set_list("CMAKE_TRY_COMPILE_TARGET_TYPE", ["STATIC_LIBRARY"])
    flags = shlex.join(word for word in tools["cflags"] if not word.startswith(_OWN))
    for language, compiler in (("C", tools["cc"]), ("CXX", _cxx(tools)), ("ASM", tools["cc"])):
        yield set_list(f"CMAKE_{language}_COMPILER", [compiler])
        yield set_list(f"CMAKE_{language}_FLAGS_INIT", [flags])
        yield set_list(f"CMAKE_{language}_FLAGS_DEBUG_INIT", ["-Og"])
        if target:
            yield set_list(f"CMAKE_{language}_COMPILER_TARGET", [target])
        if not native:
            yield set_list(f"CMAKE_EXECUTABLE_SUFFIX_{language}", [".elf"])
        # Use only the board's archiver: CMake would look for another compiler's ranlib.
        archive = f"<CMAKE_AR> {shlex.join(tools['arflags'])} <TARGET> <LINK_FLAGS> <OBJECTS>"
        for rule, text in (("CREATE", archive), ("APPEND", archive), ("FINISH", "")):
            yield set_list(f"CMAKE_{language}_ARCHIVE_{rule}", [text])
        libraries = shlex.join(word for word in tools["ldflags"] if word.startswith("-l"))
        yield set_list(f"CMAKE_{language}_STANDARD_LIBRARIES_INIT", [libraries])
    yield set_list("CMAKE_AR", [tools["ar"]])
    link_flags = [word for word in tools["ldflags"] if not word.startswith(("-l", _TARGET))]
    yield set_list("CMAKE_EXE_LINKER_FLAGS_INIT", [shlex.join(link_flags)])


def _cxx(tools: answers.Tools) -> str:
    """Returns the C++ compiler in the folder of the C compiler, or the C compiler if there is none."""
    cc = Path(tools["cc"])
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        beside = cc.with_name(cc.name.replace(c, cxx))
        if c in cc.name and beside.is_file():
            return str(beside)
    return str(cc)


_QUESTIONS: dict[str, Callable[[Context], Iterator[str]]] = {
    "network": network,
    "firmware": firmware,
    "startup": startup,
    "toolchain": toolchain,
}
