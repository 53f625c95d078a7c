"""SCons tool: writes compile_commands.json with every object of an environment, only when it changes.

SCons's own `compilation_db` writes the file in every build, so that no build is ever up to date.

    env = Environment(tools=[..., "compile_commands"])
    ...every object, program and library...
    env.CompileCommands("compile_commands.json")    # last
"""

import functools
import json
import shlex
from pathlib import Path

from SCons.Action import Action
from SCons.Builder import ListEmitter
from SCons.Subst import SUBST_CMD, escape_list
from SCons.Tool import Tool, createObjBuilders

COMMANDS = {".c": "$CCCOM", ".cpp": "$CXXCOM", ".cc": "$CXXCOM", ".S": "$ASPPCOM", ".s": "$ASCOM"}


def generate(env):
    """Records every object that is made after this call, and adds the method CompileCommands."""
    Tool("recorded_targets", toolpath=[str(Path(__file__).parent)])(env)
    entries: list[tuple] = []
    static_objects, _ = createObjBuilders(env)

    def record(command, target, source, env):
        entries.append((target[0], source[0], env, command))
        return target, source

    for suffix, command in COMMANDS.items():
        if emitter := static_objects.emitter.get(suffix):
            emitters = [*env.Flatten(emitter), functools.partial(record, command)]
            static_objects.emitter[suffix] = ListEmitter(emitters)
    env.AddMethod(lambda env, target: _compile_commands(env, target, entries), "CompileCommands")


def exists(env):
    """Returns True: the tool needs no program."""
    return True


def _compile_commands(env, target, entries):
    """Returns compile_commands.json as a target whose only source is its content."""
    top = env.Dir("#").get_abspath()
    lines = _as_run(entries)
    commands = [
        {"directory": top, "file": str(source), "output": str(target), "command": lines[target]}
        for target, source, *_ in sorted(entries, key=lambda entry: str(entry[0]))
    ]
    text = json.dumps(commands, indent=2, sort_keys=True) + "\n"
    return env.OnlyAsRecorded(
        env.Command(target, env.NamedValue("the command lines", text), Action(_write, "writing $TARGET"))
    )


_LEAST_ALIKE = 4  # fewest further objects of a group for which a pattern pays


def _as_run(entries):
    """Returns the command lines that SCons passes to the shell, by target.

    SCons takes almost a millisecond to expand a command line. Objects of one environment mostly have the same
    flags: if the first two command lines differ only in file names, the others are made from the first one.
    """
    groups: dict[tuple, list[tuple]] = {}
    for target, source, env, command in entries:
        groups.setdefault((id(env), command), []).append((target, source, env, command))
    lines = {}
    for first, *others in groups.values():
        pattern = _words(*first)
        is_pattern = len(others) >= _LEAST_ALIKE and _words(*others[0]) == _rename(pattern, first, others[0])
        for entry in (first, *others):
            words = _rename(pattern, first, entry) if is_pattern else _words(*entry)
            lines[entry[0]] = " ".join(words)
    return lines


def _words(target, source, env, command):
    """Returns the words of a command line, quoted for the shell."""
    (words,) = env.subst_list(command, SUBST_CMD, [target], [source])
    return escape_list(words, shlex.quote)


def _rename(words, entry, other):
    """Returns `words` with the target and source of `entry` replaced by those of `other`."""
    names = {shlex.quote(str(a)): shlex.quote(str(b)) for a, b in zip(entry[:2], other[:2], strict=True)}
    return [names.get(word, word) for word in words]


def _write(target, source, env):
    Path(str(target[0])).write_text(source[0].read(), encoding="utf-8")
