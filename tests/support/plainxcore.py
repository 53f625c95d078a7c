"""Board xcore with the plain kernels, whose constants take 12 bytes a channel and are not filled up."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

from paths import ROOT


@cache
def plain_xcore() -> str:
    """The path of its file."""
    text = (ROOT / "plugins/buildtool_plugins/xcore/boards/xcore.toml").read_text()
    text, changes = re.subn(r"(?m)^families = .*$", 'families = ["reference"]', text)
    assert changes == 1
    path = Path(tempfile.mkdtemp()) / "plain.toml"
    path.write_text(re.sub(r"(?m)^threads = .*$", "", text))
    return str(path)
