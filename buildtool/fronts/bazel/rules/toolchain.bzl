"""A cc_toolchain for a board: the compiler and the flags that buildtool itself uses for it."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load(
    "@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl",
    "feature",
    "flag_group",
    "flag_set",
    "tool_path",
)

_COMPILE = [
    ACTION_NAMES.assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.preprocess_assemble,
]
_LINK = [ACTION_NAMES.cpp_link_executable]

def _always(name, actions, flags):
    sets = [flag_set(actions = actions, flag_groups = [flag_group(flags = flags)])] if flags else []
    return feature(name = name, enabled = True, flag_sets = sets)

def _config(ctx):
    places = {"code": ctx.attr.code.label.workspace_root, "own": ctx.label.workspace_root}
    compile_flags = [flag.format(**places) for flag in ctx.attr.compile_flags]
    link_flags = [flag.format(**places) for flag in ctx.attr.link_flags]
    tools = dict({name: "/bin/false" for name in ("ld", "nm", "objdump", "strip", "gcov")}, gcc = ctx.attr.cc, cpp = ctx.attr.cc, ar = ctx.attr.ar)
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        toolchain_identifier = "buildtool-" + ctx.label.name,
        host_system_name = "local",
        target_system_name = "none",
        target_cpu = "none",
        target_libc = "none",
        compiler = "buildtool",
        abi_version = "none",
        abi_libc_version = "none",
        cxx_builtin_include_directories = ctx.attr.folders,
        tool_paths = [tool_path(name = name, path = path) for name, path in tools.items()],
        features = [
            _always("buildtool_compile", _COMPILE, compile_flags),
            _always("buildtool_link", _LINK, link_flags),
        ],
    )

_toolchain_config = rule(
    implementation = _config,
    attrs = {
        "ar": attr.string(mandatory = True),
        "cc": attr.string(mandatory = True),
        "code": attr.label(mandatory = True),
        "compile_flags": attr.string_list(),
        "folders": attr.string_list(),
        "link_flags": attr.string_list(),
    },
    provides = [CcToolchainConfigInfo],
)

def buildtool_cc_toolchain(name, board, cc, ar, compile_flags, link_flags, script, code, headers, folders):
    """The toolchain NAME for platforms of `board`, a constraint value; {code} and {own} in flags are folders."""
    _toolchain_config(
        name = name + ".config",
        ar = ar,
        cc = cc,
        code = code,
        compile_flags = compile_flags,
        folders = folders,
        link_flags = link_flags,
    )
    native.filegroup(name = name + ".files", srcs = [script, headers])
    native.cc_toolchain(
        name = name + ".cc",
        all_files = name + ".files",
        ar_files = ":" + name + ".files",
        as_files = name + ".files",
        compiler_files = name + ".files",
        dwp_files = name + ".files",
        linker_files = name + ".files",
        objcopy_files = name + ".files",
        strip_files = name + ".files",
        supports_param_files = True,
        toolchain_config = name + ".config",
    )
    native.toolchain(
        name = name,
        target_compatible_with = [board],
        toolchain = name + ".cc",
        toolchain_type = "@bazel_tools//tools/cpp:toolchain_type",
    )
