"""SCons tool: a target is believed where SCons's record is about it, and one build runs at a time.

SCons writes its record (.sconsign) when it ends, and compares a target's sources with it, never the target
itself. After a build that was killed, a file may be another model's although all its sources are those of
the record. So:

    env.OnlyAsRecorded(nodes)       # made anew where they are not the files that were recorded
    env.DecideByContent(programs)   # sources of its targets are read, whatever their times say
    env.NamedValue("the script", text)  # a value that can be told from others in an explanation

The first also holds for every target of the environment that was written while a build ran that was
killed, and for what was made from such a file. A second build in the same folder waits for the first
one's end. Load the tool once more after a Decider of your own.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import sys
from pathlib import Path

import SCons.Node
import SCons.SConsign
from SCons.Node.FS import File
from SCons.Util import hash_file_signature
from SCons.Util.hashes import get_current_hash_algorithm_used

from buildtool.client import Digests, is_hashed_always, turns

_turns: dict[str, turns.Turn] = {}
_seen: dict[str, Digests] = {}  # by top folder: digests of files, kept until the next build
_others: set[SCons.Node.Node] = set()  # targets whose files are not those that were recorded


def generate(env):
    """Takes the turn in the top folder, and adds the methods OnlyAsRecorded and DecideByContent."""
    top = env.Dir("#").abspath
    if top not in _turns:
        if any(env.GetOption(option) for option in ("help", "no_exec", "question")):
            _turns[top] = turns.look(top)  # what writes nothing waits for nobody
        else:
            _turns[top] = turns.take(top, _say_that_it_waits)
            _end_with_the_record(_turns[top])
    turn = _turns[top]
    if top not in _seen:
        _seen[top] = Digests(f"build in {top}")
        atexit.register(_seen[top].save)
    env["FILES_SEEN"] = _seen[top]
    env.AddMethod(only_as_recorded, "OnlyAsRecorded")
    env.AddMethod(decide_by_content, "DecideByContent")
    env.AddMethod(named_value, "NamedValue")
    if not hasattr(env.decide_source, "doubts"):
        env.decide_source = _with_doubt(env.decide_source, turn)
        env.decide_target = _with_doubt(env.decide_target, turn)


def exists(env):
    """Always there."""
    return True


def only_as_recorded(env, nodes):
    """Makes `nodes` anew where the files are not those that SCons recorded when it made them."""
    check = env.Value("the file itself")  # as --debug=explain calls it
    check.Decider(_is_another)
    env.Depends(nodes, check)
    return nodes


def decide_by_content(env, programs=()):
    """What the environment's targets are made from counts by its content, old files too.

    SCons takes a file that is older than two days for unchanged where its time is, which is the case
    for files from an archive. A file is read where it may have changed since an earlier build read it
    (buildtool.base.digests). `programs`, the paths of compilers, are left to SCons: they are large.
    """
    if is_hashed_always():
        env.SetOption("max_drift", -1)  # SCons reads old files, too, those that no network is made from
    seen, how = env["FILES_SEEN"], get_current_hash_algorithm_used()
    settled: dict[str, str] = {}  # signatures by path, of this build

    def decided(dependency, target, prev_ni, repo_node=None):
        if isinstance(dependency, File) and not dependency.has_builder():
            info, path = dependency.get_ninfo(), dependency.rfile().get_abspath()
            if getattr(info, "csig", None) != settled.get(path, "") and path not in programs:
                with contextlib.suppress(OSError):
                    info.csig = settled[path] = seen.digest(path, hash_file_signature, how)
        return dependency.changed_content(target, prev_ni, repo_node) or _is_of_others(dependency, target)

    env.Decider(decided)


def named_value(env, name, content):
    """A value node of `content` that --debug=explain calls by a name of one line."""
    digest = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:16]
    node = env.Value(f"{name}, of digest {digest}")
    node.write(content)
    return node


# ---- what is believed ----------------------------------------------------------------------------


def _is_another(dependency, target, prev_ni, repo_node=None):
    """Whether the target's file, if there is one, is not the one that the record is about."""
    path = (repo_node or target).get_abspath()
    if not Path(path).exists() or _is_recorded(target, path):
        return False
    _others.add(target)  # what was made from it may have been made from this file
    return True


def _is_of_others(dependency, target):
    """Whether the target may have been made from another file than the one that was recorded.

    What this build has made was not: SCons asks again, and would not look for the headers of a source
    that it takes for out of date.
    """
    if dependency not in _others or target.get_state() >= SCons.Node.up_to_date:
        return False
    _others.add(target)
    return True


def _is_recorded(target, path):
    """Whether the file at `path` is the one that the target's record is about.

    Its content decides: a time can be set, and two changes within one tick of a clock have the same.
    """
    if target.get_state() >= SCons.Node.up_to_date:
        return True  # SCons asks again about what this build has made
    try:
        recorded = target.get_stored_info().ninfo
    except AttributeError:
        return True  # of a configure check, about which SCons decides otherwise
    try:
        if Path(path).stat().st_size != recorded.size:
            return False
        (seen, *_), how = _seen.values(), get_current_hash_algorithm_used()
        return seen.digest(path, hash_file_signature, how) == recorded.csig
    except (AttributeError, OSError):
        return False


def _with_doubt(decide, turn):
    """A decider that does not believe what was written while a build ran that was killed."""

    def decided(dependency, target, prev_ni, repo_node=None):
        if decide(dependency, target, prev_ni, repo_node) or _is_of_others(dependency, target):
            return True
        if not turn.cut_off or not isinstance(target, File):
            return False
        try:
            written = Path(target.get_abspath()).stat().st_mtime
        except OSError:
            return False
        is_doubtful = any(written in span for span in turn.cut_off)
        return is_doubtful and _is_another(dependency, target, prev_ni, repo_node)

    decided.doubts = True  # type: ignore[attr-defined]
    return decided


# ---- one build at a time -------------------------------------------------------------------------


def _say_that_it_waits(pid):
    which = f"process {pid}" if pid else "another process"
    sys.stderr.write(f"scons: waiting for {which}, which builds in the same folder\n")
    sys.stderr.flush()


def _end_with_the_record(turn):
    """Ends the turn, unless the process ends while SCons writes its record: the build was cut off then."""
    written = [True]
    write = SCons.SConsign.write

    def watched():
        written[0] = False
        write()
        written[0] = True

    SCons.SConsign.write = watched
    atexit.register(lambda: turn.end() if written[0] else None)
