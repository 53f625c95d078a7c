"""Answers library/SConscript: reads the networks of a project, and returns what to build.

Standard input has the question as JSON:

    {"given": the options custom_buildtool_* of the environment, without this prefix,
     "networks": the sections [buildtool:NAME], by name,
     "compiler": its command line, with the flags of C files,
     "variables": its environment variables}

All options are those of the table of options. The environment's options apply to each section.

If the script gets arguments, it runs them as buildtool's command line instead. The first argument is the
prefix of options in platformio.ini.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.client import (
    BuildtoolError,
    Client,
    Digests,
    UsageError,
    code_digest,
    did_you_mean,
    fetch_description,
    hashing_always,
    identify,
    is_hashed_always,
    options,
    options_of,
)

if TYPE_CHECKING:
    from buildtool.client import answers as kinds

INI = "platformio.ini"
# The options that decide what is compiled.
_OF_DESCRIBE = ("board", "cmsis_nn", "requantise", "threads", "weights_in", "arena_in", "kernels_in", "name")
Given = Mapping[str, Any]


def main() -> int:
    """Prints the answer as JSON, and errors to standard error. Returns the exit status."""
    question = json.load(sys.stdin)
    settings = question["given"]
    try:
        with hashing_always(settings.pop("hash_inputs", "").lower() in ("1", "yes", "true", "on")):
            answer = answered(settings, question["networks"])
            compiler = identify(question["compiler"], question["variables"], ())
            more = {"compiler": compiler.digest if compiler else "", "hashed": is_hashed_always()}
        print(json.dumps({**answer, **more}))
    except BuildtoolError as error:
        front = options.platformio(_prefix(question["networks"]))
        print(error.at(path=error.path or INI).message(*front), file=sys.stderr)
        return 1
    return 0


def _prefix(sections: Mapping[str, Given]) -> str:
    """Returns the prefix of option names in platformio.ini: "" if the project has sections for networks, in
    which options have no prefix.
    """
    return "" if sections else "custom_buildtool_"


def answered(settings: Given, sections: Mapping[str, Given]) -> dict[str, Any]:
    """Returns what to compile, and the command line of `buildtool emit` for each network."""
    merged = [{**settings, "name": name, **section} for name, section in sections.items()]
    networks = [_check_options(network) for network in merged or [dict(settings)]]
    boards = {tuple(network.get(name) for name in _OF_DESCRIBE if name != "name") for network in networks}
    if len(boards) > 1:
        text = "all networks of an environment must be for the same board"
        raise UsageError(text, path=INI, option="board")
    seen = Digests(f"files of the project in {Path.cwd()}")
    with Client(str(Path.cwd())) as client:
        answers = [_describe(network, client, seen) for network in networks]
    outputs = [_network(network, answer, seen) for network, answer in zip(networks, answers, strict=True)]
    seen.save()
    first = answers[0]
    kernels = next(group for group in first["groups"] if group["name"] == "kernels")
    return {
        "networks": outputs,
        "kernels": [
            [_path(first, source["file"]), source["object"], [_path(first, read) for read in source["reads"]]]
            for source in kernels["sources"]
        ],
        "includes": [_path(first, place) for place in kernels["includes"]],
        "copts": [*first["tools"]["exact"], *(f"-D{name}" for name in first["tools"]["defines"])],
        "digest": first["digest"],
        "prefix": _prefix(sections),
    }


def _check_options(network: Given) -> dict[str, Any]:
    """Returns a network's options, parsed. Raises UsageError if one is wrong."""
    names = [option.name for option in options_of("emit")]
    for name in network:
        if name not in names:
            hint = did_you_mean(name.lower(), names)
            raise UsageError(f"there is no option custom_buildtool_{name}", path=INI, hint=hint)
    for name in ("model", "board"):
        if not network.get(name):
            raise UsageError(
                f"the environment has no custom_buildtool_{name}",
                path=INI,
                hint=options.BY_NAME[name].sentence,
            )
    model = network["model"]
    if model.lower().endswith(options.MODEL_SUFFIXES) and not Path(model).is_file():
        raise UsageError("cannot read the model: there is no such file", path=model)
    if not re.fullmatch("[a-z][a-z0-9_]*", network.get("name", "net")):
        text = f"a network's name is a C identifier in lower case, not '{network['name']}'"
        raise UsageError(text, path=INI)
    planning = {o.name for o in options_of("emit", options.Group.PLANNING)}
    options.parse_planning({key: value for key, value in network.items() if key in planning})
    return dict(network)


def _describe(network: Given, client: Client, seen: Digests) -> kinds.DescribeAnswer:
    request = {"kind": "describe", "model": network["model"]}
    texts = {name: network[name] for name in _OF_DESCRIBE if network.get(name)}
    request |= {name: options.from_text(options.BY_NAME[name], value) for name, value in texts.items()}
    answer: Any = fetch_description(request, str(Path.cwd()), code_digest(), seen, client.request)
    return answer  # type: ignore[no-any-return]


def _network(network: Given, answer: kinds.DescribeAnswer, seen: Digests) -> dict[str, Any]:
    described = answer["network"]
    assert described is not None  # the request has a model
    own = next(group for group in answer["groups"] if group["name"] == "network")
    present = [option for option in options_of("emit") if network.get(option.name)]
    files = [
        network[option.name]
        for option in present
        if option.suffixes is not None and _is_file(option, network[option.name])
    ]
    model = network["model"]
    # The command line that emits, without the folder.
    words = ["emit", f"./{model}" if model.startswith("-") else model, f"--name={described['net']}"]
    words += [f"{o.flagged}={network[o.name]}" for o in present if o.name not in ("model", "name")]
    reads = sorted({*files, *(_path(answer, place) for place in answer["depends"])})
    return {
        "net": described["net"],
        "library": described["library"],
        "emitted": described["emitted"],
        "kernels": described["kernels"],
        "sources": [
            [source["file"]["path"], source["object"], [read["path"] for read in source["reads"]]]
            for source in own["sources"]
        ],
        "words": words,
        "reads": reads,
        "contents": [[path, seen.digest(path)] for path in reads if Path(path).is_file()],
    }


def _path(answer: kinds.DescribeAnswer, place: kinds.Place) -> str:
    return str(Path(answer["roots"].get(place["root"], ""), place["path"]))


def _is_file(option: options.Option, value: str) -> bool:
    """Whether a value names a file, and not one of buildtool's own boards or networks."""
    return value.lower().endswith(option.suffixes or ()) or (option.name == "model" and Path(value).is_file())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        options.FRONT.set(options.platformio(sys.argv.pop(1)))
        runpy.run_module("buildtool", run_name="__main__", alter_sys=True)
    sys.exit(main())
