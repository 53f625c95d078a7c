"""A room imports only rooms before it, and no imports form a circle. Imports for typing count too."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import sys

import pytest
from importlines import import_statements
from paths import ROOT

from buildtool.api.requests import KINDS

# A module of buildtool belongs to the room with the longest name that its own name begins with. It may import
# that room and those above it.
ORDER = (
    "base",
    "options",
    "api.requests",
    "schema",
    "client",
    "graph",
    "zoo",
    "target",
    "plan.types",
    "plan.codec",
    "plan.place",
    "plan.schedule",
    "plan.assemble",
    "plan.check",
    "plan.summary",
    "plan.baselines",
    "plan.search",
    "plan.choose",
    "plan.others",
    "plan",
    "emit",
    "firmware.datasets",
    "firmware",
    "api.answers",
    "firmware.run",
    "api.answers.building",
    "api.describe",
    "api.checking",
    "api.bundling",
    "quantize",
    "api",
    "daemon",
    "fronts.changes",
    "fronts.texts",
    "split",
    "fronts.bundles",
    "fronts",
    "fronts.sweep",
    "fronts.cli",
    "fronts.bazel.worker",
    "__main__",
)
LEAF = {"base", "options", "api.requests", "schema", "client"}  # the rooms that the client may import
BUILDS = tuple(f"buildtool.fronts.{name}" for name in ("bazel", "cmake", "platformio", "vscode"))
FOREIGN_OF_LEAF = {"msgpack"}


def modules(package, folder):
    """Returns name -> file of every module of a package in `folder`."""
    files = {}
    for path in sorted((folder / package).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def mentions(name, path):
    """Yields (module, imported name or "") of every import statement in a file."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        else:
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((base, alias.name) for alias in node.names)


def imported(known):
    """Returns module -> the other modules of `known` that it imports."""
    targets_of: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = set()
        for base, member in mentions(name, path):
            full = f"{base}.{member}" if member else base
            targets.add(full if full in known else base)
        targets_of[name] = (targets & known.keys()) - {name}
    return targets_of


MODULES = modules("buildtool", ROOT)


@functools.cache
def imports():
    """Returns module -> the modules that it imports, for buildtool."""
    return imported(MODULES)


def room(module):
    """Returns a module's room: the longest name of ORDER that it begins with; "" for the package itself."""
    inner = module.partition(".")[2]
    fitting = [name for name in ORDER if inner == name or inner.startswith(f"{name}.")]
    assert fitting or not inner, f"{module} belongs to no room: name its room in ORDER"
    return max(fitting, key=len, default="")


def circle(edges):
    """Returns a circle, with its first name again at the end. Empty: there is no circle."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_a_room_imports_only_rooms_before_it():
    level = {"": -1} | {name: i for i, name in enumerate(ORDER)}
    wrong = [
        f"{module} ({room(module)}) imports {target} ({room(target)})"
        for module, targets in imports().items()
        for target in sorted(targets)
        if level[room(target)] > level[room(module)]
    ]
    assert not wrong, "\n".join(wrong)


def test_every_room_in_the_order_is_there():
    rooms = {room(module) for module in MODULES}
    outer = {name for name in ORDER if any(other.startswith(f"{name}.") for other in rooms)}
    assert set(ORDER) - rooms - outer == set()


def test_no_room_inside_a_room_is_called_as_another_or_as_a_request():
    rooms = [name for name in ORDER if (ROOT / "buildtool" / name.replace(".", "/")).is_dir()]
    inner = [name.rpartition(".")[2] for name in rooms if "." in name]
    assert len(set(inner)) == len(inner) > 8
    assert not set(inner) & {*(name for name in rooms if "." not in name), *KINDS}


def test_no_modules_are_in_a_circle():
    assert circle(imports()) == []


def test_a_circle_is_found_and_typing_imports_count(tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("def f():\n    from pack import two\n")
    (folder / "two.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import f\n"
    )
    assert sorted(set(circle(imported(modules("pack", tmp_path))))) == ["pack.one", "pack.two"]


def closure(start):
    """Returns all modules of buildtool that importing a room's modules may import."""
    reached, queue = set[str](), [module for module in MODULES if room(module) == start]
    while queue:
        module = queue.pop()
        if module not in reached:
            reached.add(module)
            queue += imports()[module]
    return reached


def test_the_client_is_a_leaf():
    """It imports only the standard library and msgpack, so that a build starts without numpy."""
    brought = closure("client")
    assert {room(module) for module in brought} <= LEAF | {""}
    foreign = {
        base.partition(".")[0] for module in brought for base, _ in mentions(module, MODULES[module])
    } - {"buildtool", "__future__"}
    assert foreign - sys.stdlib_module_names <= FOREIGN_OF_LEAF


def test_the_scons_tools_import_the_client_alone():
    for path in [*sorted((ROOT / "site_scons").rglob("*.py")), ROOT / "SConstruct"]:
        for base, _ in mentions(path.stem, path):
            if base.partition(".")[0] == "buildtool":
                assert base == "buildtool.client", f"{path.name} imports {base}"


def test_the_fronts_of_builds_and_editors_import_the_client_alone():
    fronts = [module for module in MODULES if module.startswith(BUILDS) and room(module) == "fronts"]
    assert {module.split(".")[2] for module in fronts} == {name.split(".")[2] for name in BUILDS}
    for module in fronts:
        for base, _ in mentions(module, MODULES[module]):
            is_ours = base.startswith((".".join(module.split(".")[:3]), "buildtool.client"))
            assert is_ours or base.partition(".")[0] != "buildtool" or base == "buildtool", (
                f"{module} imports {base}"
            )


def test_every_name_that_a_module_exports_exists():
    exporting = [module for module, path in MODULES.items() if "\n__all__ = " in path.read_text()]
    assert exporting
    for module in map(importlib.import_module, exporting):
        assert [name for name in module.__all__ if not hasattr(module, name)] == [], module


@pytest.mark.parametrize("package", ["buildtool_plugins", "buildtool_kernels"])
def test_buildtool_imports_no_plugin_and_no_kernel_family(package):
    """They are described by data and found by name at run time."""
    for module, path in MODULES.items():
        assert all(base.partition(".")[0] != package for base, _ in mentions(module, path)), module


@pytest.mark.parametrize("package", ["keras", "tensorflow"])
def test_only_the_room_of_splitting_imports_what_trains(package):
    """They take 1.6 GB and seconds to import. Even there only functions and typing import them."""
    users = {
        module
        for module, path in MODULES.items()
        if any(base.partition(".")[0] == package for base, _ in mentions(module, path))
    }
    assert all(room(module) == "split" for module in users)
    for module in users:
        for node in ast.parse(MODULES[module].read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            from_ = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(name.partition(".")[0] != package for name in [*names, *from_]), module


def test_plugins_see_the_errors_and_the_plugin_interface_only():
    for module, path in modules("buildtool_plugins", ROOT / "plugins").items():
        for base, _ in mentions(module, path):
            if base.partition(".")[0] == "buildtool":
                assert base.split(".")[1] in ("base", "target"), f"{module} imports {base}"
    assert circle(imported(modules("buildtool_plugins", ROOT / "plugins"))) == []


def test_no_import_changes_another_module():
    places = [ROOT / name for name in ("buildtool", "plugins", "benchmarks", "tests/support")]
    for path in (path for place in places for path in place.rglob("*.py")):
        assigned = [target for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.Assign)
                    for target in node.targets]  # fmt: skip
        assert not [target.lineno for target in assigned if isinstance(target, ast.Attribute)], path
