"""Python outside the kernel families names no kernel, packing or family.

All that other code needs to know about kernels is in the catalogues, so kernels of others can do all that
ours can. Names that are also plain words (`reference`, `pad`) may appear, but not in comparisons.
"""

import ast
import re
from pathlib import Path

import pytest
from paths import ROOT

from buildtool.target.family import load_family
from buildtool.target.kernels import kernels_root

CATALOGUES = [load_family(path.parent) for path in sorted(kernels_root().glob("*/catalogue.toml"))]
NAMES = {
    *(catalogue.family.name for catalogue in CATALOGUES),
    *(kernel.name for catalogue in CATALOGUES for kernel in catalogue.kernels),
    *(user.symbol for catalogue in CATALOGUES for user in (*catalogue.kernels, *catalogue.routines)),
    *(packing for catalogue in CATALOGUES for packing in catalogue.packings),
}
WORDS = {name for name in NAMES if "_" not in name}
FIELDS = {"packing", "symbol", "sources", "family"}  # of a kernel
FILES = [
    *sorted((ROOT / "buildtool").rglob("*.py")),
    *sorted((ROOT / "site_scons").rglob("*.py")),
    ROOT / "SConstruct",
]


def names_in(source):
    """Yields the names of NAMES in a module's code, and plain words of NAMES in comparisons."""
    words = set(re.findall(r"\w+", source))
    if not words & (NAMES - WORDS) and not (words & WORDS and words & FIELDS):
        return
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from set(re.findall(r"\w+", node.value)) & (NAMES - WORDS)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            yield from {name} & (NAMES - WORDS)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr in FIELDS for side in sides):
                inside = (part for side in sides for part in ast.walk(side))
                yield from {part.value for part in inside if isinstance(part, ast.Constant)} & NAMES


def test_nothing_outside_the_families_names_a_kernel_a_packing_or_a_family():
    assert len(FILES) > 150 and len(NAMES) > 100
    names_of = {str(path.relative_to(ROOT)): set(names_in(path.read_text())) for path in FILES}
    assert {path: names for path, names in names_of.items() if names} == {}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("SOURCE = 'reference/nn_copy_s8.c'", "nn_copy_s8"),
        ("lines.append(f'nn_fill_s8({constants});')", "nn_fill_s8"),
        ("if kernel.packing == 'conv_plain':\n    pass", "conv_plain"),
        ("if kernel.packing in ('add', 'mul'):\n    pass", "add"),
        ("FAMILIES = {'cortex_m_dsp': 1}", "cortex_m_dsp"),
        ("packing.conv_tiles(graph)", "conv_tiles"),
    ],
)
def test_such_names_are_found(code, name):
    assert name in set(names_in(code))


def test_every_family_of_the_checkout_is_offered_by_a_plugin():
    from buildtool.target import registry

    offered = {
        folder.path
        for plugin in registry._own_plugins().values()
        for folder in (plugin.kernel_families() if hasattr(plugin, "kernel_families") else ())
    }
    assert offered == {catalogue.family.folder for catalogue in CATALOGUES}
    assert {path.parent for path in Path(kernels_root()).glob("*/packing.py")} <= offered
