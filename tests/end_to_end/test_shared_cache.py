"""Real servers of a shared cache, and the build systems that use it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cmakeprojects import CMakeProject, cmake_dir
from daemons import eventually
from needs import needs_tool
from programs import scons, with_tools
from sharedcache import Loopback
from zeronet import small

from buildtool.api import open_session
from buildtool.base import folders
from buildtool.base.folders import REMOTE_KEY, REMOTE_MODE, REMOTE_PASSWORD, REMOTE_URL, REMOTE_USER
from buildtool.base.store import care
from buildtool.fronts.cli import main as cli

__all__ = ["cmake_dir"]  # a fixture
PASSWORD = "the password of ci"
# Everybody reads; whoever has the password writes, at most 1 MB for an entry.
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}
http {{
    access_log {folder}/access.log; client_max_body_size 1m;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{
        listen 127.0.0.1:{port}{tls};
        root {folder}/root;
        location /buildtool/ {{
            dav_methods PUT; create_full_put_path on;
            limit_except GET {{ auth_basic cache; auth_basic_user_file {folder}/users; }}
        }}
    }}
}}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(buildtool 0.1 CONFIG REQUIRED)
buildtool_add_network(net MODEL net.tflite BOARD host)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


@contextmanager
def served(port: int, *command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: listens(port))
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(folder: Path, tls: str = "") -> Iterator[str]:
    program, port = needs_tool("nginx"), free_port()
    (folder / "root").mkdir()
    (folder / "users").write_text(f"ci:{{PLAIN}}{PASSWORD}\n")
    user = "user root;" if os.geteuid() == 0 else ""  # else its worker could not write here
    (folder / "conf").write_text(NGINX.format(folder=folder, port=port, user=user, tls=tls))
    with served(
        port, program, "-p", str(folder), "-c", str(folder / "conf"), "-e", str(folder / "start.log")
    ):
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/buildtool"
    assert PASSWORD not in (folder / "access.log").read_text() + (folder / "error.log").read_text()


@contextmanager
def certified(folder: Path) -> Iterator[list[str]]:
    """Files with a key and with a certificate of its own for this machine, which this process trusts."""
    own = [f"{folder}/key.pem", f"{folder}/certificate.pem"]
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-keyout", own[0]]
    words += ["-out", own[1], "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([needs_tool("openssl"), *words], check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", own[1])
        yield own


@contextmanager
def nginx_with_tls(folder: Path) -> Iterator[str]:
    with (
        certified(folder) as (key, certificate),
        nginx(folder, f" ssl; ssl_certificate {certificate}; ssl_certificate_key {key}") as url,
    ):
        yield url


@contextmanager
def redis(folder: Path, tls: str = "") -> Iterator[str]:
    program, port = needs_tool("redis-server"), free_port()
    # Everybody but `reader` needs the password, and `reader` may only read.
    rules = f'user default off\nuser ci on ">{PASSWORD}" allkeys allcommands\n'
    rules += "user reader on nopass allkeys +@read +select\n"
    where = f"port 0\ntls-port {port}\n{tls}" if tls else f"port {port}\n"
    (folder / "conf").write_text(f'{where}bind 127.0.0.1\nsave ""\ndir {folder}\n{rules}')
    with served(port, program, str(folder / "conf")):
        yield f"redis{'s' if tls else ''}://127.0.0.1:{port}/2"


@contextmanager
def redis_with_tls(folder: Path) -> Iterator[str]:
    with certified(folder) as (key, certificate):
        files = f"tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {certificate}\n"
        with redis(folder, f"{files}tls-auth-clients no\n") as url:
            yield url


@pytest.mark.slow
@pytest.mark.parametrize("start", [nginx, nginx_with_tls, redis, redis_with_tls])
def test_ci_fills_a_real_server_and_people_read_it(
    start: Callable[[Path], Iterator[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "net.tflite").write_bytes(small())
    (tmp_path / "server").mkdir()
    monkeypatch.setenv(folders.MODE, "on")
    for name in (REMOTE_URL, REMOTE_USER, REMOTE_PASSWORD, REMOTE_KEY, REMOTE_MODE):
        monkeypatch.setenv(name, "")

    def front(folder: str, **variables: str) -> tuple[str, str, int]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv(folders.CACHE, str(tmp_path / folder))
        session = open_session()
        words = ["front", str(tmp_path / "net.tflite"), "--board", "cortex-m4", "--json"]
        assert cli.run(words, session) == 0
        assert session.keeper is not None
        session.keeper.share()
        said = capsys.readouterr()
        return said.out, said.err, care.stats()["places"]["remote"]["hits"]

    cold, _, _ = front("none")
    with start(tmp_path / "server") as url:
        reader = {REMOTE_USER: "reader"} if url.startswith("redis") else {}
        signed = {REMOTE_URL: url, REMOTE_KEY: "the key of the team", **reader}
        out, err, _ = front("stranger", **signed, **{REMOTE_MODE: "write"})
        assert out == cold and err.count("\n") == 1 and "sends nothing more to it" in err
        assert front("ci", **{REMOTE_USER: "ci", REMOTE_PASSWORD: PASSWORD}) == (cold, "", 0)
        people = {REMOTE_USER: "", **reader, REMOTE_PASSWORD: "", REMOTE_MODE: "read"}
        out, err, hits = front("people", **people)
        assert (out, err) == (cold, "") and hits
    out, err, hits = front("later")  # the server has ended
    assert (out, hits) == (cold, 0) and err.count("\n") == 1


@pytest.mark.slow
def test_a_signed_cache_has_the_objects_of_scons_and_cmake(
    tmp_path: Path,
    cmake_dir: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In folders of other names. The archives are those that a compiler makes."""
    monkeypatch.setenv(REMOTE_KEY, "the key of the team")
    made: dict[str, list[bytes]] = {}
    with Loopback() as server:
        for name, mode in (("ci", "write"), ("people", "read")):
            folder, shared = with_tools(tmp_path / name), {"CACHE_URL": server.url, "CACHE_MODE": mode}
            variables = {f"BUILDTOOL_{setting}": text for setting, text in shared.items()}
            (folder / "net.tflite").write_bytes(small())
            library = "build/cortex-m4/net/libnet_reserving.a"
            caches = [str(tmp_path / f"{name}-{system}-cache") for system in ("scons", "cmake")]
            kept = {"BUILDTOOL_CACHE": "on", folders.CACHE: caches[0]}
            scons(folder, "board=cortex-m4", "model=net.tflite", library, **kept, **variables)
            text = CMAKE.replace("BOARD host", "BOARD cortex-m4")
            project = CMakeProject(
                tmp_path / f"{name}-cmake/project",
                cmake_dir,
                text,
                environment={folders.CACHE: caches[1]},
                CMAKE_TOOLCHAIN_FILE=f"{cmake_dir}/boards/cortex-m4.cmake",
                **variables,
            )
            (project.folder / "net.tflite").write_bytes(small())
            project.configure()
            project.build()
            kernels = project.build_folder / "libbuildtool_kernels_cortex_m4.a"
            made[name] = [(folder / library).read_bytes(), kernels.read_bytes()]
            for cache in caches:
                monkeypatch.setenv(folders.CACHE, cache)
                counts = care.stats()["levels"]["objects"]
                assert counts["hits" if name == "people" else "misses"] > 2
                assert name == "ci" or counts["misses"] == 0
    assert made["ci"] == made["people"]
