"""A test that runs firmware, in the board's emulator if it has one, and compares it with the reference."""

load(":network.bzl", "BuildtoolNetworkInfo")
load(":tool.bzl", "ToolInfo", "quoted")

# The compiler and the emulator are found in PATH.
_SCRIPT = """#!/bin/sh
export PYTHONPATH="$TEST_SRCDIR/{package}" PYTHONDONTWRITEBYTECODE=1 BUILDTOOL_DAEMON=off BUILDTOOL_CACHE=off
cd "$TEST_SRCDIR/$TEST_WORKSPACE" &&
    exec {python} -P -m buildtool {words}
"""

def _plain(path):
    return "./" + path if path.startswith("-") else path

def _linked(ctx, model):
    """A link to the model with a name for runfiles, whose names may not contain spaces."""
    link = ctx.actions.declare_file("%s_model.%s" % (ctx.label.name, model.extension))
    ctx.actions.symlink(output = link, target_file = model)
    return link

def _validate(ctx):
    network = ctx.attr.network[BuildtoolNetworkInfo]
    model = _linked(ctx, network.model) if network.model else None
    board = network.board
    tool = ctx.attr._tool[ToolInfo]
    slots = {
        "{board}": board.board_at_run_time,
        "{image}": _plain(ctx.executable.firmware.short_path),
        "{model}": _plain(model.short_path) if model else network.model_name,
        "{plan}": _plain(network.plan.short_path),
    }
    ends = ["--outputs=" + network.outputs] if network.outputs else []
    words = [slots.get(word, word) for word in board.validate] + ends + ctx.attr.options
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    text = _SCRIPT.format(
        package = tool.package,
        python = quoted(tool.python),
        words = " ".join([quoted(word) for word in words]),
    )
    ctx.actions.write(script, text, is_executable = True)
    files = [ctx.executable.firmware, network.plan] + ([model] if model else [])
    runfiles = ctx.runfiles(files, transitive_files = depset(transitive = [tool.code, board.files]))
    return [DefaultInfo(executable = script, runfiles = runfiles)]

validate_test = rule(
    implementation = _validate,
    test = True,
    attrs = {
        "firmware": attr.label(executable = True, cfg = "target", mandatory = True),
        "network": attr.label(mandatory = True, providers = [BuildtoolNetworkInfo]),
        "options": attr.string_list(doc = "More words for `buildtool validate`, such as --inputs=3."),
        "_tool": attr.label(default = "//:tool", executable = True, cfg = "host"),
    },
    doc = "Compares a target of buildtool_firmware with the reference.",
)
