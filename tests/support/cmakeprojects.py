"""CMake projects of a test: configured and built by the real programs, and what ran while they were."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from needs import needs_tool
from programs import ran

# The lines of Ninja and of Make about rules; what they say besides is of no interest.
# The content of a network's files is compared in every build.
RULE = re.compile(r"^\[[ \d/%]+\] (?!Built target|Checking the inputs of )(.*)$", re.MULTILINE)


@pytest.fixture(scope="session")
def cmake_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder that `buildtool --cmake-dir` prints for this interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        done = subprocess.run(
            [sys.executable, "-m", "buildtool", "--cmake-dir"], capture_output=True, text=True, check=True
        )
    return done.stdout.removesuffix("\n")


class CMakeProject:
    """A project in `folder`, whose CMakeLists.txt is `text` if that is given; built in `build` below."""

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
        # A build asks the same question several times; what is kept for one test is no other's.
        kept = {"BUILDTOOL_CACHE": "on", "XDG_CACHE_HOME": str(folder.parent / "kept")}
        self.environment = kept | dict(environment or {})
        self.variables = {"buildtool_DIR": cmake_dir} | variables
        if text:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")

    def configure(self) -> str:
        """Configures; what CMake says."""
        done = self._configured()
        assert done.returncode == 0, done.stdout
        return done.stdout

    def refused(self) -> str:
        """What CMake says of a project that it cannot configure, on one line."""
        done = self._configured()
        assert done.returncode != 0 and "CMake Error" in done.stdout, done.stdout
        assert "Traceback" not in done.stdout
        return " ".join(done.stdout.split())

    def build(self, *words: str) -> list[str]:
        """What ran, in order: the lines of the rules, without their numbers."""
        return RULE.findall(self.said(*words))

    def said(self, *words: str, fails: bool = False) -> str:
        """What a build prints."""
        done = self._run("cmake", "--build", str(self.build_folder), *words)
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout

    def tested(self, *words: str) -> str:
        """What CTest prints; every test passes."""
        done = self._run("ctest", "--output-on-failure", *words, folder=self.build_folder)
        assert done.returncode == 0, done.stdout
        assert "No tests were found" not in done.stdout
        return done.stdout

    def _configured(self) -> subprocess.CompletedProcess[str]:
        given = [f"-D{name}={value}" for name, value in self.variables.items()]
        where = ["-S", str(self.folder), "-B", str(self.build_folder)]
        return self._run("cmake", *where, "-G", self.generator, *given)

    def _run(self, program: str, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        needs_tool("ninja" if "Ninja" in self.generator else "make")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {"PATH": path, **self.environment, "CLICOLOR": "0", "MAKEFLAGS": ""}
        return ran(folder or self.folder, needs_tool(program), *words, environment=environment)
