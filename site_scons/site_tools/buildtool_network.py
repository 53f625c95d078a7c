"""SCons tool: a board's compiler, and neural networks as libraries and as test firmware.

    env = Environment(tools=["cc", "link", "ar", "as", "buildtool_network"])
    env.UseBoard("cortex-m4")                               # compiler, flags, linker script
    network = env.NeuralNetwork("models/wake_word.tflite")  # plans, emits, compiles a library
    env.Program("app.elf", ["main.c", *env["BOARD_STARTUP"], network.library])

All it knows it asks of buildtool's client. Paths are relative to the top folder.
"""

import atexit
import json
import os
import re
import sys
from pathlib import Path

from SCons.Action import Action
from SCons.Errors import UserError

from buildtool.client import BuildtoolError, Client, code_digest, did_you_mean, home
from buildtool.client import options as table

PLANNING = tuple(option.name for option in table.of("emit", table.Group.PLANNING))
# What a network's sources are called, besides its name.
EMITTED = (".c", ".h", "_quantization.h", "_weights.S", "_weights.bin", "_arena.json", ".plan")
GLUE = "harness_net.h"

_clients = {}


def generate(env):
    """Adds the methods UseBoard, NeuralNetwork, NetworkFirmware and RunNetwork."""
    env["NETWORK_PLANNING"] = PLANNING
    env.AddMethod(use_board, "UseBoard")
    env.AddMethod(neural_network, "NeuralNetwork")
    env.AddMethod(network_firmware, "NetworkFirmware")
    env.AddMethod(run_network, "RunNetwork")


def exists(env):
    """There if the package is."""
    return True


class Network:
    """A network's nodes: `library` to link, `include` for the compiler, `files` by name."""

    def __init__(self, net, directory, request, library, include, files):
        self.net = net
        self.directory = directory
        self.request = request
        self.library = library
        self.include = include
        self.files = files


def use_board(env, board, toolchain="", work=None, verbose=True, cmsis_nn=""):
    """Sets the environment up to build for `board`; what is made for all networks goes to `work`.

    `verbose`: whole command lines, or what they do in a few words. `cmsis_nn`: a checkout of CMSIS-NN
    whose kernels the networks are to use (Cortex-M).
    """
    work = env.Dir(work or f"#build/{Path(board).stem}")
    Path(work.abspath).mkdir(parents=True, exist_ok=True)
    target = {"board": board, **({"cmsis_nn": cmsis_nn} if cmsis_nn else {})}
    tools = _ask(env, kind="toolchain", toolchain=toolchain, **target)
    script = _written_script(tools, work)
    ldflags = [*tools["ldflags"], *(f"{tools['script_flag']}{node.path}" for node in script)]
    env.Replace(
        BOARD_TARGET=target,
        BOARD=board,
        BOARD_TOOLS=tools,
        BOARD_TOOLCHAIN=toolchain,
        BOARD_WORK=work,
        CC=tools["cc"],
        CCFLAGS=tools["cflags"],
        ASPPFLAGS=tools["cflags"],
        AR=tools["ar"],
        ARFLAGS="rcsD",  # D: no times, no owners
        ARCOM="$AR $ARFLAGS $TARGET $SOURCES",
        RANLIBCOM="",
        LINK=tools["cc"],
        LINKFLAGS=tools["cflags"],
        # Libraries that the flags name come after the objects that need them.
        LINKCOM="$LINK -o $TARGET $LINKFLAGS $SOURCES $_LIBDIRFLAGS $_LIBFLAGS $BOARD_LDFLAGS",
        BOARD_LDFLAGS=ldflags,
        PROGSUFFIX=".elf",
        CCCOMSTR="" if verbose else "compiling $SOURCE",
        ASPPCOMSTR="" if verbose else "assembling $SOURCE",
        ARCOMSTR="" if verbose else "archiving $TARGET",
        LINKCOMSTR="" if verbose else "linking $TARGET",
        BOARD_SCRIPT=script,
    )
    env["BOARD_STARTUP"] = _objects(env, tools["objects"], work.Dir("startup"), tools["includes"])
    return tools


def neural_network(env, model, directory=None, name=None, **planning):
    """Plans and compiles `model` (a .tflite or .onnx file, or a zoo network) for the environment's board.

    `name` is the prefix of the C interface; default: the model's own. `planning` are options of PLANNING.
    """
    for option in planning:
        if option not in PLANNING:
            raise UserError(f"NeuralNetwork has no option '{option}': {did_you_mean(option, PLANNING)}")
    try:  # a build learns of a mistake before it starts
        table.planning(planning)
    except BuildtoolError as error:
        raise UserError(str(error)) from None
    if name is not None and not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(f"a network's name is a C identifier in lower case, '{name}' is none")
    tools = env["BOARD_TOOLS"]
    if _is_file(model):
        model = env.File(model).path
    target = env["BOARD_TARGET"]
    request = {"model": model, **target, "options": planning}
    work = env["BOARD_WORK"]
    checked = _ask(env, kind="toolchain", toolchain=env["BOARD_TOOLCHAIN"], model=model, **target)
    net = name or checked["net"]
    directory = env.Dir(directory) if directory else work.Dir(net)
    files = _emit(env, directory.Dir("src"), net, request | ({"name": name} if name else {}))
    include = [directory.Dir("src"), env.Dir(tools["include"])]
    own = env.Clone()
    kernels = [env.Dir(folder) for folder in tools["kernel_includes"]]
    own.Append(CPPPATH=[directory.Dir("src"), *kernels], ASPPFLAGS=[f"-Wa,-I{directory.Dir('src').path}"])
    objects = directory.Dir("obj")
    weights = own.Object(objects.File(f"{net}_weights.o"), files[f"{net}_weights.S"])
    own.Depends(weights, files[f"{net}_weights.bin"])
    # An object is linked whether or not anything asks for it, but only its sections that are used.
    code = own.Object(objects.File(f"{net}.o"), files[f"{net}.c"])
    library = own.StaticLibrary(directory.File(f"lib{net}.a"), [code, weights, *_kernels(env)])
    return Network(net, directory, request, library, include, files)


def network_firmware(env, network, directory=None):
    """The test firmware of a network: .elf, its .bin files (none on the host) and sizes.txt."""
    tools = env["BOARD_TOOLS"]
    directory = env.Dir(directory) if directory else network.directory
    own = env.Clone()
    own.Append(CPPPATH=network.include)
    harness = _objects(
        own,
        tools["harness_sources"],
        directory.Dir("harness"),
        [*tools["includes"], *tools["harness_includes"]],
    )
    elf = own.Program(
        directory.File(f"{network.net}.elf"), [*harness, *env["BOARD_STARTUP"], network.library]
    )
    own.Depends(elf, env["BOARD_SCRIPT"])
    images = [directory.File(network.net + suffix) for suffix in tools["binaries"]]
    report = _command(
        env,
        [directory.File("sizes.txt"), *images],
        elf,
        ["sizes", elf[0].path, "--board", env["BOARD"], "--out", directory.path],
    )
    return [*elf, *report]


def run_network(env, network, firmware, **inputs):
    """The alias `run`: builds the firmware, runs the network, prints the table of its layers."""
    request = network.request
    words = ["profile", request["model"], "--board", request["board"]]
    library = {"cmsis_nn": request.get("cmsis_nn")}
    given = {**request["options"], **library, "toolchain": env["BOARD_TOOLCHAIN"], **inputs}
    for name, value in given.items():
        if value not in (None, ""):
            words += [table.BY_NAME[name].flagged, str(value)]
    own = env.Clone(ENV=dict(os.environ))
    return own.AlwaysBuild(own.Alias("run", firmware, _action(own, words)))


# ---- parts ---------------------------------------------------------------------------------------


def _action(env, words):
    """The command line of buildtool, run by this Python."""
    env.PrependENVPath("PYTHONPATH", home())
    return Action([[sys.executable, "-P", "-m", "buildtool.cli", *words]], f"buildtool {' '.join(words)}")


def _command(env, targets, sources, words):
    own = env.Clone(ENV=dict(os.environ))
    return own.Command(targets, sources, _action(own, words))


def _is_file(model):
    return model.endswith((".tflite", ".onnx"))


def _written_script(tools, work):
    """The linker script, written to `work` where it is not there yet: its node."""
    nodes = []
    for name, data in tools["files"].items():
        path = Path(work.abspath, name)
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
        nodes.append(work.File(name))
    return nodes


def _file(env, path):
    """The node of a path that is relative to the top folder."""
    return env.File(path if Path(path).is_absolute() else f"#{path}")


def _objects(env, sources, directory, includes):
    own = env.Clone()
    own.Append(CPPPATH=[env.Dir(include) for include in includes])
    return [own.Object(directory.File(f"{Path(source).stem}.o"), source)[0] for source in sources]


def _kernels(env):
    """The objects of every kernel that the board can run, made once for all its networks."""
    if "BOARD_KERNELS" not in env:
        tools = env["BOARD_TOOLS"]
        own = env.Clone()
        own.Append(CPPPATH=[env.Dir(folder) for folder in tools["kernel_includes"]])
        folder = env["BOARD_WORK"].Dir("kernels")
        env["BOARD_KERNELS"] = [
            own.Object(folder.File(f"{Path(source).parent.name}/{Path(source).stem}.o"), source)[0]
            for source in tools["kernel_sources"]
        ]
    return env["BOARD_KERNELS"]


def _emit(env, directory, net, request):
    """The emitted sources as targets, by name."""
    names = [*(net + suffix for suffix in EMITTED), GLUE]
    # The request and the code that answers it are sources: a change of either emits anew.
    sources = [env.Value(json.dumps(request | {"kind": "emit"}, sort_keys=True)), env.Value(code_digest())]
    for path in (request["model"], request["board"]):
        if path.endswith((".tflite", ".onnx", ".toml")):
            sources.append(_file(env, path))
    targets = env.Command(
        [directory.File(name) for name in names],
        sources,
        Action(_write_sources, f"planning {request['model']}"),
    )
    return {target.name: target for target in targets}


def _write_sources(target, source, env):
    try:
        answer = _client(env).request(json.loads(source[0].read()))
    except BuildtoolError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    files = answer["files"]
    if sorted(files) != sorted(node.name for node in target):
        sys.stderr.write(f"error: other files were emitted than expected: {', '.join(sorted(files))}\n")
        return 1
    for node in target:
        Path(node.path).write_bytes(files[node.name])
    return 0


def _client(env):
    """One service for the whole build, in the top folder."""
    top = env.Dir("#").abspath
    if top not in _clients:
        _clients[top] = Client(cwd=top)
        atexit.register(_clients[top].close)
    return _clients[top]


def _ask(env, **request):
    try:
        return _client(env).request(request)
    except BuildtoolError as error:
        raise UserError(str(error)) from None
