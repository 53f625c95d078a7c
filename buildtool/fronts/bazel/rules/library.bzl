"""Compiles sources with the caller's toolchain, and provides the facts of a board."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

BuildtoolBoardInfo = provider(
    doc = "A board of buildtool_repository.",
    fields = {
        "board": "The value of --board in an action.",
        "board_at_run_time": "The value of --board in a program that Bazel runs.",
        "called": "The name of the emitted list of the kernels that the network calls, by their objects.",
        "copts": "Flags that every compiler needs for the reference's bytes.",
        "emitted": "The names of the emitted files; {net} is the network's name.",
        "files": "The files of the board: a depset.",
        "headers": "The headers of kernels: CcInfo.",
        "kernels": "The sources of all kernels that the board can run, by their objects' names.",
        "plan": "The name of the plan among the emitted files.",
        "reading": "The emitted files to compile that read files without #include.",
        "reads": "The files that they read.",
        "sources": "The other emitted files to compile.",
        "validate": "The words of the command that compares a firmware image with the reference.",
        "weights": "The name of the weight image among the emitted files.",
    },
)

CC_ATTRS = {
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}
CC_TOOLCHAINS = ["@bazel_tools//tools/cpp:toolchain_type"]

def compile_library(ctx, srcs, hdrs, includes, copts, deps = [], reading = [], reads = [], alwayslink = False):
    """The CcInfo of a library.

    Args:
      ctx: of a rule that has CC_ATTRS and CC_TOOLCHAINS.
      srcs: C and assembly.
      hdrs: headers for the sources and the library's users.
      includes: folders, also for the library's users.
      copts: flags in addition to the toolchain's.
      deps: CcInfo of libraries.
      reading: more sources, compiled again when one of `reads` changes.
      reads: files that they read without #include.
      alwayslink: whether all objects are linked.
    """
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    common = dict(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        public_hdrs = hdrs,
        includes = includes,
        user_compile_flags = copts,
        compilation_contexts = [dep.compilation_context for dep in deps],
    )
    context, objects = cc_common.compile(name = ctx.label.name, srcs = srcs, **common)
    if reading:
        name = ctx.label.name + "_reading"
        _, more = cc_common.compile(name = name, srcs = reading, additional_inputs = reads, **common)
        objects = cc_common.merge_compilation_outputs(compilation_outputs = [objects, more])
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = objects,
        linking_contexts = [dep.linking_context for dep in deps],
        alwayslink = alwayslink,
        disallow_dynamic_library = True,
    )
    return CcInfo(compilation_context = context, linking_context = linking)

def _sources(ctx):
    folder = ctx.attr.code.label.workspace_root
    info = compile_library(
        ctx,
        srcs = ctx.files.srcs,
        hdrs = ctx.files.hdrs,
        includes = [include.format(code = folder) for include in ctx.attr.includes],
        copts = ctx.attr.copts,
        alwayslink = ctx.attr.alwayslink,
    )
    return [info, DefaultInfo()]

buildtool_sources = rule(
    implementation = _sources,
    attrs = dict(
        CC_ATTRS,
        alwayslink = attr.bool(),
        code = attr.label(mandatory = True),
        copts = attr.string_list(),
        hdrs = attr.label_list(allow_files = True),
        includes = attr.string_list(),
        srcs = attr.label_list(allow_files = True),
    ),
    fragments = ["cpp"],
    toolchains = CC_TOOLCHAINS,
)

def _board(ctx):
    return [BuildtoolBoardInfo(
        board = ctx.attr.board.format(own = ctx.label.workspace_root),
        board_at_run_time = ctx.attr.board.format(own = "../" + ctx.label.workspace_name),
        called = ctx.attr.called,
        copts = ctx.attr.copts,
        emitted = ctx.attr.emitted,
        files = depset(ctx.files.files),
        headers = ctx.attr.headers[CcInfo],
        kernels = {name: source.files.to_list()[0] for source, name in ctx.attr.kernels.items()},
        plan = ctx.attr.plan,
        reading = ctx.attr.reading,
        reads = ctx.attr.reads,
        sources = ctx.attr.sources,
        validate = ctx.attr.validate,
        weights = ctx.attr.weights,
    )]

buildtool_board = rule(
    implementation = _board,
    attrs = {
        "board": attr.string(mandatory = True),
        "called": attr.string(mandatory = True),
        "copts": attr.string_list(),
        "emitted": attr.string_list(mandatory = True),
        "files": attr.label_list(allow_files = True),
        "headers": attr.label(mandatory = True, providers = [CcInfo]),
        "kernels": attr.label_keyed_string_dict(mandatory = True, allow_files = True),
        "plan": attr.string(mandatory = True),
        "reading": attr.string_list(),
        "reads": attr.string_list(),
        "sources": attr.string_list(mandatory = True),
        "validate": attr.string_list(mandatory = True),
        "weights": attr.string(mandatory = True),
    },
)
