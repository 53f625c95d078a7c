"""Profile and validate run the firmware image of a build, and refuse every other image."""

import functools
import os

import pytest

from buildtool.api import handle
from buildtool.base.errors import PlanError, ToolError, UsageError

NET, OTHER = "ds_cnn", "resnet8"


@functools.cache
def build(model, board="host", **options):
    """The files of a build by their suffix: ".elf", ".plan", ..."""
    answer = handle({"kind": "build", "model": model, "board": board, "options": options})
    return {name.removeprefix(answer["net"]): data for name, data in answer["files"].items()}


class Subject:
    """A request about the files of a build."""

    def __init__(self, folder, files, model, board):
        self.elf, self.plan = folder / "net.elf", folder / "net.plan"
        self.elf.write_bytes(files[".elf"])
        self.elf.chmod(0o755)
        self.plan.write_bytes(files[".plan"])
        self.request = {"model": model, "board": board, "elf": str(self.elf), "plan": str(self.plan)}

    def ask(self, kind="profile", **more):
        return handle({"kind": kind, **self.request, **more})


@pytest.fixture
def subject(tmp_path):
    return Subject(tmp_path, build(NET), NET, "host")


@pytest.mark.slow
def test_the_answers_are_those_of_an_image_built_here(subject):
    plain = {"model": NET, "board": "host"}
    assert subject.ask() == handle({"kind": "profile", **plain})
    more = {"inputs": 2, "seed": 3, "tensors": True}
    assert subject.ask("validate", **more) == handle({"kind": "validate", **plain, **more})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["profile", "validate"])
def test_nothing_is_compiled_and_the_image_is_left_as_it_is(subject, kind, monkeypatch, tmp_path):
    os.utime(subject.elf, ns=(1, 1))
    before = subject.elf.read_bytes()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BUILDTOOL_CLANG", raising=False)
    assert subject.ask(kind)["exact"]
    assert (subject.elf.read_bytes(), subject.elf.stat().st_mtime_ns) == (before, 1)
    with pytest.raises(ToolError, match="no C compiler"):
        handle({"kind": kind, "model": NET, "board": "host"})


def test_it_is_this_file_that_runs(subject):
    """The code of the image has another layout, with which it compares that of the weights."""
    layout = build(NET)["_weights.bin"][32:48]
    data = subject.elf.read_bytes()
    code = data.replace(layout, bytes(16), data.count(layout))
    weights = build(NET)["_weights.bin"]
    subject.elf.write_bytes(code.replace(weights.replace(layout, bytes(16)), weights))
    with pytest.raises(ToolError, match="init gave status 4"):
        subject.ask()


@pytest.mark.slow
def test_the_image_of_another_network_or_plan_is_refused(subject):
    for files, name in ((build(OTHER), OTHER), (build(NET, in_place="none"), NET)):
        subject.elf.write_bytes(files[".elf"])
        words = rf"not built from this plan: expected plan [0-9a-f]{{32}}.*found '{name}' \(plan "
        with pytest.raises(ToolError, match=words) as caught:
            subject.ask("validate")
        assert caught.value.path == str(subject.elf)


@pytest.mark.slow
def test_an_image_with_the_weights_of_another_training_is_refused(tmp_path):
    files = build(f"{NET}:seed=1")
    other = Subject(tmp_path, files, NET, "host")
    assert files[".plan"] == build(NET)[".plan"]  # training changes no plan
    expected, actual = (
        int.from_bytes(weights[16:20], "little")
        for weights in (build(NET)["_weights.bin"], files["_weights.bin"])
    )
    with pytest.raises(ToolError, match=f"expected CRC-32 {expected:08x}, found {actual:08x}"):
        other.ask()


def test_an_image_with_other_contents_is_refused(subject):
    good, weights = subject.elf.read_bytes(), build(NET)["_weights.bin"]
    damaged = weights[:-40] + bytes([weights[-40] ^ 1]) + weights[-39:]
    for old, new, words in (
        (weights, damaged, "weights are damaged"),
        (weights, bytes(len(weights)), "no weights of this network"),
        (b"buildtool network", b"something network", "no network of buildtool"),
        (b"buildtool test firmware 1", b"buildtool test firmware 2", "not a test firmware"),  # an application
        (good, b"", "not an ELF image"),
        (good, b"no ELF", "not an ELF image"),
        (good, b"\x7fELF", "not an ELF image"),
    ):
        assert old in good
        subject.elf.write_bytes(good.replace(old, new))
        with pytest.raises(ToolError, match=words) as caught:
            subject.ask()
        assert caught.value.path == str(subject.elf)


def test_a_plan_of_another_network_or_board_and_other_files_are_refused(subject):
    for data, words in (
        (build(OTHER)[".plan"], "another network"),
        (handle({"kind": "plan", "model": NET, "board": "cortex-m4"})["plan"], "is not valid on board"),
        (b"", "not a locked plan"),
        (build(NET)[".plan"][:-1], "not a plan"),
    ):
        subject.plan.write_bytes(data)
        with pytest.raises(PlanError, match=words) as caught:
            subject.ask()
        assert caught.value.path == str(subject.plan)


def test_what_has_no_effect_is_refused(subject):
    request = {key: value for key, value in subject.request.items() if key != "plan"}
    with pytest.raises(UsageError, match="'elf' needs 'plan'"):
        handle({"kind": "profile", **request})
    for name, more in (
        ("in_place", {"options": {"in_place": "none"}}),
        ("toolchain", {"toolchain": "gcc"}),
        ("sanitize", {"sanitize": True}),
    ):
        with pytest.raises(UsageError, match=f"{name}: it has no effect"):
            subject.ask("validate", **more)
