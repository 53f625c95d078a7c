"""Rules for the test suite: no hidden skips, no clocks, no unused dependencies."""

import ast
import functools
import re
import tomllib
from importlib.metadata import packages_distributions

import allowedskips
import needs
import pytest
from hypothesis import HealthCheck, settings
from importlines import import_statements
from paths import ROOT, TESTS

SKIPS = """
import pytest

def test_runs():
    pass

def test_excused():
    pytest.skip("a known reason")

@pytest.mark.skip(reason="nobody knows why")
def test_not_excused():
    pass

@pytest.mark.xfail
def test_fails():
    assert False
"""
SKIPPED_WHOLE = """
import pytest
pytest.importorskip("no_such_package")
"""
# Dependencies declared before their first use. A name that is used must leave this table.
AWAITED: dict[str, str] = {}
# Used as programs or as a plugin, without an import: the file and the text that use them.
COMMANDS = {
    "furo": ("docs/conf.py", 'html_theme = "furo"'),
    "ipykernel": ("docs/guides/notebook.ipynb", '"name": "python3"'),
    "myst-nb": ("docs/conf.py", '"myst_nb"'),
    "pandas": ("docs/guides/notebook.ipynb", "import pandas"),
    "sphinx": ("tests/test_docs.py", '"-m", "sphinx"'),
    "sphinx-copybutton": ("docs/conf.py", '"sphinx_copybutton"'),
    # the extra may be absent
    "ai-edge-quantizer": ("buildtool/quantize/litert.py", "from ai_edge_quantizer"),
    "clang-format": (".ci/run", "clang-format"),
    # the extra may be absent
    "distributed": ("buildtool/fronts/sweep/running.py", 'import_module("distributed")'),
    "h5py": ("buildtool/split/backend.py", "import h5py"),  # the extra may be absent
    "imgtool": ("tests/firmware/flashing/test_signing.py", 'needs_tool("imgtool")'),
    "cmake": ("tests/support/cmakeprojects.py", 'self._run("cmake", *where'),
    "keras": ("buildtool/split/structure.py", "import keras"),  # the extra may be absent
    "mypy": (".ci/run", "mypy"),
    "ninja": ("tests/support/cmakeprojects.py", 'needs_tool("ninja" if'),
    "onnxruntime": ("buildtool/quantize/onnx_runtime.py", "import onnxruntime"),  # the extra may be absent
    "pytest-xdist": ("pyproject.toml", "-n auto"),
    "ruff": (".ci/run", "ruff"),
    "tensorflow-cpu": ("dev", "tensorflow-cpu=="),  # Keras runs on it
    "tflite-micro": ("tests/plan/others/test_tflm.py", 'needs_package("tflite_micro")'),
}


# ---- skips ---------------------------------------------------------------------------------------


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite with our conftest and a list of one allowed skip."""
    pytester.makeconftest((TESTS / "conftest.py").read_text())
    path = pytester.path / "allowed_skips.txt"
    path.write_text("# a title\n\na k.*n reason  # because\n")
    monkeypatch.setattr(allowedskips, "LIST", path)
    return pytester


@pytest.mark.parametrize(
    ("text", "usual", "strict", "said"),
    [
        (
            SKIPS,
            {"passed": 1, "skipped": 2, "xfailed": 1},
            {"passed": 1, "skipped": 1, "errors": 1, "xfailed": 1},
            "*forbids: nobody knows why*",
        ),
        (SKIPPED_WHOLE, {"skipped": 1}, {"errors": 1}, "*"),
    ],
)
def test_a_skip_that_is_not_on_the_list_fails_under_the_switch(suite, monkeypatch, text, usual, strict, said):
    suite.makepyfile(text)
    monkeypatch.delenv(allowedskips.SWITCH, raising=False)
    assert suite.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes() == usual
    monkeypatch.setenv(allowedskips.SWITCH, "1")
    result = suite.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.parseoutcomes() == strict
    result.stdout.fnmatch_lines([said])


MISSING = """
import pytest
from buildtool.base.errors import ToolError

@pytest.fixture
def tool():
    raise ToolError("the linker ld.lld-22 was not found")

def test_asks_first(tool):
    pass

def test_asks_late():
    raise ToolError("the compiler arm-none-eabi-gcc was not found")

def test_fails():
    raise ToolError("the compiler arm-none-eabi-gcc failed")
"""


def test_a_missing_tool_skips_the_test_and_no_other_error_does(suite, monkeypatch):
    suite.makepyfile(MISSING)
    monkeypatch.delenv(allowedskips.SWITCH, raising=False)
    result = suite.runpytest_inprocess("-p", "no:cacheprovider", "-rs")
    assert result.parseoutcomes() == {"skipped": 2, "failed": 1}
    result.stdout.fnmatch_lines(["*arm-none-eabi-gcc was not found: ./dev --with arm-gcc*"])


def test_a_skip_names_the_file_or_the_line_to_run(monkeypatch):
    with pytest.raises(pytest.skip.Exception, match=r"\.\./shared/models/none\.tflite beside the checkout"):
        needs.needs_shared("models/none.tflite")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match=r"arm-none-eabi-gcc: \./dev --with arm-gcc"):
        needs.needs_tool("arm-none-eabi-gcc")
    with pytest.raises(pytest.skip.Exception, match=r"clang \d+ or newer was not found"):
        needs.needs_tool("clang")
    with pytest.raises(pytest.skip.Exception, match="Python package no_such_package"):
        needs.needs_package("no_such_package")


# ---- clocks --------------------------------------------------------------------------------------


def test_no_test_is_judged_by_the_clock():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
    clocks = re.compile(r"\b(monotonic|perf_counter)(_ns)?\(\)")
    names = {path.name for path in TESTS.rglob("*.py") if clocks.search(path.read_text())}
    assert not names


# ---- dependencies --------------------------------------------------------------------------------


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def declared():
    """Returns the distributions in pyproject.toml: dependencies, and those of each extra."""
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(lines):
        return {normal(Requirement(line).name) for line in lines}

    extras = {name: names(lines) for name, lines in project["optional-dependencies"].items()}
    return names(project["dependencies"]), extras


@functools.cache
def distributions():
    return packages_distributions()


def imported(*folders):
    """Returns the distributions that the Python files below `folders` import."""
    names: set[str] = set()
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    for node in (node for path in paths for node in import_statements(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif node.module and not node.level:
            names.add(node.module.partition(".")[0])
    owners = distributions()
    return {normal(owner) for name in names for owner in owners.get(name, [])}


OURS = {"buildtool-mcu", "setuptools"}
ELSEWHERE = {"packaging", "selenium"}  # pytest needs packaging; `./dev --with browser` installs selenium
PRODUCT = ("buildtool", "plugins", "site_scons", "kernels")


def test_every_declared_dependency_is_used():
    dependencies, extras = declared()
    product = imported(*PRODUCT)
    assert dependencies - product == set(AWAITED)
    for name, lines in extras.items():
        used = product | set(COMMANDS)
        if name == "dev":
            used |= imported("tests", "benchmarks")
        assert lines <= used, f"the extra '{name}' declares what nothing uses"
    for name, (file, words) in COMMANDS.items():
        assert words in (ROOT / file).read_text(), f"{file} does not use {name}"


def test_whatever_is_imported_is_declared():
    dependencies, extras = declared()
    everything = dependencies.union(*extras.values())
    assert imported(*PRODUCT) - OURS <= everything | {"protobuf"}  # which onnx needs, and reads with
    assert imported("tests", "benchmarks") - OURS <= everything | ELSEWHERE
