"""Targets by the name of their board; their catalogues are read once a test process.

target = load_target("cortex-m4")
"""

import functools
import re
import tempfile
from pathlib import Path

from paths import ROOT

from buildtool.target import registry
from buildtool.target.types import Target

# A board file: the host, whose weights lie in a memory slower than its kernels are.
SLOW_WEIGHTS = """\
extends = "host"
[memory.flash]
kind = "rom"
base = 0x40000000
size = "4M"
bandwidth = 50000000
[roles]
weights = "flash"
"""


def twin(ram: int, fast: int) -> str:
    """A board file: the host with two memories for arenas, of these sizes in bytes."""
    return f"""\
extends = "host"
stack_bytes = 256
[memory.ram]
size = {ram}
[memory.fast]
kind = "ram"
base = 0x30000000
size = {fast}
[memory.flash]
kind = "rom"
base = 0x40000000
size = "4M"
[roles]
weights = "flash"
code = "flash"
"""


def own_board(folder: Path, text: str, base: str = "cortex-m4", name: str = "mine") -> str:
    """The path of a board's file: a known board, of which it says something else."""
    path = folder / f"{name}.toml"
    path.write_text(f'extends = "{base}"\n{text}\n', encoding="utf-8")
    return str(path)


@functools.cache
def plain_xcore() -> str:
    """The path of board xcore with the plain kernels, whose constants are 12 bytes a channel, unpadded."""
    text = (ROOT / "plugins/buildtool_plugins/xcore/boards/xcore.toml").read_text()
    text, changes = re.subn(r"(?m)^families = .*$", 'families = ["reference"]', text)
    assert changes == 1
    path = Path(tempfile.mkdtemp()) / "plain.toml"
    path.write_text(re.sub(r"(?m)^threads = .*$", "", text))
    return str(path)


@functools.cache
def load_target(board: str) -> Target:
    """A board of the packages, without libraries of others."""
    return registry.load_target(board)
