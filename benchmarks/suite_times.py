"""How long the tests take, by room: python -m benchmarks.suite_times [--xml FILE] [--longest 12]

A room is a package of buildtool with the tests' folder of the same name. Runs all tests, or reads what
`pytest --junitxml FILE` wrote about a run, and prints two tables in Markdown: the tests of each folder with
their seconds, and the test functions that take longest (all cases of a function together). Tests run beside
each other, so their seconds add up to more than the run takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]


def cells(name: str, seconds: list[float]) -> str:
    """Returns a table row: the number of tests, the sum of their seconds, and the seconds of the longest."""
    return f"| {name} | {len(seconds):,} | {sum(seconds):,.0f} | {max(seconds):.0f} |"


def cases(report: Path) -> Iterator[tuple[str, str, float]]:
    """Yields the folder, the function and the seconds of each test in a report."""
    for case in ElementTree.parse(report).iter("testcase"):
        path = case.get("classname", "").split(".")
        function = f"{path[-1]}::{case.get('name', '').partition('[')[0]}"
        yield "/".join(path[:2]) if len(path) > 2 else path[0], function, float(case.get("time", 0))


def rows(times: Mapping[str, list[float]], most: int | None = None) -> list[str]:
    """Returns the rows of a table, in descending order of seconds."""
    ordered = sorted(times.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [cells(f"`{name}`", seconds) for name, seconds in ordered[:most]]


def tables(report: Path, longest: int) -> str:
    """Returns both tables, and the duration of the run."""
    folders: dict[str, list[float]] = defaultdict(list)
    functions: dict[str, list[float]] = defaultdict(list)
    for folder, function, seconds in cases(report):
        folders[folder].append(seconds)
        functions[function].append(seconds)
    run = ElementTree.parse(report).find("testsuite")
    total = [seconds for each in folders.values() for seconds in each]
    return "\n".join(
        [
            "| folder | tests | seconds | longest |\n| --- | ---: | ---: | ---: |",
            *rows(folders),
            cells("all", total),
            "",
            "| function | cases | seconds | longest |\n| --- | ---: | ---: | ---: |",
            *rows(functions, longest),
            "",
            f"The run took {float(run.get('time', 0)) if run is not None else 0:.0f} s.",
        ]
    )


def main() -> None:
    """Reads the report, or runs the tests to make it, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--xml", type=Path, help="the report of a run that has ended")
    parser.add_argument("--longest", type=int, default=12, help="functions in the second table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = options.xml or Path(folder) / "tests.xml"
        if options.xml is None:
            command = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--junitxml={report}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stdout)
        print(tables(report, options.longest))


if __name__ == "__main__":
    main()
