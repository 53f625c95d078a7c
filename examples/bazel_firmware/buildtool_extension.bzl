"""The module extension of MODULE.bazel. Not run: the example was tried with Bazel 4.2.3, which has none."""

load("//:buildtool.bzl", "buildtool_repository")

_boards = tag_class(attrs = {
    "names": attr.string_list(mandatory = True),
    "python": attr.string(),
    "toolchain": attr.string(),
})

def _extension(context):
    for module in context.modules:
        for tag in module.tags.boards:
            buildtool_repository(
                name = "buildtool",
                boards = tag.names,
                python = tag.python,
                toolchain = tag.toolchain,
            )

buildtool = module_extension(implementation = _extension, tag_classes = {"boards": _boards})
