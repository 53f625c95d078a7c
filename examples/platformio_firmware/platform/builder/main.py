"""Compiler, flags, start-up code and linker script of a board, from the answer of `buildtool describe`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
python = env.GetProjectOption("custom_buildtool_python", os.environ.get("BUILDTOOL_PYTHON", sys.executable))
work = Path(env.subst("$BUILD_DIR"), "board")
board = env.GetProjectOption("custom_buildtool_board")
words = ["-P", "-m", "buildtool", "describe", "--board", board, "--out", str(work), "--json"]
asked = subprocess.run([python, *words], cwd=env.subst("$PROJECT_DIR"), stdout=subprocess.PIPE, text=True)
if asked.returncode:
    env.Exit(1)
answer = json.loads(asked.stdout)
tools = answer["tools"]


def path(place):
    """A file or folder of the answer."""
    return str(Path(answer["roots"].get(place["root"], ""), place["path"]))


env.Replace(
    CC=tools["cc"],
    LINK=tools["cc"],
    AR=tools["ar"],
    ARFLAGS=tools["arflags"],
    RANLIBCOM="",
    PROGSUFFIX=".elf",
    SIZETOOL=None,
)
env.Append(
    CCFLAGS=tools["cflags"],
    ASPPFLAGS=tools["cflags"],
    LINKFLAGS=[*tools["cflags"], *tools["ldflags"]],
)
if answer["script"]:
    env.Append(LINKFLAGS=[answer["script"]["flag"] + str(work / answer["script"]["name"])])
startup = next(group for group in answer["groups"] if group["name"] == "startup")
env.Append(CPPPATH=[path(place) for place in startup["includes"]])
for source in startup["sources"]:
    target = str(work / source["object"])
    env.Append(PIOBUILDFILES=[env.Object(env.fs.File(target), env.fs.File(path(source["file"])))])
env.Default(env.BuildProgram())
