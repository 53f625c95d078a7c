"""One build at a time in a folder: which builds wait, and which count as killed."""

import signal
import subprocess
import sys
import time

import pytest

from buildtool.client import build_lock

HOLDS = """
import os, sys
from buildtool.client import build_lock
held = build_lock.take(sys.argv[1], lambda pid: print("waits for", pid, flush=True))
print("has it", len(held.cut_off), flush=True)
sys.stdin.read()
held.end()
"""


def start_holder(folder, said="has it 0\n"):
    """Starts a process that takes the lock and holds it until its input is closed."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == said
    return process


def end(process):
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


@pytest.mark.slow
def test_the_second_waits_until_the_first_has_ended(tmp_path):
    first = start_holder(tmp_path)
    second = start_holder(tmp_path, f"waits for {first.pid}\n")
    end(first)
    assert end(second) == "has it 0\n"
    assert (tmp_path / build_lock.NAME).read_bytes() == b""
    for name in "ab":  # another folder waits for nobody
        (tmp_path / name).mkdir()
    for process in [start_holder(tmp_path / name) for name in "ab"]:
        end(process)


def test_a_killed_holder_frees_the_turn_and_is_known_from_then_on(tmp_path):
    before = time.time()
    first = start_holder(tmp_path)
    assert build_lock.look(str(tmp_path)).cut_off == ()  # it runs
    first.send_signal(signal.SIGKILL)
    first.communicate()
    after = time.time()
    (span,) = build_lock.look(str(tmp_path)).cut_off  # a look changes nothing
    assert before <= span.first <= after <= span.last
    second = start_holder(tmp_path, "has it 1\n")
    end(second)
    (later,) = build_lock.look(str(tmp_path)).cut_off
    assert later.first == span.first and later.last >= span.last
    assert before - 1 not in later and after in later
    third = start_holder(tmp_path, "has it 1\n")
    third.send_signal(signal.SIGKILL)
    third.communicate()
    assert len(build_lock.look(str(tmp_path)).cut_off) == 2


def test_a_build_within_a_build_does_not_wait(tmp_path):
    held = build_lock.take(str(tmp_path), lambda pid: pytest.fail(f"waits for {pid}"))
    # through a shell, as build systems run commands
    words = ["sh", "-c", '"$0" -c "$1" "$2"; exit $?', sys.executable, HOLDS, str(tmp_path)]
    assert subprocess.check_output(words, stdin=subprocess.DEVNULL, timeout=60) == b"has it 0\n"
    held.end()
    assert (tmp_path / build_lock.NAME).read_bytes() == b""


@pytest.mark.parametrize("text", ["running 1", "cut-off x y\n", "\0\0\0\n", "running 77 - 1.0\ncut-o"])
def test_a_damaged_file_means_that_anything_may_have_been_cut_off(tmp_path, text):
    (tmp_path / build_lock.NAME).write_text(text)
    held = build_lock.take(str(tmp_path), lambda pid: pytest.fail(f"waits for {pid}"))
    assert any(1.0 in span and time.time() in span for span in held.cut_off)
    held.end()
    assert build_lock.look(str(tmp_path)).cut_off == held.cut_off


def test_many_killed_builds_are_kept_as_few_spans_that_cover_them(tmp_path):
    lines = [f"cut-off {n}.0 {n}.5\n" for n in range(100)]
    (tmp_path / build_lock.NAME).write_text("".join(lines))
    held = build_lock.take(str(tmp_path), lambda pid: None)
    assert len(held.cut_off) < 70
    assert all(any(n + 0.25 in span for span in held.cut_off) for n in range(100))
    held.end()
