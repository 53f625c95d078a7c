"""The answers for buildtool_add_network, buildtool_add_firmware and buildtool_add_startup."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from buildtool.client import UsageError, options_of
from buildtool.client import options as table
from buildtool.fronts.cmake import cores, inputs, quoting, requests
from buildtool.fronts.cmake.context import Context
from buildtool.fronts.cmake.describing import depends, describe, group, is_native, located

if TYPE_CHECKING:
    from buildtool.client import answers

_LIBRARY = "library"  # the root of kernels that are the user's own: they are no start-up code


def network(context: Context) -> Iterator[str]:
    """What makes the library of a network: its rule, its sources, and the kernels of its board."""
    wanted = requests.wanted(context)
    answer = describe(context, wanted.described)
    note = cores.check(context, answer, is_native(answer))
    made = answer["network"]
    assert made is not None  # it was asked for with a model
    emitted = quoting.path(context["emitted"])
    own, kernels = group(answer, "network"), group(answer, "kernels")
    yield quoting.set_list("note", [note] if note else [])
    yield quoting.set_list(
        "emit_words", [*wanted.words, *(["--hash-inputs"] if context["hash_inputs"] else [])]
    )
    yield quoting.set_list("emit_depends", [*wanted.files, *wanted.depends])
    yield quoting.set_list("emitted_files", [f"{emitted}/{name}" for name in made["emitted"]])
    yield quoting.set_list("network_includes", _includes(answer, own, emitted))
    yield quoting.set_list("network_sources", [located(answer, s["file"], emitted) for s in own["sources"]])
    yield from _properties(answer, own, emitted)
    yield quoting.set_list("exact", [quoting.shell(answer["tools"]["exact"])])
    yield quoting.set_list("defines", answer["tools"]["defines"])
    yield from _kernels(answer, kernels)
    checked = inputs.write(context, wanted.files, answer)
    yield quoting.set_lines("configure_depends", [*depends(answer), checked])


def _kernels(answer: answers.DescribeAnswer, kernels: answers.SourceGroup) -> Iterator[str]:
    """The kernels of the board; a key tells them from those of another board with this name."""
    others = [source for source in group(answer, "startup")["sources"] if _is_library(source)]
    sources = [located(answer, source["file"]) for source in [*kernels["sources"], *others]]
    includes, tools = _includes(answer, kernels), answer["tools"]
    text = "\0".join([*sources, "", *includes, "", *tools["exact"], "", *tools["defines"]])
    plain = re.sub(r"[^a-z0-9]+", "_", answer["board"].lower()).strip("_") or "board"
    yield quoting.set_list("kernels", [f"buildtool_kernels_{plain}{'_library' if others else ''}"])
    yield quoting.set_list(
        "kernels_key", [hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:8]]
    )
    yield quoting.set_lines("kernels_sources", sources)
    yield quoting.set_list("kernels_includes", includes)


def firmware(context: Context) -> Iterator[str]:
    """What makes the test firmware of a network, and the commands that run it."""
    wanted = requests.wanted(context)
    flashed: dict[str, object] = {name: context[name] for name in ("sign", "image_version") if context[name]}
    flashed |= {"formats": context.format} if context.format else {}
    answer = describe(context, {**wanted.described, **flashed}, same_kind=True)
    made = answer["network"]
    assert made is not None  # it was asked for with a model
    emitted, parts = context["emitted"], [group(answer, name) for name in answer["image"]]
    sources = [(source, part) for part in parts for source in part["sources"] if not _is_library(source)]
    yield quoting.set_list("image_sources", [located(answer, s["file"], emitted) for s, _ in sources])
    for part in parts:
        yield from _properties(answer, part, emitted)
    includes = [folder for part in parts for folder in _includes(answer, part, emitted)]
    yield quoting.set_list("image_includes", dict.fromkeys(includes))
    yield quoting.set_list("image_name", [made["image"].rpartition(".")[0]])
    yield quoting.set_list("image_binaries", [*made["binaries"], made["report"]])
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
        filled += _desk(wanted, command)
        # The image and its folder are known to CMake alone: these two words are for it to read.
        yield f"set({command}_words {' '.join(_word(word) for word in filled)})"
    yield quoting.set_lines("configure_depends", depends(answer))


def _desk(wanted: requests.Wanted, command: str) -> list[str]:
    """The words of a command that say how the board is reached."""
    given = [(name, wanted.given[name]) for name in requests.DESK if name in wanted.given]
    known = [option.name for option in options_of(command)]
    return [f"{table.BY_NAME[name].flagged}={value}" for name, value in given if name in known]


def startup(context: Context) -> Iterator[str]:
    """What makes the start-up code of a board, and links a program for it."""
    board = _board(context)
    answer = describe(context, {"board": board}, same_kind=True)
    part = group(answer, "startup")
    yield quoting.set_list(
        "image_sources", [located(answer, s["file"]) for s in part["sources"] if not _is_library(s)]
    )
    yield from _properties(answer, part)
    yield quoting.set_list("image_includes", _includes(answer, part))
    yield from _linking(context, answer)
    yield quoting.set_lines("configure_depends", depends(answer))


def _board(context: Context) -> str:
    arguments = context.argument
    strange = next((word for word in (*arguments[:1], *arguments[2:]) if word != "BOARD"), "")
    if strange or len(arguments) not in (0, 2):
        text = f"unknown keyword '{strange}'" if strange else "BOARD is to have one value"
        raise UsageError(text, hint="the one keyword is BOARD, with a board")
    given = arguments[1] if arguments else context["board"]
    if not given:
        raise UsageError("BOARD is missing (a toolchain file of buildtool's names the board as well)")
    return requests.file_or_name(context, table.BY_NAME["board"], given)


def _linking(context: Context, answer: answers.DescribeAnswer) -> Iterator[str]:
    """Flags for the image; libraries among them come behind the objects that need them."""
    tools, script = answer["tools"], answer["script"]
    yield quoting.set_list("image_flags", [quoting.shell(tools["cflags"])] if tools["cflags"] else [])
    linked = [word for word in tools["ldflags"] if not word.startswith("-l")]
    path = f"{context['folder']}/{re.sub('[^A-Za-z0-9_.+-]', '_', script['name'])}" if script else ""
    if script:
        linked.append(script["flag"] + path)
    yield quoting.set_list("image_ldflags", [quoting.shell(linked)] if linked else [])
    yield quoting.set_list("image_libraries", [word for word in tools["ldflags"] if word.startswith("-l")])
    yield quoting.set_list("script", [path] if path else [])
    yield f"set(script_text {quoting.quoted(script['data'].decode() if script else '')})"


def _word(word: str) -> str:
    return f'"{word}"' if word in ("$<TARGET_FILE:${name}>", "${out}") else quoting.quoted(word)


def _includes(answer: answers.DescribeAnswer, part: answers.SourceGroup, emitted: str = "") -> list[str]:
    return [located(answer, place, emitted) for place in part["includes"]]


def _is_library(source: answers.Source) -> bool:
    return source["file"]["root"] == _LIBRARY


def _properties(
    answer: answers.DescribeAnswer, part: answers.SourceGroup, emitted: str = ""
) -> Iterator[str]:
    """Sources that take in files otherwise than by #include, and assembly: C's flags select its core, too."""
    for source in part["sources"]:
        path = located(answer, source["file"], emitted)
        reads = [located(answer, place, emitted) for place in source["reads"]]
        folders = dict.fromkeys(read.rpartition("/")[0] for read in reads)
        flags = [f"{answer['tools']['incbin']}{folder}" for folder in folders]
        assembly = path.endswith(".S")
        yield from _set(path, "OBJECT_DEPENDS", reads)
        yield from _set(path, "COMPILE_OPTIONS", [*(["-xassembler-with-cpp"] if assembly else []), *flags])
        yield from _set(path, "LANGUAGE", ["C"] if assembly else [])


def _set(path: str, name: str, values: Iterable[str]) -> Iterator[str]:
    text = " ".join(map(quoting.quoted, values))
    if text:
        yield f"set_property(SOURCE {quoting.quoted(path)} PROPERTY {name} {text})"
