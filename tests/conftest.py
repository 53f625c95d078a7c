"""Settings of every test run, and the switch under which a skip fails."""

import functools
import gc
import os
import sys
import time
from collections.abc import Generator

import daemons
import kept
import pytest
from allowedskips import refusal
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from needs import skip_without_tool

from buildtool import zoo
from buildtool.base import compiler, session
from buildtool.base.errors import ToolError
from buildtool.target import family, registry

# Workers already fill the cores; a matrix product with threads of its own is several times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every test plans for itself: no daemon runs, and nothing but what compilers make is kept, where a test is
# not about just that.
os.environ["BUILDTOOL_DAEMON"] = "off"
os.environ["BUILDTOOL_CACHE"] = ",".join(kept.LEVELS)
session.at_work = kept.Fallback(session.at_work)
compiler.identify = kept.asked_once(compiler.identify)

# Texts are as wide as where no terminal is, on every terminal and in workers, which are told its width.
os.environ.pop("COLUMNS", None)

# Marks what a run of the tests has started: all of it has ended when the run ends.
os.environ.setdefault(daemons.RUN, str(os.getpid()))

# Hundreds of short processes would compile every module again, and pytest every test module.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hundreds of tests name networks of the zoo: a process builds each once. (What building gives is tested in
# processes of their own.)
zoo.build = functools.cache(zoo.build)

# And thousands of requests are for the same few boards.
family.load_family = kept.read_once(family.load_family)
registry.load_board = kept.loaded_once(registry.load_board)
registry.make_target = kept.made_once(registry.make_target)

# Graphs and plans are many small objects: a tenth of a test's time went to looking through them for cycles.
gc.set_threshold(50_000, 20, 20)

# The same examples in every run, and none judged by the clock: a busy machine fails no test.
settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
# Hypothesis also draws numbers that it finds in the project's modules: in those that a worker has imported
# by then, which are others in every run.
assert hasattr(providers, "is_local_module_file")
providers.is_local_module_file = lambda path: False


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was collected stays until the end: the collector of garbage need not look through it again."""
    gc.collect()
    gc.freeze()


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip that is not allowed into a failure."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    said = refusal(reason)
    if said is not None:
        report.outcome = "failed"
        report.longrepr = said


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run if a process of ours outlives it; the workers of pytest-xdist have ended by now."""
    if hasattr(session.config, "workerinput") or os.environ[daemons.RUN] != str(os.getpid()):
        return
    for _ in range(50):
        if not (left := daemons.left_over()):
            return
        time.sleep(0.1)
    if left:
        print(f"\nERROR: processes of ours run after the tests: {left}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    yield from _skip_without_tools()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    yield from _skip_without_tools()


def _skip_without_tools() -> Generator[None, None, None]:
    """A test whose compiler or emulator is not installed is skipped, wherever it asks for it."""
    try:
        yield
    except ToolError as error:
        skip_without_tool(error)
        raise


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse(report)
    return report
