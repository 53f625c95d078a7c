"""SCons tool: compile_commands.json of every object of an environment, written only when it changed.

SCons's own `compilation_db` writes the file in every build, so that no build is ever up to date.

    env = Environment(tools=[..., "compile_commands"])
    ...every object, program and library...
    env.CompileCommands("compile_commands.json")    # last
"""

import json
import shlex
from pathlib import Path

from SCons.Action import Action
from SCons.Builder import ListEmitter
from SCons.Subst import SUBST_CMD, escape_list
from SCons.Tool import Tool, createObjBuilders

COMMANDS = {".c": "$CCCOM", ".cpp": "$CXXCOM", ".cc": "$CXXCOM", ".S": "$ASPPCOM", ".s": "$ASCOM"}


def generate(env):
    """Records every object made from now on, and adds the method CompileCommands."""
    Tool("recorded_targets", toolpath=[str(Path(__file__).parent)])(env)
    entries: list[tuple] = []
    static_objects, _ = createObjBuilders(env)
    for suffix, command in COMMANDS.items():
        emitter = static_objects.emitter.get(suffix)
        if emitter:
            recorder = _recorder(entries, command)
            static_objects.emitter[suffix] = ListEmitter([*env.Flatten(emitter), recorder])
    env.AddMethod(lambda env, target: _compile_commands(env, target, entries), "CompileCommands")


def exists(env):
    """Always there."""
    return True


def _recorder(entries, command):
    def record(target, source, env):
        entries.append((target[0], source[0], env, command))
        return target, source

    return record


def _compile_commands(env, target, entries):
    """The file as a target whose only source is its content."""
    top = env.Dir("#").get_abspath()
    commands = [
        {
            "directory": top,
            "file": str(source),
            "output": str(target),
            "command": _as_run(command, target, source, entry_env),
        }
        for target, source, entry_env, command in sorted(entries, key=lambda entry: str(entry[0]))
    ]
    text = json.dumps(commands, indent=2, sort_keys=True) + "\n"
    return env.OnlyAsRecorded(env.Command(target, env.Value(text), Action(_write, "writing $TARGET")))


def _as_run(command, target, source, env):
    """The command line as SCons gives it to the shell."""
    (words,) = env.subst_list(command, SUBST_CMD, [target], [source])
    return " ".join(escape_list(words, shlex.quote))


def _write(target, source, env):
    Path(str(target[0])).write_text(source[0].read(), encoding="utf-8")
