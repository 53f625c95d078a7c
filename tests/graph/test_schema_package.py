"""The schema package only imports the modules that are used, and has the same names as the whole package."""

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


def _printed(script):
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_it_shows_the_same_as_the_whole_package():
    public = "[n for n in (getattr(tflite, 'ModelStart', None), vars(tflite))[1] if not n.startswith('__')]"
    whole, ours = (_printed(LISTED.format(first=first, names=public)) for first in ("", OURS))
    assert whole == ours


def test_one_class_imports_one_module():
    script = "import tflite; tflite.Tensor, tflite.Padding.SAME\n"
    script += "print(sorted(name for name in sys.modules if name.startswith('tflite.')))"
    assert _printed(f"import sys\n{OURS}\n{script}") == "['tflite.Padding', 'tflite.Tensor']"
