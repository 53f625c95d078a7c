"""The client, its child process, and how both end."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from daemons import eventually, is_running
from paths import ROOT

from buildtool import api as service
from buildtool.base.errors import ModelError, ToolError, UsageError
from buildtool.client import Client


@pytest.fixture(scope="module")
def client():
    with Client(cwd=str(ROOT)) as started:
        yield started


@pytest.mark.slow
def test_answers_and_errors_are_those_of_the_service_in_process(client):
    boards = {"kind": "boards"}
    assert client.request(boards) == service.handle(boards)
    request = {"kind": "plan", "model": "no_such.tflite", "board": "host"}
    with pytest.raises(UsageError) as here:
        service.handle(request)
    with pytest.raises(UsageError) as there:
        client.request(request)
    assert str(there.value).startswith("no_such.tflite: error: cannot read the model")
    assert "must be absolute" in str(here.value)
    assert "boards" in client.request({"kind": "boards"})


@pytest.mark.slow
def test_threads_share_one_service(client):
    boards = ["host", "cortex-m4"] * 6
    expected = {board: client.request({"kind": "describe", "board": board}) for board in set(boards)}
    pid = client._child.pid
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda board: client.request({"kind": "describe", "board": board}), boards))
    assert answers == [expected[board] for board in boards]
    assert client._child.pid == pid


@pytest.mark.slow
def test_a_service_that_died_is_an_error_once_and_closing_ends_it():
    client = Client()
    client.request({"kind": "boards"})
    client._child.kill()
    client._child.wait()
    with pytest.raises(ToolError):
        client.request({"kind": "boards"})
    assert "boards" in client.request({"kind": "boards"})
    child = client._child
    client.close()
    assert child.returncode == 0
    client.close()  # again: nothing to do


@pytest.mark.slow
def test_a_client_that_dies_takes_its_service_along():
    code = """
from buildtool.client import Client
client = Client()
client.request({"kind": "boards"})
print(client._child.pid)
"""
    pid = int(subprocess.check_output([sys.executable, "-c", code], timeout=600))
    eventually(lambda: not is_running(pid), 300)


@pytest.mark.slow
def test_modules_in_the_working_folder_do_not_shadow_pythons(tmp_path):
    for name in ("numpy", "json", "struct", "buildtool"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    (tmp_path / "net.tflite").write_bytes(b"not a model")
    with Client(cwd=str(tmp_path)) as client:
        assert "boards" in client.request({"kind": "boards"})
        with pytest.raises(ModelError, match=r"net\.tflite"):  # paths are relative to that folder
            client.request({"kind": "plan", "model": "net.tflite", "board": "host"})


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_regular_file_is_not_read(kind, client, tmp_path):
    path = tmp_path / "net.tflite"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    for request in (
        {"kind": "plan", "model": str(path), "board": "host"},
        {"kind": "sizes", "elf": str(path), "board": "host"},
    ):
        with pytest.raises(UsageError, match=r"it is not a regular file|but a folder") as caught:
            client.request(request)
        assert caught.value.path == str(path)
