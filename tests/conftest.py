"""Settings of every test run. They make skips fail where they are not allowed."""

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

# Workers already fill the cores. Threads in matrix products would make them several times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# By default no daemon runs, and the cache has only what compilers make.
os.environ["BUILDTOOL_DAEMON"] = "off"
os.environ["BUILDTOOL_CACHE"] = ",".join(kept.LEVELS)
session.current_session = kept.Fallback(session.current_session)
compiler.identify = kept.asked_once(compiler.identify)

# Texts have the width without a terminal, on every terminal and in workers.
os.environ.pop("COLUMNS", None)

# Marks the processes of this test run. All must have ended when the run ends.
os.environ.setdefault(daemons.RUN, str(os.getpid()))

# Otherwise hundreds of short processes would compile every module again, and pytest every test module.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hundreds of tests name networks of the zoo: each process builds a network once. (Tests of the building
# itself run in their own processes.)
zoo.build = functools.cache(zoo.build)

# Thousands of requests name the same few boards.
family.load_family = kept.read_once(family.load_family)
registry.load_board = kept.loaded_once(registry.load_board)
registry.make_target = kept.made_once(registry.make_target)

# Graphs and plans are many small objects: collecting cycles took a tenth of the time.
gc.set_threshold(50_000, 20, 20)

# The same examples in every run, and no deadlines: a busy machine fails no test.
settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
# Hypothesis also draws numbers from the project's imported modules, which differ between runs.
assert hasattr(providers, "is_local_module_file")
providers.is_local_module_file = lambda path: False


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Freezes the collected tests, so that the garbage collector skips them."""
    gc.collect()
    gc.freeze()


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a skip that is not allowed a failure."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    message = refusal(reason)
    if message is not None:
        report.outcome = "failed"
        report.longrepr = message


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run if one of its processes is still there. The workers of pytest-xdist have ended by now."""
    if hasattr(session.config, "workerinput") or os.environ[daemons.RUN] != str(os.getpid()):
        return
    for _ in range(50):
        if not (processes := daemons.left_over()):
            return
        time.sleep(0.1)
    if processes:
        print(f"\nERROR: processes of the tests are still running: {processes}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    yield from _skip_without_tools()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    yield from _skip_without_tools()


def _skip_without_tools() -> Generator[None, None, None]:
    """Skips a test whose compiler or emulator is not installed."""
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
