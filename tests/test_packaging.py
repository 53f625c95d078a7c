"""The distribution: what lands in site-packages, and that it works from there."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from paths import ROOT


def sources(*patterns: str) -> list[Path]:
    """The checkout's files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = {ROOT / name for name in done.stdout.decode().split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(name): pinned for name, pinned in pairs}


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def needs(name: str) -> set[str]:
    """The distributions that an installed one requires here, without extras."""
    from packaging.requirements import Requirement

    found = map(Requirement, requires(name) or [])
    return {normal(r.name) for r in found if r.marker is None or r.marker.evaluate({"extra": ""})}


def test_requirements_pin_every_package_and_all_they_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    from packaging.requirements import Requirement

    declared = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
        *project["build-system"]["requires"],
    ]
    pinned = pins()
    for text in declared:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[normal(requirement.name)]), text
    for name in pinned:
        assert needs(name) <= set(pinned), f"{name} needs more than is pinned"


def test_the_tests_run_with_what_is_pinned() -> None:
    assert {name: version(name) for name in pins()} == pins()


def test_every_module_is_in_a_package() -> None:
    for path in sources("buildtool/*.py", "plugins/buildtool_plugins/*.py"):
        assert (path.parent / "__init__.py").is_file(), path


@pytest.mark.slow
def test_an_installation_has_plugins_and_kernels_inside_and_works(tmp_path: Path) -> None:
    checkout, site, elsewhere = (tmp_path / name for name in ("checkout", "site", "elsewhere"))
    for path in sources():
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    where = ["--no-deps", "--no-build-isolation", "--target", str(site), str(checkout)]
    subprocess.run([*pip, *where], check=True, stdin=subprocess.DEVNULL)

    names = {path.name for path in site.iterdir() if path.suffix != ".dist-info"}
    assert names == {"bin", "buildtool", "buildtool_kernels", "buildtool_plugins", "buildtool_scons"}
    data = [
        *sources("kernels/*.c", "kernels/*.h", "kernels/*.S", "kernels/*.toml", "kernels/*/packing.py"),
        *sources("buildtool/*.bzl", "buildtool/integrate/platformio/library/*"),
        *sources(*(f"plugins/buildtool_plugins/*.{suffix}" for suffix in ("toml", "c", "h", "S", "ld"))),
        *sources("buildtool/integrate/*.cmake", "buildtool/integrate/*/CMakeLists.txt"),
    ]
    assert data
    for path in data:
        name = path.relative_to(ROOT).as_posix()
        name = name.removeprefix("plugins/").replace("kernels/", "buildtool_kernels/", 1)
        assert (site / name).read_bytes() == path.read_bytes()

    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, site / "bin/buildtool", "validate", "ds_cnn", "--board", "host"],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("'s reference kernels, to the bit\n")
    module = subprocess.run(
        [sys.executable, "-c", "import buildtool.target.kernels as k; print(k.kernels_root())"],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert module.stdout.strip() == str(site / "buildtool_kernels")
