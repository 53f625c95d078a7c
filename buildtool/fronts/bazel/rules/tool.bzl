"""The program that the actions run, in a process for each action or in a worker."""

ToolInfo = provider(
    doc = "The files and the Python that run the tool.",
    fields = {"code": "Its files: a depset.", "package": "The repository that has them.", "python": "Its Python."},
)
WorkerInfo = provider(doc = "Whether actions may run in a worker.", fields = ["on"])
CacheInfo = provider(doc = "A cache that several machines share.", fields = {"url": "Its URL, or \"\"."})

# $PWD is the folder in which Bazel runs actions. The tool reads only files that are linked there.
_SCRIPT = """#!/bin/sh
export PYTHONPATH="$PWD/{code}" PYTHONDONTWRITEBYTECODE=1 BUILDTOOL_DAEMON=off BUILDTOOL_CACHE=off
if [ -n "$BUILDTOOL_CACHE_URL" ]; then
    export BUILDTOOL_CACHE=plans BUILDTOOL_CACHE_DIR="$PWD/buildtool_cache"  # a folder of the sandbox
fi
exec {python} -P -m buildtool.fronts.bazel.worker "$@"
"""

def quoted(word):
    """A word, quoted for the shell."""
    return "'" + word.replace("'", "'\\''") + "'"

def _tool(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    folder = ctx.attr.code.label.workspace_root
    text = _SCRIPT.format(code = folder, python = quoted(ctx.attr.python))
    ctx.actions.write(script, text, is_executable = True)
    return [
        DefaultInfo(executable = script, files = depset([script])),
        ToolInfo(code = ctx.attr.code.files, package = ctx.attr.code.label.workspace_name, python = ctx.attr.python),
    ]

buildtool_tool = rule(
    implementation = _tool,
    executable = True,
    attrs = {
        "code": attr.label(mandatory = True),
        "python": attr.string(mandatory = True),
    },
)

def _worker_flag(ctx):
    return [WorkerInfo(on = ctx.build_setting_value)]

worker_flag = rule(implementation = _worker_flag, build_setting = config.bool(flag = True))

def _cache_url_flag(ctx):
    return [CacheInfo(url = ctx.build_setting_value)]

cache_url_flag = rule(implementation = _cache_url_flag, build_setting = config.string(flag = True))
