"""The example of a target from another distribution: installed as such, exact in every tensor."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needs import needs_tool
from paths import ROOT

EXAMPLE = ROOT / "examples/third_party_target"
GUIDE = (ROOT / "docs/guides/target-guide.md").read_text(encoding="utf-8")
# A paragraph that ends with a colon, and the block behind it.
SHOWN = re.compile(r"((?:^[^\s][^\n]*\n)*^[^\s][^\n]*:\n)\n((?:^    [^\n]*\n|^\n)+)", re.MULTILINE)
SMALL = "mobilenetv2:size=32,alpha=0.35,classes=10"
STREAMED = ("--image", "stream", "--objective", "ram")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution installed in it, made from a copy far from this repository."""
    folder = tmp_path_factory.mktemp("third_party")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    where = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run([*pip, *where], check=True, stdin=subprocess.DEVNULL)
    return folder / "site"


def buildtool(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the command says with the distribution installed; from a folder that has nothing of ours."""
    path = os.pathsep.join((str(site), str(ROOT), str(ROOT / "plugins")))
    return subprocess.run(
        [sys.executable, "-m", "buildtool", *words],
        cwd=site,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(site: Path, *words: str) -> dict:
    done = buildtool(site, *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_only_the_distribution_s_own_files_are_installed(site):
    names = {path.name for path in site.iterdir() if path.suffix != ".dist-info"}
    assert names == {"acme_target"}
    kernels = {path.name for path in (site / "acme_target/acme_conv").iterdir() if path.is_file()}
    assert kernels == {"acme_conv.h", "acme_conv2d_s8.c", "catalogue.toml", "packing.py"}


@pytest.mark.slow
def test_its_board_is_known_and_its_kernel_replaces_ours(site):
    boards = {board["name"]: board for board in answer(site, "boards")["boards"]}
    assert boards["acme-demo"]["family"] == "acme"
    operators = {row["operator"]: row["kernels"] for row in answer(site, "ops")["operators"]}
    assert operators["CONV_2D"]["acme-demo"].split(", ")[0] == "conv2d_acme"
    assert operators["ADD"]["acme-demo"] == operators["ADD"]["host"]
    assert "acme" not in operators["CONV_2D"]["host"]


def test_the_guide_names_every_file_and_shows_parts_of_them():
    """What the other tests install is what the guide shows; it shows nothing else."""
    tracked = [path for path in EXAMPLE.rglob("*.*") if path.suffix in (".toml", ".py", ".c", ".h")]
    files = {
        str(path.relative_to(EXAMPLE)): path.read_text() for path in tracked if "build" not in path.parts
    }
    cells = re.findall(r"^\|([^|]*)\|[^|]*\|$", GUIDE, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([\w./-]+\.\w+)`", cell)} == set(files)
    shown = []
    for paragraph, block in SHOWN.findall(GUIDE):
        if not block.startswith("    $ "):
            shown += re.findall(r"`([\w./-]+\.\w+)`", paragraph)[:1]
            assert re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") in files[shown[-1]]
    assert len(set(shown)) == 5


@pytest.mark.slow
def test_its_kernels_pass_the_check_and_faults_in_them_do_not(site, tmp_path):
    found = answer(site, "target", "check", "acme", "--cases", "2")
    assert (found["plugin"], found["boards"], found["exact"]) == ("acme", ["acme-demo"], True)
    (row,) = found["kernels"]
    assert (row["kernel"], row["cases"], row["in_networks"], row["failed"]) == ("conv2d_acme", 2, 1, None)
    assert row["values"] > 10
    column = "inside(column, in->width)", "inside(column + (kx == 2), in->width)"
    faults = [
        ("acme_conv2d_s8.c", *column, "different by"),
        ("catalogue.toml", 'scratch = "4 * cout"', 'scratch = "2 * cout"', "wrote"),
    ]
    for number, (file, right, wrong, says) in enumerate(faults):
        broken = tmp_path / str(number)
        shutil.copytree(site, broken)
        path = broken / "acme_target/acme_conv" / file
        assert right in path.read_text()
        path.write_text(path.read_text().replace(right, wrong))
        done = buildtool(broken, "target", "check", "acme", "--cases", "4", "--out", "failed")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "conv2d_acme on acme-demo: " in done.stdout and says in done.stdout
        assert "1 FAILED" in done.stdout
    shown = " ".join(done.stdout.split())
    command = re.search(r"buildtool (validate failed/\S+\.tflite .*?) 0 kernels", shown)
    assert command is not None
    assert buildtool(broken, *command[1].split()).returncode == 1, "the command shows what failed"


@pytest.mark.slow
def test_every_tensor_equals_the_reference(site):
    needs_tool("clang")
    words = (SMALL, "--board", "acme-demo", *STREAMED)
    validated = answer(site, "validate", *words, "--tensors", "--reference", "litert", "--inputs", "2")
    assert validated["exact"], validated.get("first_difference")
    assert validated["tensors_compared"] > 10
    plan = answer(site, "plan", *words)
    own = {row["position"] for row in plan["operators"] if row["kernel"] == "conv2d_acme"}
    streamed = {op for region in plan["regions"] if region["streamed"] for op in region["operators"]}
    assert own & streamed and own - streamed


@pytest.mark.slow
def test_a_bundle_has_its_kernel_and_says_that_no_license_is_stated(site, tmp_path):
    done = buildtool(
        site, "build", "ds_cnn", "--board", "acme-demo", "--bundle", "--out", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out/sources.json").read_text())
    folder = "kernels/acme_conv"
    assert f"{folder}/acme_conv2d_s8.c" in told["sources"] and folder in told["include_kernels"]
    assert (tmp_path / "out" / folder / "acme_conv.h").is_file()
    assert {"spdx": "", "text": "", "folders": [folder]} in told["licenses"]
    assert f"`{folder}`: license not stated" in (tmp_path / "out/README.md").read_text()


@pytest.mark.slow
def test_a_packing_of_another_length_than_the_catalogue_says_is_an_error(site, tmp_path):
    broken = tmp_path / "site"
    shutil.copytree(site, broken)
    catalogue = broken / "acme_target/acme_conv/catalogue.toml"
    catalogue.write_text(catalogue.read_text().replace("16 + 12 * cout, 16", "16 + 16 * cout, 16"))
    done = buildtool(broken, "build", "ds_cnn", "--board", "acme-demo", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "packing 'acme_conv' made" in done.stderr
    assert "correct `bytes` of [packing.acme_conv]" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_check_of_what_is_not_there_says_what_is(site):
    for words, says in [
        (("acne",), "no target plugin is called 'acne'"),
        (("acme-demo",), "'acme-demo' is a board of the plugin 'acme'"),
        (("acme", "--board", "host"), "board 'host' belongs to the family 'host', not to 'acme'"),
    ]:
        done = buildtool(site, "target", "check", *words)
        assert done.returncode == 2, done.stdout
        assert says in done.stderr


def test_without_the_distribution_the_board_is_unknown(site, tmp_path):
    done = buildtool(tmp_path, "plan", "ds_cnn", "--board", "acme-demo")
    assert done.returncode == 2
    assert "unknown board 'acme-demo'" in done.stderr
