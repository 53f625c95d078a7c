"""What the CMake package asks, answered as CMake's own commands.

`run.py ask WHAT FILE` reads the request from standard input, and writes the answer to FILE.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.client import BuildtoolError, UsageError, hashing_always, options_of
from buildtool.client import options as table
from buildtool.fronts.cmake import describing, inputs, requests
from buildtool.fronts.cmake.describing import depends, describe, group, is_native, locate
from buildtool.fronts.cmake.quoting import path, quote, set_lines, set_list, shell, write_whole
from buildtool.fronts.cmake.requests import Context

if TYPE_CHECKING:
    from buildtool.client import answers

_LIBRARY = "library"  # the root of kernels that are the user's own: they are no start-up code
_TARGET = "--target="
_OWN = ("-O", "-std=", _TARGET)  # what CMake decides itself: build types, language standards, the target
_ANY = "network.tflite"  # of a network, describe says whether its board is this machine; the file is not read


def main(words: Sequence[str]) -> int:
    """Answers the request on standard input; the exit status is 1 after an error, which CMake shows."""
    what, out = words
    lines = sys.stdin.buffer.read().decode(errors="surrogateescape").split("\n")
    context = Context.read(lines)
    try:
        with hashing_always(bool(context["hash_inputs"])):
            text = "\n".join(_QUESTIONS[what](context)) + "\n"
        write_whole(Path(out), text.encode(errors="surrogateescape"))
    except BuildtoolError as error:
        text = error.message(_spell, _keyword) + "\n"
        sys.stderr.buffer.write(text.encode(errors="surrogateescape"))
        return 1
    return 0


def _keyword(option: str) -> str:
    """An option as the package's functions have it."""
    known = table.BY_NAME.get(option)
    return (known.spelt if known and known.spelt else option).upper()


def _spell(option: str, value: object) -> str:
    """An option with its value: RAM 64K, or the variable of the toolchain file."""
    if option == "toolchain" and value is not None:
        return f"-DBUILDTOOL_TOOLCHAIN={value}"
    return f"without {_keyword(option)}" if value is None else f"{_keyword(option)} {value}"


# ---- networks, firmware, start-up code ---------------------------------------------------------------


def network(context: Context) -> Iterator[str]:
    """The library of a network: its rule, its sources, and the kernels of its board."""
    wanted = requests.read_call(context)
    answer = describe(context, wanted.described)
    note = describing.check(context, answer, is_native(answer))
    made = answer["network"]
    assert made is not None  # it was asked for with a model
    emitted = path(context["emitted"])
    own, kernels = group(answer, "network"), group(answer, "kernels")
    yield set_list("note", [note] if note else [])
    yield set_list("emit_words", [*wanted.words, *(["--hash-inputs"] if context["hash_inputs"] else [])])
    yield set_list("emit_depends", [*wanted.files, *wanted.depends])
    yield set_list("emitted_files", [f"{emitted}/{name}" for name in made["emitted"]])
    yield set_list("network_includes", _includes(answer, own, emitted))
    yield set_list("network_sources", [locate(answer, s["file"], emitted) for s in own["sources"]])
    yield from _properties(answer, own, emitted)
    yield set_list("exact", [shell(answer["tools"]["exact"])])
    yield set_list("defines", answer["tools"]["defines"])
    yield from _kernels(answer, kernels)
    checked = inputs.write(context, wanted.files, answer)
    yield set_lines("configure_depends", [*depends(answer), checked])


def _kernels(answer: answers.DescribeAnswer, kernels: answers.SourceGroup) -> Iterator[str]:
    """The kernels of the board, with a key that tells boards of one name apart."""
    others = [source for source in group(answer, "startup")["sources"] if _is_library(source)]
    sources = [locate(answer, source["file"]) for source in [*kernels["sources"], *others]]
    includes, tools = _includes(answer, kernels), answer["tools"]
    text = "\0".join([*sources, "", *includes, "", *tools["exact"], "", *tools["defines"]])
    plain = re.sub(r"[^a-z0-9]+", "_", answer["board"].lower()).strip("_") or "board"
    yield set_list("kernels", [f"buildtool_kernels_{plain}{'_library' if others else ''}"])
    yield set_list("kernels_key", [_digest(text)[:8]])
    yield set_lines("kernels_sources", sources)
    yield set_list("kernels_includes", includes)


def firmware(context: Context) -> Iterator[str]:
    """What makes the test firmware of a network, and the commands that run it."""
    wanted = requests.read_call(context)
    flashed: dict[str, object] = {name: context[name] for name in ("sign", "image_version") if context[name]}
    flashed |= {"formats": context.format} if context.format else {}
    answer = describe(context, {**wanted.described, **flashed}, same_kind=True)
    made = answer["network"]
    assert made is not None  # it was asked for with a model
    emitted, parts = context["emitted"], [group(answer, name) for name in answer["image"]]
    sources = [(source, part) for part in parts for source in part["sources"] if not _is_library(source)]
    yield set_list("image_sources", [locate(answer, s["file"], emitted) for s, _ in sources])
    for part in parts:
        yield from _properties(answer, part, emitted)
    includes = [folder for part in parts for folder in _includes(answer, part, emitted)]
    yield set_list("image_includes", dict.fromkeys(includes))
    yield set_list("image_name", [made["image"].rpartition(".")[0]])
    yield set_list("image_binaries", [*made["binaries"], made["report"]])
    yield from _linking(context, answer)
    slots = {
        "model": wanted.given["model"],
        "board": wanted.given["board"],
        "cmsis_nn": wanted.given.get("cmsis_nn", ""),
        "plan": f"{emitted}/{made['plan']}",
        "image": "$<TARGET_FILE:${name}>",
        "out": "${out}",
        "session": "${out}/debug",
    }
    for command, words in answer["commands"].items():
        filled = [word if isinstance(word, str) else slots[word["slot"]] for word in words]
        known = [option.name for option in options_of(command)]
        desk = [name for name in requests.DESK if name in wanted.given and name in known]
        filled += [f"{table.BY_NAME[name].flagged}={wanted.given[name]}" for name in desk]
        # The image and its folder are known to CMake alone: these two words are for it to read.
        own = (slots["image"], slots["out"])
        said = " ".join(f'"{word}"' if word in own else quote(word) for word in filled)
        yield f"set({command}_words {said})"
    yield set_lines("configure_depends", depends(answer))


def startup(context: Context) -> Iterator[str]:
    """What makes the start-up code of a board, and links a program for it."""
    words = context.argument
    strange = next((word for word in (*words[:1], *words[2:]) if word != "BOARD"), "")
    if strange or len(words) not in (0, 2):
        text = f"unknown keyword '{strange}'" if strange else "BOARD is to have one value"
        raise UsageError(text, hint="the one keyword is BOARD, with a board")
    given = words[1] if words else context["board"]
    if not given:
        raise UsageError("BOARD is missing (a toolchain file of buildtool's names the board as well)")
    board = requests.file_or_name(context, table.BY_NAME["board"], given)
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
    """Flags for the image; libraries among them come behind the objects that need them."""
    tools, script = answer["tools"], answer["script"]
    yield set_list("image_flags", [shell(tools["cflags"])] if tools["cflags"] else [])
    linked = [word for word in tools["ldflags"] if not word.startswith("-l")]
    path = f"{context['folder']}/{re.sub('[^A-Za-z0-9_.+-]', '_', script['name'])}" if script else ""
    if script:
        linked.append(script["flag"] + path)
    yield set_list("image_ldflags", [shell(linked)] if linked else [])
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
    """Sources that take in files otherwise than by #include, and assembly: C's flags select its core, too."""
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
    """Compilers, flags and the system's name, without start-up code and linker script.

    The digest tells whether what CMake took over when it configured a folder first is still the same.
    """
    board = requests.file_or_name(context, table.BY_NAME["board"], context["board"])
    chosen = {"toolchain": context["toolchain"]} if context["toolchain"] else {}
    answer = describe(context, {"board": board, "model": _ANY, **chosen})
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
        # The board's archiver alone: CMake would look for a ranlib of another compiler's.
        archive = f"<CMAKE_AR> {shlex.join(tools['arflags'])} <TARGET> <LINK_FLAGS> <OBJECTS>"
        for rule, text in (("CREATE", archive), ("APPEND", archive), ("FINISH", "")):
            yield set_list(f"CMAKE_{language}_ARCHIVE_{rule}", [text])
        libraries = shlex.join(word for word in tools["ldflags"] if word.startswith("-l"))
        yield set_list(f"CMAKE_{language}_STANDARD_LIBRARIES_INIT", [libraries])
    yield set_list("CMAKE_AR", [tools["ar"]])
    linked = [word for word in tools["ldflags"] if not word.startswith(("-l", _TARGET))]
    yield set_list("CMAKE_EXE_LINKER_FLAGS_INIT", [shlex.join(linked)])


def _cxx(tools: answers.Tools) -> str:
    """The C++ compiler beside the C compiler, or the C compiler where there is none."""
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
