"""Networks in BUILD files.

    load("@buildtool//:defs.bzl", "buildtool_network")

    buildtool_network(
        name = "wake_word",                       # the library, and the prefix of the C interface
        model = "models/wake_word.tflite",
        board = "cortex-m4",                      # default: the board of the platform
        ram = "64K",                              # or any other planning option
    )
"""

load(":network.bzl", _BuildtoolNetworkInfo = "BuildtoolNetworkInfo", _network = "network")
load(":options.bzl", "BOARDS", "FILE_OPTIONS", "MODEL_SUFFIXES", "OPTIONS")
load(":validation.bzl", _validate_test = "validate_test")

BuildtoolNetworkInfo = _BuildtoolNetworkInfo
buildtool_validate_test = _validate_test

def _part(board, part):
    """The label of a part of a board."""
    if not board:
        return Label("//boards:" + part)
    if board not in BOARDS:
        fail("error: buildtool_repository has no board '%s'; its boards are: %s" % (board, ", ".join(BOARDS)))
    return Label("//boards:%s.%s" % (BOARDS[board], "board" if part == "current" else part))

def _is_file(model):
    return model.startswith((":", "//", "@")) or model.lower().endswith(tuple(MODEL_SUFFIXES))

def buildtool_network(name, model, board = "", **options):
    """A network as a library: for `deps` of cc_library and cc_binary, with a BuildtoolNetworkInfo.

    Args:
      name: the library's name and the prefix of the C interface: a C identifier in lower case.
      model: a .tflite or .onnx file of the workspace, a label, or a network of `buildtool zoo`.
      board: one of the boards of buildtool_repository; default: the platform's.
      **options: planning options (docs/reference/options.md of buildtool), and common attributes of rules.
    """
    attributes = {
        key: str(option) if key in OPTIONS and type(option) in ("int", "bool") else option
        for key, option in options.items()
    }
    source = {"model": model} if _is_file(model) else {"model_name": model}
    _network(name = name, board = _part(board, "current"), **dict(attributes, **source))

def buildtool_firmware(name, network, board = "", **attributes):
    """The test firmware of a network, for the toolchains in @buildtool//toolchains or the host.

    Args:
      name: the program.
      network: a target of buildtool_network for the same board.
      board: as in buildtool_network.
      **attributes: attributes of cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [_part(board, "harness_sources")],
        deps = [network, _part(board, "harness"), _part(board, "startup")],
        **attributes
    )
