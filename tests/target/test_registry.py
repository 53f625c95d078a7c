import dataclasses
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from paths import KERNELS, ROOT

from buildtool.base.errors import TargetError, UsageError
from buildtool.target import registry
from buildtool.target.plugin import KernelFolder


@pytest.fixture
def fresh(monkeypatch):
    """Makes the registry load plugins again, in the test and after it."""
    registry._other_plugins.cache_clear()
    yield monkeypatch
    registry._other_plugins.cache_clear()


def distribution(folder, module, source, entry):
    """Writes the files of an installed distribution, for importlib.metadata."""
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[buildtool.targets]\n{entry}\n")


PLUGIN = """
    from pathlib import Path
    class Plugin:
        name = "strange"
        interface = 1
        def board_files(self):
            return (Path(__file__).parent / "strange-board.toml",)
        def toolchain(self, board, name): ...
        def harness(self, board): ...
        def run(self, board, image, request): ...
    plugin = Plugin()
"""


def test_boards_and_targets_need_no_tool_at_all():
    """Runs in a new process with an empty PATH; listing boards does not import numpy."""
    code = (
        "import sys; from buildtool.target import registry as r; r.board_names(); r.load_board('cortex-m4');"
        "assert 'numpy' not in sys.modules; r.load_target('cortex-m55')"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cortex-m5", "did you mean 'cortex-m55'? "),
        ("STM32", "did you mean 'stm32f4-discovery' or 'stm32f746g-disco' or 'stm32h747i-disco'? "),
        ("m55", "did you mean 'cortex-m55'? "),
        ("nrf52840", "did you mean 'nrf52840-dk'? "),
        ("k64f", ""),
    ],
)
def test_an_unknown_board_names_the_near_ones_and_the_command_that_lists_all(name, near):
    with pytest.raises(UsageError, match=f"unknown board '{name}'") as caught:
        registry.load_board(name)
    assert caught.value.hint.removeprefix(near) == (
        "'buildtool boards' lists all boards; a path to a board's file ends in .toml"
    )


KERNEL = """
[[kernel]]
op = "ADD"
name = "{0}"
symbol = "s"
call = "constants, in1, in2, out, window"
sources = ["{1}/s.c"]
"""


def families(folder, *names, uses=""):
    """Makes folders with one kernel each, and returns a plugin's KernelFolders; `plain` is portable."""
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "catalogue.toml").write_text(uses + KERNEL.format(name, name))
    return [KernelFolder(folder / name, portable=name == "plain") for name in names]


HOST = registry.load_board("host")


@pytest.fixture
def make(monkeypatch):
    """A function that makes the host's target with these core families; plugins have these folders."""

    def make(names, *offers):
        plugins = {f"x{n}": SimpleNamespace(kernel_families=lambda f=f: f) for n, f in enumerate(offers)}
        plugins["host"] = plugins.pop("x0")
        monkeypatch.setattr(registry, "_own_plugins", lambda: plugins)
        core = dataclasses.replace(HOST.core, families=tuple(names))
        return registry.make_target(dataclasses.replace(HOST, core=core))

    return make


def test_a_target_has_the_kernels_of_its_families_in_order_and_portable_ones_last(tmp_path, make):
    folders = families(tmp_path, "fast", "plain", "faster")
    for names, expected in [
        (("faster", "fast"), ["faster", "fast", "plain"]),
        ((), ["plain"]),
        (("plain", "fast"), ["fast", "plain"]),
    ]:
        target = make(names, folders)
        assert [k.name for k in target.kernels] == expected
        assert target.source("plain/s.c") == tmp_path / "plain" / "s.c"
    with pytest.raises(TargetError, match="no kernels 'fastest'") as caught:
        make(["fastest"], folders)
    assert caught.value.hint == "did you mean 'faster'?"


def test_what_a_portable_kernel_costs_is_said_by_the_core_s_own_family(tmp_path, make):
    folders = families(tmp_path, "fast", "plain", "slow")

    def cost(*names):
        return {k.name: k.cost for k in make(names, folders).kernels}["plain"]

    plain = cost()
    for name, formula in (("fast", "3 + outputs"), ("slow", "9 * outputs")):
        path = tmp_path / name / "catalogue.toml"
        path.write_text(f'portable.plain = "{formula}"\n' + path.read_text())
    assert cost("fast") == cost("fast", "slow") == "3 + outputs"
    assert cost("slow") == "9 * outputs"
    assert cost() == plain


@pytest.mark.parametrize(
    ("line", "text", "hint"),
    [
        ('portable.plan = "outputs"', "no portable family has a kernel 'plan'", "did you mean 'plain'?"),
        ('portable.plain = "outpts"', "unknown name 'outpts'", "did you mean 'outputs'?"),
        ("portable.plain = 3", "must be a string", ""),
        ("portable = 3", "'portable' must be a table", "write [portable]"),
    ],
)
def test_a_cost_of_no_portable_kernel_is_an_error(tmp_path, make, line, text, hint):
    folders = families(tmp_path, "mine", "plain")
    path = tmp_path / "mine" / "catalogue.toml"
    path.write_text(line + "\n" + path.read_text())
    with pytest.raises(TargetError, match=text) as caught:
        make(["mine"], folders)
    assert str(path) in str(caught.value)
    assert caught.value.hint == hint


def test_a_family_s_files_come_with_those_of_the_families_it_uses(tmp_path, make):
    folders = families(tmp_path, "mine", uses='uses = ["helper"]\n') + families(tmp_path, "helper", "plain")
    target = make(["mine"], folders)
    assert [k.name for k in target.kernels] == ["mine", "plain"]
    assert {family.name for family in target.families} == {"mine", "helper", "plain"}


def test_a_source_of_a_family_that_is_not_used_is_an_error(tmp_path, make):
    folders = families(tmp_path, "mine", "other")
    (tmp_path / "mine" / "catalogue.toml").write_text(KERNEL.format("mine", "other"))
    with pytest.raises(TargetError, match=r"source 'other/s\.c' of s is in a family") as caught:
        make(["mine"], folders)
    assert caught.value.hint == 'uses = ["other"] in its catalogue.toml'


def test_constants_that_no_routine_reads_are_an_error(tmp_path, make):
    """A kernel with a packing of its own needs a routine that reads this packing to finish a pooling."""
    own = [folder for plugin in registry._own_plugins().values() for folder in plugin.kernel_families()]
    folders = families(tmp_path, "mine")
    kernel = KERNEL.format("mine", "mine").replace("ADD", "MEAN") + "packing = 'strange'\n"
    (tmp_path / "mine" / "catalogue.toml").write_text("[packing.strange]\nbytes = '4'\n" + kernel)
    with pytest.raises(TargetError, match="no routine 'finish' for MEAN reads packing 'strange'"):
        make(["mine"], own, folders)


def test_the_shipped_catalogues_name_files_that_exist():
    for name in registry.board_names():
        target = registry.load_target(name)
        for user in (*target.kernels, *target.routines):
            for source in user.sources:
                assert target.source(source).is_file(), (user.symbol, source)
            for header in user.headers:
                folders = [KERNELS / "include", *(family.folder for family in target.families)]
                assert any((folder / header).is_file() for folder in folders), header


def test_another_distribution_s_plugin_is_found_by_its_entry_point(tmp_path, fresh):
    distribution(tmp_path, "strange_target", PLUGIN, "strange = strange_target:plugin")
    (tmp_path / "strange-board.toml").write_text('extends = "cortex-m4"\nfamily = "strange"\n')
    fresh.syspath_prepend(str(tmp_path))
    board = registry.load_board("strange-board")
    assert board.family == "strange"
    assert "strange-board" in registry.board_names()
    assert type(registry.plugin(board)).__module__ == "strange_target"


@pytest.mark.parametrize(
    ("module", "source", "says"),
    [
        ("strange_raises", "raise RuntimeError('broken')", "'strange' .* cannot be loaded: broken"),
        ("strange_empty", "plugin = 3", "has no 'name'"),
        ("strange_twin", PLUGIN.replace('"strange"', '"cortex_m"'), "two target plugins are called"),
        ("strange_board", PLUGIN.replace("strange-board", "host"), "two plugins have a board 'host'"),
        ("later_plugin", PLUGIN.replace("= 1", "= 2"), "for interface 2; buildtool has interface 1"),
        (
            "old_plugin",
            PLUGIN.replace("interface = 1", "pass"),
            "has no 'interface'; buildtool has interface 1",
        ),
    ],
)
def test_a_broken_plugin_is_named_and_own_boards_still_load(tmp_path, fresh, module, source, says):
    distribution(tmp_path, module, source, f"strange = {module}:plugin")
    fresh.syspath_prepend(str(tmp_path))
    assert registry.load_board("cortex-m4").name == "cortex-m4"
    with pytest.raises(TargetError, match=says):
        registry.board_names()
