"""The schema package imports what is used of it, and shows the same as when all of it is imported."""

from __future__ import annotations

import subprocess
import sys

LISTED = """
import sys
{first}
import tflite
names = {names}
print(sorted((name, getattr(getattr(tflite, name), "__qualname__", None)) for name in names))
"""
OURS = "from buildtool.graph.tflite.schema import tflite as ours; few = len(sys.modules)"


def _told(first, names):
    made = [sys.executable, "-c", LISTED.format(first=first, names=names)]
    return subprocess.run(made, capture_output=True, text=True, check=True).stdout


def test_it_shows_what_the_whole_package_shows():
    public = "[n for n in (getattr(tflite, 'ModelStart', None), vars(tflite))[1] if not n.startswith('__')]"
    assert _told("", public) == _told(OURS, public)


def test_one_class_imports_one_module():
    script = f"import sys\n{OURS}\nimport tflite; tflite.Tensor, tflite.Padding.SAME\n"
    script += "print(sorted(name for name in sys.modules if name.startswith('tflite.')))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['tflite.Padding', 'tflite.Tensor']"


def test_what_is_not_there_is_not_there():
    script = f"import sys\n{OURS}\nprint(hasattr(ours, 'NoSuchTable'), hasattr(ours, '__wrapped__'))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False False"
