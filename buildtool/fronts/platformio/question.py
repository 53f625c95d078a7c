"""Answers library/SConscript: the networks of a project, from standard input, as what is to be built.

    {"given": the custom_buildtool_* options of the environment, without that prefix,
     "networks": the sections [buildtool:NAME], by name,
     "compiler": its command line, with the flags of C files, "variables": those that it runs with}

All options are those of the table; those of the environment hold for each of the sections.
"""

from __future__ import annotations

import json
import re
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
# Options that decide what is compiled.
_OF_DESCRIBE = ("board", "cmsis_nn", "requantise", "threads", "weights_in", "arena_in", "name")
Given = Mapping[str, Any]


def main() -> int:
    """The exit status; the answer is printed as JSON, an error goes to standard error."""
    question = json.load(sys.stdin)
    given = question["given"]
    try:
        with hashing_always(given.pop("hash_inputs", "").lower() in ("1", "yes", "true", "on")):
            answer = answered(given, question["networks"])
            found = identify(question["compiler"], question["variables"], ())
            more = {"compiler": found.digest if found else "", "hashed": is_hashed_always()}
        print(json.dumps({**answer, **more}))
    except BuildtoolError as error:
        print(error if error.path else error.at(path=INI), file=sys.stderr)
        return 1
    return 0


def answered(given: Given, sections: Mapping[str, Given]) -> dict[str, Any]:
    """What is to be compiled, and the words of the commands that emit."""
    networks = [{**given, "name": name, **section} for name, section in sections.items()] or [dict(given)]
    asked = [_check_options(network) for network in networks]
    boards = {tuple(network.get(name) for name in _OF_DESCRIBE if name != "name") for network in asked}
    if len(boards) > 1:
        raise UsageError("all networks of an environment are for one board", path=INI, option="board")
    seen = Digests(f"files of the project in {Path.cwd()}")
    with Client(str(Path.cwd())) as client:
        answers = [_describe(network, client, seen) for network in asked]
    made = [_network(network, answer, seen) for network, answer in zip(asked, answers, strict=True)]
    seen.save()
    first = answers[0]
    kernels = next(group for group in first["groups"] if group["name"] == "kernels")
    return {
        "networks": made,
        "kernels": [
            [_path(first, source["file"]), source["object"], [_path(first, read) for read in source["reads"]]]
            for source in kernels["sources"]
        ],
        "includes": [_path(first, place) for place in kernels["includes"]],
        "copts": [*first["tools"]["exact"], *(f"-D{name}" for name in first["tools"]["defines"])],
        "digest": first["digest"],
    }


def _check_options(network: Given) -> dict[str, Any]:
    """A network's options, each known to the table."""
    known = [option.name for option in options_of("emit")]
    for name in network:
        if name not in known:
            hint = did_you_mean(name.lower(), known)
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
        what = f"a network's name is a C identifier in lower case, not '{network['name']}'"
        raise UsageError(what, path=INI)
    planning = {o.name for o in options_of("emit", options.Group.PLANNING)}
    options.planning({key: value for key, value in network.items() if key in planning})
    return dict(network)


def _describe(network: Given, client: Client, seen: Digests) -> kinds.DescribeAnswer:
    request = {"kind": "describe", "model": network["model"]}
    asked = {name: network[name] for name in _OF_DESCRIBE if network.get(name)}
    request |= {name: options.from_text(options.BY_NAME[name], value) for name, value in asked.items()}
    answer: Any = fetch_description(request, str(Path.cwd()), code_digest(), seen, client.request)
    return answer  # type: ignore[no-any-return]


def _network(network: Given, answer: kinds.DescribeAnswer, seen: Digests) -> dict[str, Any]:
    made = answer["network"]
    assert made is not None  # it was asked for with a model
    own = next(group for group in answer["groups"] if group["name"] == "network")
    given = [option for option in options_of("emit") if network.get(option.name)]
    named = [
        network[option.name]
        for option in given
        if option.suffixes is not None and _is_file(option, network[option.name])
    ]
    model = network["model"]
    # The command line that emits, but for the folder.
    words = ["emit", f"./{model}" if model.startswith("-") else model, f"--name={made['net']}"]
    words += [f"{o.flagged}={network[o.name]}" for o in given if o.name not in ("model", "name")]
    reads = sorted({*named, *(_path(answer, place) for place in answer["depends"])})
    return {
        "net": made["net"],
        "library": made["library"],
        "emitted": made["emitted"],
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
    """Whether a value is a file's name, rather than that of a board or network of buildtool's own."""
    return value.lower().endswith(option.suffixes or ()) or (option.name == "model" and Path(value).is_file())


if __name__ == "__main__":
    sys.exit(main())
