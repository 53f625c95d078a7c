"""The client: what it imports, and how it and its service live and die."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from paths import ROOT

from buildtool import api as service
from buildtool.base.errors import ToolError, UsageError
from buildtool.client import Client


@pytest.fixture(scope="module")
def client():
    with Client(cwd=str(ROOT)) as made:
        yield made


def test_answers_are_those_of_the_service_in_process(client):
    request = {"kind": "boards"}
    assert client.request(request) == service.handle(request)


def test_errors_arrive_as_they_were_raised_and_the_service_goes_on(client):
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
    kinds = ["boards", "ops"] * 6
    expected = {kind: client.request({"kind": kind}) for kind in set(kinds)}
    pid = client._child.pid
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda kind: client.request({"kind": kind}), kinds))
    assert answers == [expected[kind] for kind in kinds]
    assert client._child.pid == pid


def test_a_service_that_died_is_an_error_once():
    with Client() as client:
        client.request({"kind": "boards"})
        client._child.kill()
        client._child.wait()
        with pytest.raises(ToolError):
            client.request({"kind": "boards"})
        assert "boards" in client.request({"kind": "boards"})


def test_closing_ends_the_child():
    client = Client()
    client.request({"kind": "boards"})
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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    pid = int(done.stdout)
    for _ in range(6000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail(f"the service (pid {pid}) is still there")


def test_modules_in_the_working_folder_do_not_shadow_pythons(tmp_path):
    for name in ("numpy", "json", "struct", "buildtool"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    with Client(cwd=str(tmp_path)) as client:
        assert "boards" in client.request({"kind": "boards"})


def test_paths_are_relative_to_the_given_folder(tmp_path):
    (tmp_path / "net.tflite").write_bytes(b"not a model")
    with Client(cwd=str(tmp_path)) as client, pytest.raises(Exception, match=r"net\.tflite") as caught:
        client.request({"kind": "plan", "model": "net.tflite", "board": "host"})
    assert caught.value.code == "MODEL"


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_regular_file_is_not_read(kind, client, tmp_path):
    path = tmp_path / "net.tflite"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    for request in (
        {"kind": "plan", "model": str(path), "board": "host"},
        {"kind": "sizes", "elf": str(path), "board": "host"},
    ):
        with pytest.raises(UsageError, match="it is not a regular file") as caught:
            client.request(request)
        assert caught.value.path == str(path)
