"""The distribution: what its wheel and its source have, and that it works where they are installed."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from needs import needs_tool
from paths import ROOT

from buildtool import DISTRIBUTION, __version__
from buildtool.fronts.examples import examples


def sources(*patterns):
    """Returns the checkout's files, without those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = {ROOT / name for name in result.stdout.decode().split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def pins():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(name): pinned for name, pinned in pairs}


def normal(name):
    return name.lower().replace("_", "-").replace(".", "-")


def needs(name):
    """Returns the distributions that an installed one requires here, without extras."""
    from packaging.requirements import Requirement

    requirements = map(Requirement, requires(name) or [])
    return {normal(r.name) for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})}


def test_requirements_pin_every_package_and_all_they_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    from packaging.requirements import Requirement

    extras, pinned = project["project"]["optional-dependencies"], pins()
    declared = [*project["project"]["dependencies"], *extras["dev"], *project["build-system"]["requires"]]
    for text in declared:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[normal(requirement.name)]), text
    for name in pinned:
        assert needs(name) <= set(pinned), f"{name} needs more than is pinned"
    assert {name: version(name) for name in pinned} == pinned  # the tests run with these


def test_every_module_is_in_a_package():
    for path in sources("buildtool/*.py", "plugins/buildtool_plugins/*.py"):
        assert (path.parent / "__init__.py").is_file(), path


EXTRAS = {"reference", "onnx", "images", "serial", "mcuboot", "quantize", "sound", "split", "sweep"}
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


def pip(*words, python=sys.executable):
    command = [*PIP, "--python", str(python), *map(str, words)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution of a copy of this checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    checkout = folder / "checkout"
    for path in sources():
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-c", SDIST, folder], cwd=checkout, check=True, capture_output=True)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that the source distribution makes, with nothing from an index."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, sdist)
    (made,) = folder.glob("*.whl")
    return made


MANYLINUX = (2, 17)  # the oldest C library for which pip has wheels of every dependency


@pytest.mark.slow
def test_one_wheel_serves_every_python_and_old_systems(wheel):
    """Its libraries ask for nothing of Python, and for no younger C library."""
    assert re.fullmatch(rf"buildtool_mcu-{__version__}-py3-none-linux_\w+\.whl", wheel.name)
    libraries = {f"_{path.stem}.so" for path in (ROOT / "buildtool").rglob("*.c")}
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if Path(name).suffix in (".so", ".pyd", ".dll")]
        assert {Path(name).name for name in files} == libraries and len(files) == len(libraries)
        for name in files:
            with archive.open(name) as file:
                elf = ELFFile(file)
                symbols = [one.name for one in elf.get_section_by_name(".dynsym").iter_symbols()]
                needed = elf.get_section_by_name(".gnu.version_r")
                versions = [v.name for _, those in needed.iter_versions() for v in those] if needed else []
            assert not [symbol for symbol in symbols if symbol.startswith("Py")]
            numbers = [tuple(map(int, version.removeprefix("GLIBC_").split("."))) for version in versions]
            assert all(number <= MANYLINUX for number in numbers), (name, versions)


@pytest.mark.slow
def test_the_source_has_the_check_of_an_installation_and_no_other_tests(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in names if name.startswith("tests/") and name.endswith(".py")} == {
        "tests/packages/smoke.py"
    }


@pytest.mark.slow
def test_the_description_leads_from_any_page_to_the_files_of_this_version(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"buildtool_mcu-{__version__}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]*)\)", text)
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    own = [link for link in links if not link.startswith(("http", "#")) or link.startswith(source)]
    assert len(own) > 10
    for link in own:
        found = re.fullmatch(rf"{source}/(?:blob|raw)/v{re.escape(__version__)}/([^#]+)(?:#.*)?", link)
        assert found and (ROOT / found[1]).exists(), link


INSTALL = ("install", "--no-deps", "--no-compile")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel, and with the dependencies of this one without the editable install."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"))
    pip(*INSTALL, wheel, python=folder / "bin/python")
    return folder


def said(program, *words, folder):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run([program, *words], cwd=folder, env=env, capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.slow
def test_an_installation_has_plugins_and_kernels_inside_and_works(installed, tmp_path):
    site = next(installed.glob("lib/python*/site-packages"))
    names = {path.name for path in site.iterdir() if path.suffix not in (".dist-info", ".pth")}
    assert names - {"__pycache__"} == {
        *("buildtool", "buildtool_examples", "buildtool_kernels", "buildtool_plugins", "buildtool_scons")
    }
    data = [
        *sources("kernels/*.c", "kernels/*.h", "kernels/*.S", "kernels/*.toml", "kernels/*/packing.py"),
        *sources("buildtool/*.bzl", "buildtool/fronts/platformio/library/*"),
        *sources(*(f"plugins/buildtool_plugins/*.{suffix}" for suffix in ("toml", "c", "h", "S", "ld"))),
        *sources("buildtool/fronts/*.cmake", "buildtool/fronts/*/CMakeLists.txt"),
        *sources("examples/*"),
    ]
    assert data
    for path in data:
        name = path.relative_to(ROOT).as_posix()
        name = re.sub("^(kernels|examples)/", r"buildtool_\1/", name.removeprefix("plugins/"))
        assert (site / name).read_bytes() == path.read_bytes()
    for tool in ("gcc", "g++", "cmake", "ninja"):
        needs_tool(tool)
    smoke = [installed / "bin/python", ROOT / "tests/packages/smoke.py", "--all"]
    status, out, err = said(*smoke, folder=tmp_path)
    assert (status, err) == (0, ""), out + err
    assert out.endswith(": 7 ok, 0 left out, 0 FAILED\n") and "'s reference kernels, to the bit\n" in out
    code = "import buildtool.target.kernels as k; print(k.kernels_root())"
    assert said(installed / "bin/python", "-c", code, folder=tmp_path)[1].strip() == str(
        site / "buildtool_kernels"
    )


@pytest.mark.slow
def test_an_installation_says_where_it_is_from_and_names_its_namesake(wheel, installed, tmp_path):
    assert wheel.name.startswith("buildtool_mcu-")
    command = installed / "bin/buildtool"
    site = next(installed.glob("lib/python*/site-packages"))
    version_line = f"buildtool {__version__}, from buildtool-mcu in {site}\n"
    assert said(command, "--version", folder=tmp_path) == (0, version_line, "")
    other = site / "buildtool-0.2.9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: buildtool\nVersion: 0.2.9\n")
    (other / "INSTALLER").write_text("pip\n")
    (other / "RECORD").write_text(
        "".join(f"{name},,\n" for name in ("buildtool/__init__.py", "buildtool/__main__.py"))
        + "".join(f"{other.name}/{name},,\n" for name in ("METADATA", "INSTALLER", "RECORD"))
    )
    status, out, err = said(command, "--version", folder=tmp_path)
    assert (status, out) == (0, version_line)
    assert err.count("another package named 'buildtool' (0.2.9)") == 1 and str(other) in err
    assert "pip uninstall buildtool" in err


def test_the_distribution_has_its_own_name_and_every_extra_is_told():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION != "buildtool"
    assert set(project["optional-dependencies"]) - {"dev", "docs"} == EXTRAS
    page = (ROOT / "docs/start/installing.md").read_text()
    assert {name for name in EXTRAS if f"| `{name}` |" in page} == EXTRAS


def test_no_page_and_no_message_installs_somebody_elses_package():
    folders = ("docs/**/*.md", "examples/*", "buildtool/*", "plugins/*")
    places = sources("README.md", "CONTRIBUTING.md", *folders, "dev")
    lines = [
        (path.name, line)
        for path in places
        if path.suffix in (".md", ".py", ".toml", ".cmake", ".bzl", "")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pip install" in line
    ]
    assert len(lines) > 20
    wrong = [one for one in lines if re.search(r"pip install[^`]*\bbuildtool\b(?!-mcu)", one[1])]
    assert [name for name, _ in wrong] == ["installing.md"]  # which says not to
    assert "somebody else's package" in (ROOT / "docs/start/installing.md").read_text().replace("\n", " ")


def test_every_file_of_the_examples_is_in_their_list():
    listed = {one.folder / name for one in examples().values() for name in one.files}
    beside = {ROOT / "examples/__init__.py", ROOT / "examples/examples.toml"}
    assert listed | beside == set(sources("examples/*"))
