"""A network's sources, emitted by an action, and the library that is compiled from them."""

load(":library.bzl", "BuildtoolBoardInfo", "CC_ATTRS", "CC_TOOLCHAINS", "compile_library")
load(":options.bzl", "FILE_OPTIONS", "FLAGS", "OPTIONS")
load(":tool.bzl", "CacheInfo", "ToolInfo", "WorkerInfo")

BuildtoolNetworkInfo = provider(
    doc = "A network of buildtool_network.",
    fields = {
        "board": "The BuildtoolBoardInfo of its board.",
        "header": "The header that applications include.",
        "model": "The model's file; None for a network of `buildtool zoo`.",
        "model_name": "The name of a network of `buildtool zoo`, else \"\".",
        "outputs": "The tensors or layers at which it ends, or \"\": those of the file.",
        "plan": "The plan of the sources.",
        "sources": "All emitted files.",
        "weights": "The weight image.",
    },
)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# Arguments: a folder; the names of the called kernels' objects; all names with the kernels' sources.
_COPY = """\
called=" $(tr '\\n' ' ' <"$2") " || exit
while IFS='\t' read -r name source; do
    case $called in
        *" $name "*) mkdir -p "$1/${name%/*}" && cp "$source" "$1/${name%/*}" || exit ;;
    esac
done <"$3"
"""

def _check_name(name):
    """Fails for a name that cannot be the prefix of the C interface."""
    odd = [letter for letter in name.elems() if letter not in _LETTERS + "0123456789_"]
    if odd or name[0] not in _LETTERS:
        fail("error: a network's name is a C identifier in lower case, not '%s'" % name)

def _plain(path):
    """A path that cannot be mistaken for an option."""
    return "./" + path if path.startswith("-") else path

def _network(ctx):
    net = ctx.label.name
    _check_name(net)
    board = ctx.attr.board[BuildtoolBoardInfo]
    names = [name.format(net = net) for name in board.emitted]
    made = {name: ctx.actions.declare_file("_buildtool/%s/%s" % (net, name)) for name in names}
    folder = made.values()[0].dirname
    _emit(ctx, net, board, made.values(), folder)
    called = _copy_called_kernels(ctx, board, made[board.called.format(net = net)])
    info = compile_library(
        ctx,
        srcs = [made[name.format(net = net)] for name in board.sources] + [called],
        hdrs = [made[name] for name in made if name.endswith(".h")],
        includes = [folder],
        copts = board.copts,
        deps = [board.headers],
        reading = [made[name.format(net = net)] for name in board.reading],
        reads = [made[name.format(net = net)] for name in board.reads],
    )
    weights, plan = made[board.weights.format(net = net)], made[board.plan.format(net = net)]
    return [
        info,
        DefaultInfo(files = depset(made.values())),
        OutputGroupInfo(weights = depset([weights]), plan = depset([plan])),
        BuildtoolNetworkInfo(
            board = board,
            header = made[net + ".h"],
            model = ctx.file.model,
            model_name = ctx.attr.model_name,
            outputs = ctx.attr.outputs,
            plan = plan,
            sources = depset(made.values()),
            weights = weights,
        ),
    ]

def _emit(ctx, net, board, outputs, folder):
    """The action that plans and emits."""
    files = [ctx.file.model] if ctx.file.model else []
    words = ctx.actions.args()
    words.add("emit")
    words.add(_plain(ctx.file.model.path) if ctx.file.model else ctx.attr.model_name)
    words.add_all(["--board", board.board, "--name", net, "--out", folder])
    for option in OPTIONS:
        given = getattr(ctx.attr, option)
        if given:
            words.add("%s=%s" % (FLAGS[option], given))
    for option in FILE_OPTIONS:
        given = getattr(ctx.file, option)
        if given:
            words.add("%s=%s" % (FLAGS[option], given.path))
            files.append(given)

    # A worker reads its arguments from such a file.
    words.use_param_file("@%s", use_always = True)
    words.set_param_file_format("multiline")
    url = ctx.attr._cache_url[CacheInfo].url
    requirements = {"requires-network": "1"} if url else {"block-network": "1"}
    if ctx.attr._worker[WorkerInfo].on:
        requirements.update({"supports-workers": "1", "requires-worker-protocol": "json"})
    ctx.actions.run(
        executable = ctx.executable._tool,
        tools = ctx.attr._tool[ToolInfo].code,
        arguments = [words],
        inputs = depset(files, transitive = [board.files]),
        outputs = outputs,
        env = {"BUILDTOOL_CACHE_URL": url} if url else {},
        mnemonic = "BuildtoolEmit",
        progress_message = "Emitting the network %s" % ctx.label,
        execution_requirements = requirements,
    )

def _copy_called_kernels(ctx, board, listed):
    """A folder with the sources of the kernels that the network calls.

    Bazel must know all files before the network is planned, except those in such a folder. So only these kernels
    are compiled, again only those that change.
    """
    folder = ctx.actions.declare_directory("kernels", sibling = listed)
    every = ctx.actions.args()
    every.use_param_file("%s", use_always = True)
    every.set_param_file_format("multiline")
    every.add_all(["%s\t%s" % (name, source.path) for name, source in board.kernels.items()])
    ctx.actions.run_shell(
        command = _COPY,
        arguments = [folder.path, listed.path, every],
        inputs = [listed] + board.kernels.values(),
        outputs = [folder],
        mnemonic = "BuildtoolKernels",
        progress_message = "Copying the kernels that %s calls" % ctx.label,
    )
    return folder

network = rule(
    implementation = _network,
    attrs = dict(
        dict(
            {name: attr.string(doc = text) for name, text in OPTIONS.items()},
            **{name: attr.label(doc = text, allow_single_file = True) for name, text in FILE_OPTIONS.items()}
        ),
        board = attr.label(mandatory = True, providers = [BuildtoolBoardInfo]),
        model = attr.label(allow_single_file = True),
        model_name = attr.string(),
        _tool = attr.label(default = "//:tool", executable = True, cfg = "host"),
        _worker = attr.label(default = "//:worker"),
        _cache_url = attr.label(default = "//:cache_url"),
        **CC_ATTRS
    ),
    fragments = ["cpp"],
    toolchains = CC_TOOLCHAINS,
    doc = "Use buildtool_network of defs.bzl.",
)
