"""The stored answer to `describe`: it is used while everything that it depends on is unchanged."""

import copy
import os
import time
from typing import Any

import msgpack
import pytest

from buildtool.api import handle
from buildtool.base.digests import MAPPED_NS
from buildtool.base.store import disk
from buildtool.client import Digests, code_digest, fetch_description

REAL_TIME = time.time_ns
PATH = os.environ["PATH"]


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """A cache and a PATH for the test only, and a clock for which all files are at rest."""
    tools = tmp_path / "bin"
    tools.mkdir()
    real = tmp_path / "real"
    real.mkdir()
    for name in ("cc", "ar"):
        (real / name).write_text(f"#!/bin/sh\n# {name}\n")
        (real / name).chmod(0o755)
        (tools / name).symlink_to(real / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("time.time_ns", lambda: REAL_TIME() + 10 * MAPPED_NS)
    yield


class Service:
    """Answers for an invented board, and counts the requests."""

    def __init__(self, folder):
        self.asked = 0
        self.answer: dict[str, Any] = {
            "board": "mine",
            "roots": {"kernels": "/ours", "targets": "/ours"},
            "tools": {"cc": str(folder / "bin/cc"), "ar": str(folder / "bin/ar")},
            "depends": [
                {"root": "", "path": str(folder / "mine.toml")},
                {"root": "targets", "path": "boards/base.toml"},  # the code's digest covers it
            ],
            "script": {"data": b"\x00\xff"},
            "digest": "code",
        }

    def __call__(self, request):
        self.asked += 1
        return copy.deepcopy(self.answer)


@pytest.fixture
def service(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "base"\n')
    return Service(tmp_path)


def ask(service, folder, code="code", **more):
    request = {"kind": "describe", "board": "mine.toml", "model": "net.tflite", **more}
    return fetch_description(request, str(folder), code, Digests("test"), service)


def test_another_compiler_behind_an_unchanged_script_is_asked_about_anew(service, tmp_path):
    """The compiler's version decides which linker and archiver are used."""
    behind = tmp_path / "behind"
    (tmp_path / "real/cc").write_text(f"#!/bin/sh\n. {behind}\n")
    behind.write_text("echo clang version 22.1.8\n")
    assert ask(service, tmp_path) == ask(service, tmp_path) == service.answer
    assert service.asked == 1
    behind.write_text("echo clang version 21.1.1\n")
    service.answer["board"] = "another"
    assert ask(service, tmp_path)["board"] == "another"
    assert service.asked == 2


def _overwrite(path, text):
    """Writes other content of the same size into the same file, and restores its mtime."""
    before = path.stat()
    assert before.st_size == len(text)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _add_file(folder, new):
    """Makes a new file in a folder and restores the folder's mtime, as `tar` does when it unpacks."""
    before = folder.stat()
    new.write_text("")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "board": lambda f: (f / "mine.toml").write_text('extends = "bass"\n'),
    "compiler behind its link": lambda f: (f / "real/cc").write_text("#!/bin/sh\n# CC\n"),
    "link": lambda f: ((f / "bin/cc").unlink(), (f / "bin/cc").symlink_to(f / "real/ar")),
    "program that was not there": lambda f: (f / "bin/clang-30").write_text(""),
    "archiver": lambda f: (f / "real/ar").unlink(),
    "library": lambda f: (f / "library/one.c").write_text("int i;"),
    "file of the library": lambda f: (f / "library/new.c").write_text(""),
    "plugin": lambda f: (f / "plugin/code.py").write_text("A = 2\n"),
    "data of the plugin": lambda f: (f / "plugin/script.ld.in").write_text("MEMORY {}\n"),
    "compiler of the same size and time": lambda f: _overwrite(f / "real/cc", "#!/bin/sh\n# xx\n"),
    "folder whose time was set back": lambda f: _add_file(f / "bin", f / "bin/clang-30"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_it_was_made_from_is_asked_anew(change, service, tmp_path):
    for name, file in (("library", "one.c"), ("plugin", "code.py")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("")
        service.answer["roots"][name] = str(tmp_path / name)
    ask(service, tmp_path)
    ask(service, tmp_path)
    assert service.asked == 1
    CHANGES[change](tmp_path)
    service.answer["board"] = "another"
    assert ask(service, tmp_path)["board"] == "another"
    assert service.asked == 2


def test_questions_that_differ_do_not_share_an_answer(service, tmp_path, monkeypatch):
    ask(service, tmp_path)
    ask(service, tmp_path, toolchain="gcc")
    ask(service, tmp_path, name="wake")
    assert service.asked == 3
    service.answer["digest"] = "other code"
    ask(service, tmp_path, code="other code")
    assert service.asked == 4
    (tmp_path / "net.tflite").write_bytes(b"it is there now: the model is not a name of the zoo")
    service.answer["digest"] = "code"
    ask(service, tmp_path)
    assert service.asked == 5
    (tmp_path / "net.tflite").write_bytes(b"what it holds has no effect")
    ask(service, tmp_path)
    assert service.asked == 5
    monkeypatch.setenv("BUILDTOOL_CLANG", "mine")
    ask(service, tmp_path)
    assert service.asked == 6

    monkeypatch.setattr("buildtool.client.descriptions.home", lambda: "/another/checkout")
    ask(service, tmp_path)
    assert service.asked == 7  # the answer has the place of the kernels, which the digest leaves out


def test_an_answer_of_other_code_or_about_what_changed_just_now_is_not_kept(service, tmp_path, monkeypatch):
    """The sources changed between request and answer. A file that has just changed may change again."""
    for _ in range(2):
        ask(service, tmp_path, code="older")
    assert service.asked == 2
    monkeypatch.setattr("time.time_ns", REAL_TIME)
    (tmp_path / "mine.toml").write_text("new")
    for _ in range(2):
        ask(service, tmp_path)
    assert service.asked == 4


def test_a_bad_entry_is_a_missing_one(service, tmp_path):
    ask(service, tmp_path)
    (entry,) = (tmp_path / "cache/buildtool/memo/described").glob("*/*")
    whole = entry.read_bytes()
    bad = [whole[:-1], b"", whole[:60] + b"x" + whole[61:]]
    for number, data in enumerate(bad):
        entry.write_bytes(data)
        assert ask(service, tmp_path) == service.answer
        assert service.asked == 2 + number
        assert entry.read_bytes() == whole
    for content in (b"\xc1", b"\x93\x01\x80\xc4\x00", b"\x93\x01\x01\x01", b"\x90" * 900):
        disk.keep(
            "described", entry.parent.name + entry.name, content
        )  # an intact entry with foreign content
        assert ask(service, tmp_path) == service.answer
    assert service.asked == 8


def test_the_services_own_answer_comes_back_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", PATH)
    requests = []

    def service(request):
        requests.append(request)
        return handle({**request})

    request = {"kind": "describe", "board": "host"}
    answers = [
        fetch_description(request, str(tmp_path), code_digest(), Digests("test"), service) for _ in "12"
    ]
    assert msgpack.packb(answers[0]) == msgpack.packb(answers[1])
    assert requests == [request]
