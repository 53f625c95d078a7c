import dataclasses
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from paths import ROOT

from buildtool.errors import TargetError, UsageError
from buildtool.target import registry
from buildtool.target.types import Core, KernelVariant, Target


@pytest.fixture
def fresh(monkeypatch):
    """The registry asks for plugins again, in the test and after it."""
    registry._other_plugins.cache_clear()
    yield monkeypatch
    registry._other_plugins.cache_clear()


def distribution(folder: Path, module: str, source: str, entry: str) -> None:
    """An installed distribution, as importlib.metadata sees one."""
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[buildtool.targets]\n{entry}\n")


PLUGIN = """
    from pathlib import Path
    class Plugin:
        name = "strange"
        def board_files(self):
            return (Path(__file__).parent / "strange-board.toml",)
        def toolchain(self, board, name): ...
        def harness(self, board): ...
        def run(self, board, image, request): ...
    plugin = Plugin()
"""


def test_the_boards_that_come_with_it():
    assert {"host", "cortex-m4", "cortex-m55"} <= set(registry.board_names())
    for name in registry.board_names():
        board = registry.load_board(name)
        assert board.name == name
        assert registry.plugin(board).name == board.family


def test_boards_and_targets_need_no_tool_at_all():
    """With an empty PATH, in a process of its own; and naming boards imports no numpy."""
    code = (
        "import sys; from buildtool.target import registry as r; r.board_names(); r.load_board('cortex-m4');"
        "assert 'numpy' not in sys.modules; r.target_digest(r.load_target('cortex-m55'))"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_an_unknown_board_is_an_error_of_use_with_the_closest_name():
    with pytest.raises(UsageError, match="unknown board 'cortex-m5'") as caught:
        registry.load_board("cortex-m5")
    assert "did you mean 'cortex-m55'?" in caught.value.hint


def test_a_board_file_that_is_not_there_is_an_error_of_use(tmp_path):
    with pytest.raises(UsageError, match="no such board file") as caught:
        registry.load_board(str(tmp_path / "x.toml"))
    assert caught.value.path == str(tmp_path / "x.toml")


def test_a_target_has_the_kernels_of_its_families_in_order_and_the_reference_last(tmp_path, monkeypatch):
    for family in ("fast", "faster", "reference"):
        (tmp_path / family).mkdir()
        (tmp_path / family / "catalogue.toml").write_text(
            f'[[kernel]]\nop = "ADD"\nname = "{family}"\nsymbol = "s"\nsources = ["{family}/s.c"]\n'
        )
    monkeypatch.setattr(registry, "kernels_root", lambda: tmp_path)
    board = registry.load_board("host")
    for families, expected in [
        (("faster", "fast"), ["faster", "fast", "reference"]),
        ((), ["reference"]),
        (("reference", "fast"), ["fast", "reference"]),
    ]:
        chosen = dataclasses.replace(board, core=dataclasses.replace(board.core, families=families))
        assert [k.name for k in registry.make_target(chosen).kernels] == expected
    chosen = dataclasses.replace(board, core=dataclasses.replace(board.core, families=("fastest",)))
    with pytest.raises(TargetError, match="no kernels 'fastest'") as caught:
        registry.make_target(chosen)
    assert caught.value.hint == "did you mean 'faster'?"


def test_the_shipped_catalogues_name_sources_that_exist():
    for name in registry.board_names():
        for kernel in registry.load_target(name).kernels:
            for source in kernel.sources:
                assert (registry.kernels_root() / source).is_file(), (kernel.name, source)


def test_the_digest_is_the_same_in_every_process_and_differs_with_every_field():
    target = registry.load_target("cortex-m4")
    digest = registry.target_digest(target)
    code = "from buildtool.target import registry as r; print(r.target_digest(r.load_target('cortex-m4')))"
    for seed in ("1", "2"):
        environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        assert done.stdout.strip() == digest
    board = target.board
    changed = [
        Target(dataclasses.replace(board, alignment=32), target.kernels),
        Target(dataclasses.replace(board, memories=board.memories[::-1]), target.kernels),
        Target(
            dataclasses.replace(board, core=Core("x", board.core.isa, board.core.families)), target.kernels
        ),
        Target(dataclasses.replace(board, emulator=None), target.kernels),
        Target(board, target.kernels[::-1]),
        Target(board, target.kernels[1:]),
        Target(board, (dataclasses.replace(target.kernels[0], cost="1"), *target.kernels[1:])),
        Target(board, (*target.kernels, KernelVariant("ADD", "n", "s", ()))),
    ]
    assert len({digest, *map(registry.target_digest, changed)}) == len(changed) + 1


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
        (
            "strange_twin",
            PLUGIN.replace('"strange"', '"cortex_m"'),
            "two target plugins are called 'cortex_m'",
        ),
        ("strange_board", PLUGIN.replace("strange-board", "host"), "two plugins have a board 'host'"),
    ],
)
def test_a_broken_plugin_is_named_and_own_boards_still_load(tmp_path, fresh, module, source, says):
    distribution(tmp_path, module, source, f"strange = {module}:plugin")
    fresh.syspath_prepend(str(tmp_path))
    assert registry.load_board("cortex-m4").name == "cortex-m4"
    with pytest.raises(TargetError, match=says):
        registry.board_names()
