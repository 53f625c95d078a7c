"""The page docs/start/bazel-first-project.md, done in an empty folder as a newcomer would."""

from pathlib import Path

import pytest
from firstprojects import FirstProject, keyword_class
from needs import needs_tool
from paths import ROOT

OFFLINE = ROOT / "examples/bazel_firmware/third_party"


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for tool in ("bazel", "clang", "qemu-system-arm"):
        needs_tool(tool)
    # What Bazel would download, and a server of a short life.
    rules = [f"build --override_repository={path.name}={path}" for path in OFFLINE.iterdir()]
    java = [f"startup --host_jvm_args=-XX:{flag}" for flag in ("TieredStopAtLevel=1", "+UseSerialGC")]
    place = f"startup --output_user_root={tmp_path / 'out'}"
    (tmp_path / ".bazelrc").write_text("\n".join([place, *java, *rules, "common --noshow_progress", ""]))
    project = FirstProject("bazel-first-project.md", tmp_path, name="first", home=tmp_path)  # without spaces
    assert sorted(project.files) == [".bazelrc", "BUILD", "WORKSPACE", "main.c"]
    try:
        assert project.follow() == 6
        assert project.shown("qemu") == f"{keyword_class()}\n"
    finally:
        project.run("bazel shutdown")
