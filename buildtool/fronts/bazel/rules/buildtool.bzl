"""Brings an installed buildtool into a Bazel workspace. Commit this file beside the WORKSPACE file.

    load("//:buildtool.bzl", "buildtool_repository")
    buildtool_repository(name = "buildtool", boards = ["cortex-m4", "host"])

It makes two repositories. @buildtool_code has links to the tool's own code, which every action reads: after an
upgrade of the tool, nothing is stale. @buildtool has the tool's description of the boards (the request
`describe`) as BUILD files.
"""

_MODULE = "buildtool.fronts.bazel.repository"

_WHICH_PYTHON = "name the Python that has buildtool by buildtool_repository(python = ...) or --repo_env=BUILDTOOL_PYTHON=..."

def _python(rctx):
    named = rctx.attr.python or rctx.os.environ.get("BUILDTOOL_PYTHON", "") or "python3"

    # Not rctx.which: it follows links, and a virtual environment depends on its link.
    found = rctx.execute(["sh", "-c", "command -v -- \"$0\"", named]).stdout.strip()
    if not found.startswith("/"):
        fail("error: there is no program '%s' in PATH: %s" % (named, _WHICH_PYTHON))
    return found

def _ask(rctx, question):
    """Runs the tool in the repository's folder, where it writes the repository's files."""
    asked = struct(python = _python(rctx), **question)
    rctx.file("question.json", json.encode(asked), executable = False)
    environment = {"BUILDTOOL_CACHE": "off", "BUILDTOOL_DAEMON": "off"}
    command = [asked.python, "-P", "-m", _MODULE, "question.json"]
    done = rctx.execute(command, timeout = 600, environment = environment)
    if "No module named 'buildtool'" in done.stderr:
        fail("error: '%s' has no package buildtool: %s" % (asked.python, _WHICH_PYTHON))
    if done.return_code:
        fail("\n" + done.stderr)

def _code_repository(rctx):
    _ask(rctx, {"what": "code"})

def _answer_repository(rctx):
    # If any of the tool's files changes, Bazel asks the question again.
    code = rctx.attr.code
    for name in rctx.read(Label("@%s//:files.txt" % code)).splitlines():
        rctx.path(Label("@%s//:%s" % (code, name)))
    boards = [
        struct(asked = board, path = str(rctx.path(Label(board))) if board.startswith(("@", "//")) else "")
        for board in rctx.attr.boards
    ]
    _ask(rctx, {"what": "boards", "code": code, "boards": boards, "toolchain": rctx.attr.toolchain})

_COMMON = {
    "python": attr.string(doc = "The Python that has buildtool: a program in PATH, or its path. Default: $BUILDTOOL_PYTHON, python3."),
}

_buildtool_code = repository_rule(
    implementation = _code_repository,
    attrs = _COMMON,
    environ = ["BUILDTOOL_PYTHON", "PATH"],
    local = True,
)

_buildtool_boards = repository_rule(
    implementation = _answer_repository,
    attrs = dict(
        _COMMON,
        boards = attr.string_list(mandatory = True, doc = "Names of boards, and labels of .toml files."),
        code = attr.string(mandatory = True),
        toolchain = attr.string(doc = "The compiler of the boards' own toolchains: clang or gcc. Default: each board's first."),
    ),
    environ = ["BUILDTOOL_PYTHON", "PATH"],
    local = True,
)

def buildtool_repository(name, boards, python = "", toolchain = ""):
    """Makes @NAME, which has the rules, and @NAME_code.

    Args:
      name: the repository's name, `buildtool` in these texts.
      boards: names of `buildtool boards`, and labels of .toml files (also of those that others extend).
      python: the Python that has buildtool: a program in PATH, or its path; default: $BUILDTOOL_PYTHON, python3.
      toolchain: the compiler in @buildtool//toolchains: clang or gcc; default: each board's first.
    """
    _buildtool_code(name = name + "_code", python = python)
    _buildtool_boards(name = name, boards = boards, code = name + "_code", python = python, toolchain = toolchain)
