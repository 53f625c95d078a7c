"""Targets by the name of their board. Each process reads a catalogue once.

target = load_target("cortex-m4")
"""

import functools
import re
import tempfile
from pathlib import Path

from paths import ROOT

from buildtool.target import registry
from buildtool.target.types import Target

# A board file: the host, with its weights in a slow memory.
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
    """Returns a board file: the host with two memories for arenas, of these sizes in bytes."""
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
    path = folder / f"{name}.toml"
    path.write_text(f'extends = "{base}"\n{text}\n', encoding="utf-8")
    return str(path)


@functools.cache
def plain_xcore() -> str:
    """Returns a board file: xcore with the plain kernels. Constants: 12 bytes a channel, unpadded."""
    text = (ROOT / "plugins/buildtool_plugins/xcore/boards/xcore.toml").read_text()
    text, changes = re.subn(r"(?m)^families = .*$", 'families = ["reference"]', text)
    assert changes == 1
    path = Path(tempfile.mkdtemp()) / "plain.toml"
    path.write_text(re.sub(r"(?m)^threads = .*$", "", text))
    return str(path)


@functools.cache
def load_target(board: str) -> Target:
    """Returns the target of a known board, without other vendors' libraries."""
    return registry.load_target(board)
