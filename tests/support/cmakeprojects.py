"""CMake projects of a test, configured and built by the real programs."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from needs import needs_tool
from programs import ran

# The lines that Ninja and Make print for rules. Every build compares the content of a network's files.
RULE = re.compile(r"^\[[ \d/%]+\] (?!Built target|Checking the inputs of )(.*)$", re.MULTILINE)


@pytest.fixture(scope="session")
def cmake_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the folder that `buildtool --cmake-dir` prints for this interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        result = subprocess.run(
            [sys.executable, "-m", "buildtool", "--cmake-dir"], capture_output=True, text=True, check=True
        )
    return result.stdout.removesuffix("\n")


class CMakeProject:
    """A project in `folder`, built in its folder `build`. `text`: its CMakeLists.txt, if not there yet."""

    def __init__(
        self,
        folder: Path,
        cmake_dir: str,
        text: str = "",
        *,
        generator: str = "Ninja",
        environment: Mapping[str, str] | None = None,
        **variables: str,
    ) -> None:
        self.folder, self.build_folder = folder, folder / "build"
        self.generator = generator
        # A build makes the same request several times. No two tests share a cache.
        cache = {"BUILDTOOL_CACHE": "on", "XDG_CACHE_HOME": str(folder.parent / "kept")}
        self.environment = cache | dict(environment or {})
        self.variables = {"buildtool_DIR": cmake_dir} | variables
        if text:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")

    def configure(self) -> str:
        result = self._configure()
        assert result.returncode == 0, result.stdout
        return result.stdout

    def refused(self) -> str:
        """Returns CMake's output for a project that it cannot configure, as one line."""
        result = self._configure()
        assert result.returncode != 0 and "CMake Error" in result.stdout, result.stdout
        assert "Traceback" not in result.stdout
        return " ".join(result.stdout.split())

    def build(self, *words: str) -> list[str]:
        """Builds the project. Returns the lines of the rules that ran, in order, without their numbers."""
        return RULE.findall(self.said(*words))

    def said(self, *words: str, fails: bool = False) -> str:
        result = self._run("cmake", "--build", str(self.build_folder), *words)
        assert (result.returncode != 0) == fails, result.stdout
        return result.stdout

    def tested(self, *words: str) -> str:
        """Runs CTest; every test must pass. Returns its output."""
        result = self._run("ctest", "--output-on-failure", *words, folder=self.build_folder)
        assert result.returncode == 0, result.stdout
        assert "No tests were found" not in result.stdout
        return result.stdout

    def _configure(self) -> subprocess.CompletedProcess[str]:
        options = [f"-D{name}={value}" for name, value in self.variables.items()]
        where = ["-S", str(self.folder), "-B", str(self.build_folder)]
        return self._run("cmake", *where, "-G", self.generator, *options)

    def _run(self, program: str, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        needs_tool("ninja" if "Ninja" in self.generator else "make")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {"PATH": path, **self.environment, "CLICOLOR": "0", "MAKEFLAGS": ""}
        return ran(folder or self.folder, needs_tool(program), *words, environment=environment)
