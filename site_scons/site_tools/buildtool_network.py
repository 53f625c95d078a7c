"""SCons tool: a board's compiler, and neural networks as libraries and as test firmware.

    env = Environment(tools=["buildtool_network"])
    env.UseBoard("cortex-m4")                               # compiler, flags, linker script
    network = env.NeuralNetwork("models/wake_word.tflite")  # plans, emits, compiles a library
    env.Program("app.elf", ["main.c", *env["BOARD_STARTUP"], network.library])

The tool turns buildtool's answer to `describe` into SCons nodes. Paths are relative to the top folder.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import SCons
from SCons.Action import Action
from SCons.Errors import UserError
from SCons.Node.FS import Base, get_default_fs
from SCons.PathList import PathList
from SCons.Scanner import ScannerBase as Scanner
from SCons.Script import Main
from SCons.Subst import Literal
from SCons.Tool import Tool, createObjBuilders
from SCons.Tool.cxx import CXXSuffixes
from SCons.Util import flatten

from buildtool.client import (
    BuildtoolError,
    Client,
    UsageError,
    code_digest,
    did_you_mean,
    emitted_lines,
    fetch_description,
    home,
    identify,
    options_of,
    place,
)
from buildtool.client import options as table

if TYPE_CHECKING:
    from buildtool.client import Objects, answers

FIELD = tuple(option.name for option in options_of("emit", table.Group.FIELD))
PLANNING = (*(option.name for option in options_of("emit", table.Group.PLANNING)), *FIELD)
# Options of UseBoard beside the board and its compiler.
_OF_BOARD = options_of("describe", table.Group.TARGET, table.Group.DESK)
TARGET = tuple(option.name for option in _OF_BOARD if option.name not in ("board", "toolchain"))
# Short texts that are shown instead of whole command lines.
SHORT = {
    "CCCOMSTR": "compiling $SOURCE",
    "CXXCOMSTR": "compiling $SOURCE",
    "ASPPCOMSTR": "assembling $SOURCE",
    "ARCOMSTR": "archiving $TARGET",
    "LINKCOMSTR": "linking $TARGET",
}
_COMPILED = ("toolchain", "debug", "on", "wire")  # options that only decide how sources are compiled
_WARNING = re.compile(r"-W(?![alp],).*")  # flags that do not change what a compiler runs or reads
EMITTED = "emitted"  # in answers, the root that stands for a network's own folder

_TOOLS_FOLDER = str(Path(__file__).parent) + os.sep  # the folder of these tools

_clients: dict[str, Client] = {}
_caches: dict[str, Objects] = {}  # by top folder
_opening = threading.Lock()  # SCons compiles in several threads


# SCons's tools that networks are built with, and the variable that each of them, or its like, sets.
_COMPILING = {"cc": "CCCOM", "link": "LINKCOM", "ar": "ARCOM", "as": "ASPPCOM"}


def generate(env):
    """Adds the methods UseBoard, NeuralNetwork, PlaceWeights, and the methods for test firmware.

    An environment without a compiler, archiver or linker gets SCons's tools for them. UseBoard sets the
    programs.
    """
    for tool, command in _COMPILING.items():
        if command not in env:
            env.Tool(tool)
    Tool("recorded_targets", toolpath=[str(Path(__file__).parent)])(env)
    env.SetDefault(NETWORK_DAEMON="", NETWORK_CACHE="on")
    env["NETWORK_PLANNING"], env["NETWORK_TARGET"] = PLANNING, TARGET
    methods = {"UseBoard": use_board, "NeuralNetwork": neural_network, "PlaceWeights": place_weights}
    methods |= {"NetworkFirmware": network_firmware, "RunNetwork": run_network}
    methods |= {"DebugNetwork": debug_network, "FlashNetwork": flash_network}
    for name, method in methods.items():
        env.AddMethod(_at_the_users_line(name, method), name)


def exists(env):
    """Returns True: the tool needs only this package."""
    return True


@dataclass(eq=False)
class Network:
    """A network's nodes, and what methods of the environment need to know about it.

    - `answer`: buildtool's description of the network.
    - `directory`: the folder of its targets.
    - `slots`: the words for the slots in the answer's commands, by the slots' names.
    - `library`: the library to link.
    - `include`: the folders for the compiler.
    - `files`: the emitted files by name.
    - `reserve`: makes the library that `reserving` returns.
    - `asked`: the request for the description.
    """

    answer: answers.DescribeAnswer
    directory: Any
    slots: dict[str, str]
    library: Any
    include: Any
    files: Any
    reserve: Callable[[], Any]
    asked: dict[str, Any]

    @property
    def made(self) -> answers.NetworkFiles:
        """The part of the answer about the network's files."""
        return _network(self.answer)

    @property
    def net(self) -> str:
        """The network's name in C."""
        return self.made["net"]

    @functools.cached_property
    def reserving(self):
        """The library with empty space instead of the weights, for programs that PlaceWeights fills.

        It becomes a target when it is first used.
        """
        return self.reserve()


def _network(answer: answers.DescribeAnswer) -> answers.NetworkFiles:
    """Returns the part of an answer about the network's files; the request must have named a model."""
    files = answer["network"]
    assert files is not None
    return files


def _check_option(method, name):
    """Raises UsageError if `method`, UseBoard or NeuralNetwork, has no option `name`."""
    options = {"UseBoard": TARGET, "NeuralNetwork": PLANNING}
    if name in options[method]:
        return
    others = [other for other in options if name in options[other]]
    hint = f"it is an option of {others[0]}" if others else did_you_mean(name, options[method])
    raise UsageError(f"{method} has no option '{name}': {hint}")


def use_board(env, board, toolchain="", work=None, verbose=False, **target):
    """Sets the environment up to build for `board`.

    - `toolchain`: the compiler's name ("": the board's first one).
    - `work`: the folder for targets that all networks share.
    - `verbose`: whether to show whole command lines instead of short texts.
    - `target`: options of TARGET, such as `cmsis_nn` or `threads`.

    Returns the answer's `tools`, the folders of the board's headers as `includes`, and the macros of its
    serial port as `serial`.
    """
    request = {"board": str(_given("board", board))} | ({"toolchain": toolchain} if toolchain else {})
    for name, value in target.items():
        _check_option("UseBoard", name)
        if value not in (None, "", False):
            request[name] = table.from_text(table.BY_NAME[name], value)
    debug, attached = request.get("debug"), request.keys() & {"on", "wire"}
    answer = _describe(env, request)
    Tool("recorded_targets", toolpath=[str(Path(__file__).parent)])(env)
    subfolder = "debug/" if debug else "attached/" if attached else ""
    work = _folder(env, work or f"#build/{subfolder}{_file_name(answer['board'])}")
    tools = answer["tools"]
    # Debug information contains no path of this machine: sources are relative to the top folder.
    renamed = [f"{tools['renames']}{env.Dir('#').abspath}=."] if tools["renames"] else []
    cflags, pairs = _words([*renamed, *tools["cflags"]]), itertools.pairwise(tools["cflags"])
    env.Replace(
        ESCAPE=shlex.quote,
        BOARD_INCLUDES=_include_flags,
        # Folders in the compiler's own flags, because SCons looks for headers in CPPPATH only.
        BOARD_SYSTEM=[env.fs.Dir(folder) for flag, folder in pairs if flag == "-isystem"],
        _CPPINCFLAGS="$( $BOARD_INCLUDES $)",
        BOARD=request["board"],
        BOARD_ANSWER=answer,
        BOARD_REQUEST=request,
        BOARD_WORK=work,
        BOARD_KERNELS=None,
        BOARD_SCRIPT=_linker_script(env, answer["script"], work),
        CC=_words([tools["cc"]]),
        CCFLAGS=cflags,
        ASPPFLAGS=cflags,
        AR=_words([tools["ar"]]),
        ARFLAGS=_words(tools["arflags"]),
        ARCOM="$AR $ARFLAGS $TARGET $SOURCES",
        RANLIBCOM="",
        LINK=_words([tools["cc"]]),
        LINKFLAGS=cflags,
        # Libraries in the flags come after the objects that need them.
        LINKCOM="$LINK -o $TARGET $LINKFLAGS $SOURCES $_LIBDIRFLAGS $_LIBFLAGS $BOARD_LDFLAGS $BOARD_MAP",
        BOARD_MAP=_map_flags,
        PROGSUFFIX=".elf",
    )
    for command, words in SHORT.items():
        if verbose or not env.get(command):  # texts of the user's own SConstruct stay
            env[command] = "" if verbose else words
    script = answer["script"]
    flags = [f"{script['flag']}{_argument(node)}" for node in env["BOARD_SCRIPT"]] if script else []
    env["BOARD_LDFLAGS"] = _words([*tools["ldflags"], *flags])
    env.Append(PROGEMITTER=[_with_script_and_map])
    _objects_need_compiler(env)
    env["BOARD_STARTUP"] = _objects(_own(env), "startup", work.Dir("startup"))
    env["BOARD_SERIAL"] = _serial_objects(_own(env), work.Dir("serial"))
    port = answer["serial"]
    folders = [*_group(answer, "startup")["includes"], *(port["includes"] if port else [])]
    includes = list(dict.fromkeys(_node(env, answer, place, env.fs.Dir) for place in folders))
    return {**tools, "includes": includes, "serial": _words(port["flags"] if port else [])}


def neural_network(env, model, directory=None, name=None, plan="", **planning):
    """Plans and compiles a network for the environment's board; returns the Network.

    - `model`: a .tflite or .onnx file, or a network of the zoo.
    - `directory`: the folder for its targets (None: a folder of the board with the network's name).
    - `name`: the prefix of its C interface (None: the model's name).
    - `plan`: a file of `buildtool plan --out` to build from ("": it is planned).
    - `planning`: options of PLANNING.
    """
    for option in planning:
        _check_option("NeuralNetwork", option)
    values = {name: table.from_text(table.BY_NAME[name], value) for name, value in planning.items()}
    planning = {name: value for name, value in values.items() if name not in FIELD}
    checks = {name: value for name, value in values.items() if name in FIELD}
    table.parse_planning(planning)  # reports a mistake before the build starts
    golden = _file(env, "golden", checks["golden"]) if checks.get("golden") else None
    checks |= {"golden": golden.path} if golden else {}
    if name is not None and not re.fullmatch("[a-z][a-z0-9_]*", str(name)):
        raise UsageError(f"a network's name is a C identifier in lower case, not '{name}'")
    model = _given("model", model)
    source = _model_file(env, model)
    query = {**env["BOARD_REQUEST"], "model": source.path if source else model}
    query |= {"name": name} if name else {}
    answer = _describe(env, query)
    files = _network(answer)
    directory = _folder(env, directory) if directory else _folder(env, env["BOARD_WORK"], files["net"])
    request = {key: value for key, value in query.items() if key not in _COMPILED}
    locked = _file(env, "plan", plan) if plan else None
    request |= {"options": planning, **checks} | ({"plan": locked.path} if locked else {})
    _check_name(files, directory, request)
    own = _own(env, BOARD_ANSWER=answer, NETWORK_REQUEST=request)
    emitted = _emit(own, directory.Dir("src"), request, list(filter(None, (source, locked, golden))))
    objects = _objects(own, "network", directory.Dir("obj"), emitted)
    if env["BOARD_KERNELS"] is None:  # every kernel that the board can run, built once for all networks
        nodes = _objects(_own(env), "kernels", env["BOARD_WORK"].Dir("kernels"))
        names = [source["object"] for source in _group(answer, "kernels")["sources"]]
        for node in nodes:
            env.Ignore(node.dir, node)  # a folder as target leaves out kernels that no network calls
        env["BOARD_KERNELS"] = dict(zip(names, nodes, strict=True))
    own["NETWORK_KERNELS"] = env["BOARD_KERNELS"]
    library = _archive(own, directory.File(files["library"]), objects, emitted[files["kernels"]])
    reserve = functools.partial(_reserving, own, directory, emitted, objects)
    group = _group(answer, "network")
    include = [_node(own, answer, place, env.fs.Dir, emitted) for place in group["includes"]]
    slots = {key: query[key] for key in ("model", "board", "cmsis_nn") if key in query}
    if planning.get("outputs"):
        slots["outputs"] = ",".join(table.parse("outputs", planning["outputs"]))
    return Network(answer, directory, slots, library, include, emitted, reserve, query)


def place_weights(env, target, program, networks):
    """Returns the linked `program` with the weights of `networks` in the space that it reserves for them.

    If only the weights change, the program is not linked again.
    """
    every = env.Flatten([networks])
    symbols = {network.made["symbol"]: network.made["weights"] for network in every}
    linked = env.Flatten([program])[0]  # without its map
    sources = [linked, *(network.files[network.made["weights"]] for network in every)]
    action = Action(_place_weights, "placing weights in $TARGET", varlist=["NETWORK_SYMBOLS"])
    variables = {"NETWORK_SYMBOLS": list(symbols), "NETWORK_LINE": _users_line()}
    return env.OnlyAsRecorded(env.Command(target, sources, action, **variables))


def network_firmware(env, network: Network, directory=None, formats=None, sign="", image_version=""):
    """Returns the test firmware of a network: .elf, its files for flash (none on the host) and sizes.txt.

    `formats` are some of bin, hex and uf2. `sign` is the private key that signs firmware for MCUboot, with
    `image_version` in its header.
    """
    key = _file(env, "key", sign) if sign else None
    values = {"formats": flatten([formats or ()]), "sign": key and key.path, "image_version": image_version}
    more = {option: value for option, value in values.items() if value}
    answer = _describe(env, {**network.asked, **more}) if more else network.answer
    files = _network(answer)
    directory = _folder(env, directory) if directory else network.directory
    own = _own(env, BOARD_ANSWER=answer)
    parts = {
        "harness": _objects(own, "harness", directory.Dir("harness"), network.files),
        "startup": env["BOARD_STARTUP"],
    }
    objects = [node for group in answer["image"] for node in parts[group]]
    image = directory.File(files["image"])
    own["BOARD_MAP_FILE"] = directory.File(files["map"])
    if files["apart"]:
        linked = own.Program(directory.Dir("linked").File(files["image"]), [*objects, network.reserving])
        _, *maps = own.OnlyAsRecorded(linked)
        elf = place_weights(own, image, linked, network)
    else:
        program = own.Program(image, [*objects, network.library])
        elf, maps = program[:1], program[1:]
    network.slots |= {"image": elf[0].path, "plan": network.files[files["plan"]].path, "out": directory.path}
    outputs = [directory.File(name) for name in (files["report"], *files["binaries"])]
    sources = [*elf, key] if key else elf
    report = own.Command(outputs, sources, _action(_fill_slots(network, "sizes", answer)))
    env.OnlyAsRecorded([elf, maps, report])
    return [*elf, *maps, *report]


def run_network(env, network: Network, firmware, **inputs):
    """Returns the alias `run`, which builds the firmware, runs it, and prints the table of layers.

    `inputs` are options such as `input` and `seed`.
    """
    words = _with_options(network, "profile", "RunNetwork", _board_options(env, "on", "wire") | inputs)
    return env.AlwaysBuild(env.Alias("run", firmware, _action(words, _users_line())))


def debug_network(env, network: Network, firmware, **options):
    """Returns the alias `debug`, which builds the firmware and starts the server for a debugger.

    The alias prints how to connect. The session's files are in the folder `session` of the network's folder.
    `options` are those for inputs, and `port`.
    """
    network.slots["session"] = network.directory.Dir("session").path
    words = _with_options(network, "debug", "DebugNetwork", options)
    return env.AlwaysBuild(env.Alias("debug", firmware, _action(words, _users_line())))


def flash_network(env, network: Network, firmware, **options):
    """Returns the alias `flash`, which builds the firmware and writes it into the board's flash.

    The board must be attached: UseBoard(..., on="board"). `options` may have `tool`.
    """
    words = _with_options(network, "flash", "FlashNetwork", _board_options(env, "wire") | options)
    return env.AlwaysBuild(env.Alias("flash", firmware, _action(words, _users_line())))


def _board_options(env, *names):
    """Returns those of the options `names` that the call of UseBoard had, with their values."""
    return {name: env["BOARD_REQUEST"][name] for name in names if name in env["BOARD_REQUEST"]}


def _with_options(network: Network, command, method, options):
    """Returns the words of a command about a network's firmware image, with the user's `options`.

    Raises UsageError, which names the user's call `method`, if NetworkFirmware was not called before.
    """
    if "image" not in network.slots:
        raise UsageError(f"{method} needs the network's firmware: call NetworkFirmware first")
    # Inputs, an attached board, the reference, a debugger's port.
    names = [option.name for option in options_of(command, table.Group.INPUT, table.Group.DESK)]
    names += [option.name for option in options_of(command) if option.name in ("reference", "port")]
    words = _fill_slots(network, command)
    words += [f"--outputs={network.slots['outputs']}"] if "outputs" in network.slots else []
    for option, value in options.items():
        if option not in names:
            raise UsageError(f"there is no option '{option}' here: {did_you_mean(option, names)}")
        if value is True and table.BY_NAME[option].flag:
            words.append(table.BY_NAME[option].flagged)
        elif value not in (None, "", False):
            table.parse(option, table.from_text(table.BY_NAME[option], value))
            words.append(f"{table.BY_NAME[option].flagged}={value}")
    return words


# ---- mistakes ------------------------------------------------------------------------------------


def _show_no_lines_of_ours():
    """Makes SCons's errors and warnings name the user's line, not a line of these tools."""
    find = Main.find_deepest_user_frame

    def find_users_frame(frames):
        return find([frame for frame in frames if not frame[0].startswith(_TOOLS_FOLDER)] or frames)

    Main.find_deepest_user_frame = find_users_frame


_show_no_lines_of_ours()


def _at_the_users_line(name, method):
    """Returns the method `name` to add to environments: it calls `method`.

    A mistake in a call becomes an error at the user's line.
    """
    signature = inspect.signature(method)

    def call(env, *words, **options):
        try:
            _check_call(name, signature, env, words, options)
            return method(env, *words, **options)
        except BuildtoolError as error:
            raise _mistake(error) from None

    return call


def _check_call(name, signature, env, words, options):
    """Raises UsageError for arguments `words` and `options` that the method `name` does not take.

    `signature` is that of the method.
    """
    try:
        given = signature.bind(env, *words, **options).arguments
    except TypeError as error:
        raise UsageError(f"{name}: {error}") from None
    if "board" not in given and "BOARD_REQUEST" not in env:
        hint = 'call UseBoard("BOARD") first, for the same environment'
        raise UsageError(f"{name} needs a board", hint=hint)
    for network in flatten([given.get("network", ()), given.get("networks", ())]):
        if not isinstance(network, Network):
            raise UsageError(f"{name} needs the network that NeuralNetwork returned, not '{network}'")


def _mistake(error: BuildtoolError) -> UserError:
    """Returns SCons's error for a mistake in an SConstruct, with the line of the mistake.

    The line has the form of compilers' messages, so that editors find it. If the error is about a line of
    another file, the SConstruct's line follows the error.
    """
    if error.path:
        return UserError(f"the build cannot be read:\n{error}\n{_note(_users_line())}")
    path, line, column = _caller()
    return UserError(f"the build cannot be read:\n{error.at(path=path, line=line, column=column)}")


def _note(line: str) -> str:
    """Returns the last line of an error, which says that the user's `line` has requested what failed."""
    return f"{line}: note: requested here"


def _users_line() -> str:
    """Returns file, line and column of the user's call as compilers write them."""
    return ":".join(map(str, _caller()))


def _caller() -> tuple[str, int, int]:
    """Returns file, line and column of the innermost call outside these tools and SCons."""
    frame = sys._getframe(1)
    skipped = (_TOOLS_FOLDER, str(Path(SCons.__file__).parent) + os.sep)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(skipped):
        frame = frame.f_back
    places = list(frame.f_code.co_positions())
    line, _, column, _ = places[frame.f_lasti // 2] if frame.f_lasti >= 0 else (None, None, None, None)
    name = frame.f_code.co_filename
    below, top = Path(name).absolute(), Path(get_default_fs().Top.abspath)
    # Relative to the top folder: while SCons reads a SConscript, the working folder is the SConscript's.
    shown = below.relative_to(top) if below.is_relative_to(top) else name
    return str(shown), line or frame.f_lineno, (column or 0) + 1


# ---- nodes ---------------------------------------------------------------------------------------


def _literal(text):
    """Returns the text with doubled dollar signs, so that SCons substitutes nothing in it."""
    return str(text).replace("$", "$$")


class _Word(Literal):  # type: ignore[misc]
    """A literal word of a command line: neither SCons nor the shell substitutes anything in it."""

    def for_signature(self):
        """Returns the word for a signature, with a space after each dollar sign.

        Without it, SCons would look for brackets after dollar signs.
        """
        return str(self).replace("$", "$$ ")


def _words(words):
    """Returns the words of a command line; a word with special characters becomes a `_Word`."""
    return [word if re.fullmatch(r"[\w@%+=:,./-]+", word) else _Word(word) for word in words]


def _file_name(name):
    """Returns a name for a file in the build folder; it has a digest if `name` has special characters."""
    if re.fullmatch(r"\w[\w.+-]*", name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9]+', '_', name).strip('_')}_{digest}"


def _folder(env, directory, name="."):
    """Returns a folder for targets.

    Raises UsageError if it is a file, or if its name looks like an option.
    """
    try:
        node = env.Dir(directory).Dir(name)
    except TypeError:
        raise UsageError(f"cannot build in {directory}: it is a file, or is below a file") from None
    if node.path.startswith("-"):
        raise UsageError(f"cannot build in a folder whose name begins with a dash: {node.path}")
    return node


def _argument(path):
    """Returns a path with /, ./ or ../ at its start, so that no program takes it for an option."""
    text = str(path)
    return text if text.startswith(("/", "./", "../")) else f"./{text}"


def _include_flags(target, source, env, for_signature):
    """Returns the flags for the folders in CPPPATH, which neither SCons nor the shell changes.

    Folders that the compiler's other flags name are left out. They are in CPPPATH only because SCons looks
    for headers there.
    """
    paths = PathList(env.get("CPPPATH", ())).subst_path(env, target, source)
    folders = target[0].RDirs(paths) if target else map(env.Dir, paths)
    return [_Word(f"{env['INCPREFIX']}{folder}") for folder in folders if folder not in env["BOARD_SYSTEM"]]


def _group(answer: answers.DescribeAnswer, name: str) -> answers.SourceGroup:
    return next(group for group in answer["groups"] if group["name"] == name)


def _node(env, answer: answers.DescribeAnswer, place: answers.Place, kind, emitted=None):
    """Returns the node for a place in an answer.

    `kind`: env.fs.File or env.fs.Dir. `emitted`: the nodes of emitted files by name.
    """
    if place["root"] == EMITTED:
        if place["path"]:
            return emitted[place["path"]]
        return next(iter(emitted.values())).dir
    root = answer["roots"].get(place["root"], "")
    return kind(str(Path(root, place["path"])))


def _own(env, **variables):
    """Returns an environment for buildtool's own targets, with `variables`.

    It decides by content whether sources have changed, whatever Decider the user has set. It also knows the
    line of the user's call, for errors in the build; no command uses this variable, so that nothing is built
    again if the line moves.
    """
    spawn = _CachedSpawn(env["SPAWN"], env.Dir("#").abspath, env["NETWORK_CACHE"])
    own = env.Clone(BOARD_COMPILER=None, NETWORK_LINE=_users_line(), SPAWN=spawn, **variables)
    tools = env["BOARD_ANSWER"]["tools"]
    own.DecideByContent({shutil.which(tools[program]) for program in ("cc", "ar")})
    return own


class _CachedSpawn:
    """Runs command lines in the top folder as `spawn` does, but takes objects from the cache if it has
    them.
    """

    def __init__(self, spawn, top: str, use: str):
        self._spawn, self._top, self._use = spawn, top, use

    def __call__(self, sh, escape, cmd, args, env):
        """Runs a command line and returns its exit status. `args` are its words, quoted for the shell."""
        words = shlex.split(" ".join(args))

        def run(longer):
            return self._spawn(sh, escape, cmd, [*args, *map(shlex.quote, longer[len(words) :])], env)

        variables = {name: str(value) for name, value in env.items()}
        return _cached_objects(self._top, self._use).compile(words, run, variables, Path(self._top))[0]


def _cached_objects(top: str, use: str) -> Objects:
    """Returns the cache of objects for the whole build in the folder `top`."""
    with _opening:
        if top not in _caches:
            from buildtool.client import Objects  # a build with nothing to do does not need it

            _caches[top] = Objects(use)
            atexit.register(_caches[top].close)
        return _caches[top]


def _objects(own, name, directory, emitted=None):
    """Returns the objects of a group of the environment's answer, in `directory`; see `_compile`."""
    return _compile(own, _group(own["BOARD_ANSWER"], name), directory, emitted)


def _serial_objects(own, directory):
    """Returns the objects of the driver of the board's serial port; [] for a board without a port."""
    port = own["BOARD_ANSWER"]["serial"]
    if port is None:
        return []
    own.Append(CCFLAGS=_words(port["flags"]))
    objects = _compile(own, port, directory)
    own.Ignore(directory, objects)  # a folder as target leaves them out: few programs use the port
    return objects


def _compile(own, group: answers.SourceGroup | answers.SerialPort, directory, emitted=None):
    """Returns the objects of a group of sources, which are compiled into `directory`.

    Adds the group's include folders to `own`, an environment from `_own`. `emitted` has the nodes of emitted
    files by name.
    """
    answer: answers.DescribeAnswer = own["BOARD_ANSWER"]
    includes = [_node(own, answer, place, own.fs.Dir, emitted) for place in group["includes"]]
    own.Append(CPPPATH=[*includes, *own["BOARD_SYSTEM"]])
    own["BOARD_COMPILER"] = _compiler(own)  # no source of the group has flags of its own
    objects = []
    for source in group["sources"]:
        reads = [_node(own, answer, place, own.fs.File, emitted) for place in source["reads"]]
        folders = _words(f"{answer['tools']['incbin']}{_argument(node.dir)}" for node in reads)
        flags = {"ASPPFLAGS": [*own["ASPPFLAGS"], *folders]} if folders else {}
        node = _node(own, answer, source["file"], own.fs.File, emitted)
        compiled = own.Object(directory.File(source["object"]), node, **flags)
        own.Depends(compiled, reads)
        objects += own.OnlyAsRecorded(compiled)
    return objects


def _compiler(env, command="$CC $CFLAGS $CCFLAGS"):
    """Returns a value node that identifies compiler and linker with all programs and files that they use."""
    tools = env["BOARD_ANSWER"]["tools"]
    words = tuple(map(str, env.subst_list(command)[0]))
    words = tuple(word for word in words if not _WARNING.fullmatch(word))
    joined = {k: os.pathsep.join(map(str, env.Flatten([value]))) for k, value in env["ENV"].items()}
    digest = _identity(words, tuple(sorted(joined.items())), tuple(tools["ldflags"]))
    return env.Value(f"the compiler {tools['identity']}, {digest}")


def _objects_need_compiler(env):
    """Makes every object of the environment depend on the compiler."""
    for builder in createObjBuilders(env):
        for suffix, emitter in [*builder.emitter.items()]:
            if not isinstance(emitter, _WithCompiler):  # environments share their builders with their clones
                command = "$CXX $CXXFLAGS $CCFLAGS" if suffix in CXXSuffixes else "$CC $CFLAGS $CCFLAGS"
                builder.add_emitter(suffix, _WithCompiler(emitter, command))


class _WithCompiler:
    """An emitter that makes objects depend on the compiler, if the environment has a board."""

    def __init__(self, emitter, command):
        self._emitter, self._command = emitter, command

    def __call__(self, target, source, env):
        target, source = self._emitter(target, source, env)
        if "BOARD_ANSWER" in env:
            env.Depends(target, env.get("BOARD_COMPILER") or _compiler(env, self._command))
        return target, source


@functools.cache
def _identity(command, variables, ldflags) -> str:
    """Returns a short text that identifies a compiler; it is computed once per build."""
    compiler = identify(command, dict(variables), ldflags)
    return f"of digest {compiler.digest[:16]}" if compiler else "which does not say what it runs"


def _archive(own, target, objects, listed):
    """Returns the library of `objects` and of the kernels that the network calls.

    The emitted file `listed` names these kernels. SCons finds them in it as it finds the headers of a source.
    """

    def words(target, source, env, for_signature):
        return [_Word(node.path) for node in [*objects, *_called(own, listed)]]

    scanner = Scanner(lambda node, env, path: _called(own, node) if node is listed else [])
    action = Action("$AR $ARFLAGS $TARGET $NETWORK_OBJECTS", "$ARCOMSTR")
    made = own.Command(target, [*objects, listed], action, source_scanner=scanner, NETWORK_OBJECTS=words)
    own.Clean(made, list(own["NETWORK_KERNELS"].values()))
    return own.OnlyAsRecorded(made)


def _called(own, listed):
    """Returns the objects of the kernels that an emitted file names; [] if the file does not exist yet."""
    with contextlib.suppress(OSError):
        names = Path(listed.get_abspath()).read_text(encoding="utf-8", errors="replace").split()
        return [own["NETWORK_KERNELS"][name] for name in names if name in own["NETWORK_KERNELS"]]
    return []


def _reserving(own, directory, emitted, objects):
    """Returns the library of a network with empty space instead of the weights."""
    answer: answers.DescribeAnswer = own["BOARD_ANSWER"]
    files = _network(answer)
    sources = _group(answer, "network")["sources"]
    code = [node for node, source in zip(objects, sources, strict=True) if not source["reads"]]
    (weights,) = (source for source in sources if source["reads"])
    room = own.Object(
        directory.Dir("obj").File(f"{files['symbol']}_reserved.o"),
        _node(own, answer, weights["file"], own.fs.File, emitted),
        ASPPFLAGS=[*own["ASPPFLAGS"], *_words([files["reserve"]])],
    )
    own.OnlyAsRecorded(room)
    target = directory.File(f"lib{files['net']}_reserving.a")
    return _archive(own, target, [*code, *room], emitted[files["kernels"]])


def _linker_script(env, script: answers.Script | None, work):
    """Returns the linker script as a target that depends only on its content."""
    if script is None:
        return []
    content = env.NamedValue(f"the script {_file_name(script['name'])}", script["data"].decode())
    target = work.File(_file_name(script["name"]))
    return env.OnlyAsRecorded(env.Command(target, content, Action(_write_text, "writing $TARGET")))


def _with_script_and_map(target, source, env):
    """Makes a program depend on linker script and linker, and adds the linker's map as a second target."""
    _check_linked([*source, *flatten([env.get("LIBS", ())])])
    env.Depends(target, [*env["BOARD_SCRIPT"], _compiler(env)])
    program = target[0]
    table = env.get("BOARD_MAP_FILE") or program.dir.File(f"{Path(program.name).stem}.map")
    return [*target, table], source


def _check_linked(nodes):
    """Raises an error if two networks of a program have the same name.

    The linker would use the code of one of them for both.
    """
    named: dict[str, tuple[str, Any]] = {}
    for env in (node.env for node in nodes if isinstance(node, Base) and node.env):
        if "NETWORK_REQUEST" not in env:
            continue
        net, asked = _network(env["BOARD_ANSWER"])["net"], env["NETWORK_REQUEST"]
        line, other = named.setdefault(net, (env["NETWORK_LINE"], asked))
        if other != asked:
            both = f"'{other['model']}' ({line}) and '{asked['model']}' ({env['NETWORK_LINE']})"
            hint = f"give one of them another name, such as name='{net}_2'"
            raise _mistake(UsageError(f"two networks of one program are called '{net}': {both}", hint=hint))


def _map_flags(target, source, env, for_signature):
    """Returns the flags that make the linker write its map, for a program that has one."""
    maps = [node for node in target if node.name.endswith(".map")]
    flag = env["BOARD_ANSWER"]["tools"]["map"]
    return [word for node in maps for word in ("-Xlinker", _Word(f"{flag}{node.path}"))]


def _given(argument, value):
    """Returns the name or the node that the user gave as `argument`, also if it is in a list.

    Methods of SCons return lists of nodes.
    """
    values = flatten([value])
    if len(values) != 1 or not isinstance(values[0], (str, os.PathLike, Base)):
        raise UsageError(f"{value!r} is neither a name nor a file", option=argument)
    return values[0] if isinstance(values[0], Base) else os.fspath(values[0])


def _model_file(env, model):
    """Returns the node of a model's file; None for a zoo network."""
    is_file = isinstance(model, Base) or model.lower().endswith((".tflite", ".onnx"))
    return _file(env, "model", model) if is_file else None


def _file(env, argument, value):
    """Returns the node of the file that the user gave as `argument`.

    Unlike env.File, it substitutes nothing in the name.
    """
    node = _given(argument, value)
    if not isinstance(node, Base):
        # "#" is the top folder, unless there is a file with this name
        node = env.fs.File(f"./{node}" if node.startswith("#") and Path(node).exists() else node)
    if not node.exists() and not node.has_builder():
        text = f"cannot read the {argument}: there is no such file, and no target builds it"
        raise UsageError(text, path=str(value))
    return node


def _check_name(files: answers.NetworkFiles, directory, request):
    """Raises UsageError if a network of another request has the same name and the same folder."""
    first = directory.Dir("src").File(files["emitted"][0])
    if first.has_builder() and first.env.get("NETWORK_REQUEST", request) != request:
        text = f"the network at {first.env['NETWORK_LINE']} is called '{files['net']}' too"
        raise UsageError(text, hint=f"give one of them another name, such as name='{files['net']}_2'")


def _emit(env, directory, request, inputs):
    """Returns the emitted sources as targets, by name. `inputs` are the files that the request names."""
    answer: answers.DescribeAnswer = env["BOARD_ANSWER"]
    files = _network(answer)
    # The request and the code that answers it are sources: if either changes, the network is emitted again.
    text = json.dumps({**request, "kind": "emit"}, sort_keys=True)
    named = {**request, **request["options"], "options": None}
    shown = " ".join(f"{name}={value}" for name, value in named.items() if value is not None)
    sources = [
        env.NamedValue(f"the request {shown.encode('ascii', 'backslashreplace').decode()}", text),
        env.Value(f"the code of buildtool, of digest {answer['digest']}"),
    ]
    sources += inputs
    sources += [_node(env, answer, place, env.fs.File) for place in answer["depends"]]
    targets = env.Command(
        [directory.File(name) for name in files["emitted"]],
        sources,
        Action(_write_sources, f"planning {_literal(request['model'])}"),
    )
    env.OnlyAsRecorded(targets)
    return {target.name: target for target in targets}


# ---- commands ------------------------------------------------------------------------------------


def _fill_slots(network: Network, command: str, answer: answers.DescribeAnswer | None = None) -> list[str]:
    """Returns a command of the answer (default: the network's answer), with its slots filled."""
    words = (answer or network.answer)["commands"][command]
    # A value must not look like an option, even if the file's name begins with a dash.
    values = {slot: f"./{text}" if text.startswith("-") else text for slot, text in network.slots.items()}
    return [word if isinstance(word, str) else values[word["slot"]] for word in words]


def _action(words, line=""):
    """Returns an action that runs a command of buildtool by this Python, without a shell.

    `line` is the user's line, for errors ("": the environment's).
    """

    def run(target, source, env):
        paths = filter(None, [home(), os.environ.get("PYTHONPATH")])
        own = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        status = subprocess.run([sys.executable, "-P", "-m", "buildtool", *words], env=own).returncode
        if status:
            sys.stderr.write(f"{_note(line or env['NETWORK_LINE'])}\n")
        return status

    return Action(run, _literal(f"buildtool {shlex.join(words)}"))


def _write_text(target, source, env):
    Path(target[0].path).write_text(source[0].read(), encoding="utf-8")


def _place_weights(target, source, env):
    program, *weights = (Path(node.path) for node in source)
    try:
        image = program.read_bytes()
        for symbol, path in zip(env["NETWORK_SYMBOLS"], weights, strict=True):
            image = place(image, symbol, path.read_bytes())
    except BuildtoolError as error:
        sys.stderr.write(f"{error.at(path=str(program))}\n{_note(env['NETWORK_LINE'])}\n")
        return 1
    Path(target[0].path).write_bytes(image)
    shutil.copymode(program, target[0].path)
    return 0


def _write_sources(target, source, env):
    try:
        answer: answers.EmitAnswer = _client(env).request(json.loads(source[0].read()))
    except BuildtoolError as error:
        sys.stderr.write(f"{error}\n{_note(env['NETWORK_LINE'])}\n")
        return 1
    files = answer["files"]
    if sorted(files) != sorted(node.name for node in target):
        sys.stderr.write(f"error: the emitted files are not the expected ones: {', '.join(sorted(files))}\n")
        return 1
    lines = emitted_lines(answer, Path(target[0].path).parent)
    for node in target:
        Path(node.path).write_bytes(files[node.name])
    print(lines)
    return 0


def _client(env):
    """Returns the client for the whole build, in the top folder.

    Its requests are answered by the daemon or by a child of this process.
    """
    top = env.Dir("#").abspath
    if top not in _clients:
        _clients[top] = Client(top, env["NETWORK_DAEMON"], env["NETWORK_CACHE"])
        atexit.register(_clients[top].close)
    return _clients[top]


_code = functools.cache(code_digest)  # computed once per build


class _Shared(dict[str, Any]):
    """A dictionary that all clones of an environment share; SCons would copy it deeply for each clone."""

    def __semi_deepcopy__(self):
        return self


def _describe(env, request: dict[str, Any]) -> answers.DescribeAnswer:
    def ask(request):
        return _client(env).request(request)

    full, top = {"kind": "describe", **request}, env.Dir("#").abspath
    description = fetch_description(full, top, _code(), env["FILES_SEEN"], ask)
    return cast("answers.DescribeAnswer", _Shared(description))
