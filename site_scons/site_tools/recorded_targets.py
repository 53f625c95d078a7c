"""SCons tool: rebuilds targets that differ from SCons's record, and runs one build at a time.

SCons writes its record (.sconsign) when it ends. The next build compares a target's sources with the record,
but never the target itself. After a killed build, a file may belong to another model although all its sources
are those of the record. So this tool adds:

    env.OnlyAsRecorded(nodes)           # rebuilds the files that differ from the recorded ones
    env.DecideByContent(programs)       # reads the sources of the environment's targets, whatever their times
    env.NamedValue("the script", text)  # a value with a name for --debug=explain

OnlyAsRecorded also applies to every target of the environment that was written during a killed build, and to
all targets made from such a file. A second build in the same folder waits until the first one ends. If you
set a Decider of your own, load the tool again after it.
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

from buildtool.client import Digests, build_lock, is_hashed_always

_locks: dict[str, build_lock.BuildLock] = {}
_seen: dict[str, Digests] = {}  # by top folder: digests of files, saved for the next build
_others: set[SCons.Node.Node] = set()  # targets whose files differ from the recorded ones


def generate(env):
    """Waits for the top folder's lock, and adds the methods OnlyAsRecorded and DecideByContent."""
    top = env.Dir("#").abspath
    if top not in _locks:
        if any(env.GetOption(option) for option in ("help", "no_exec", "question")):
            _locks[top] = build_lock.look(top)  # a build that writes nothing does not wait
        else:
            _locks[top] = build_lock.take(top, _report_waiting)
            _end_with_the_record(_locks[top])
    held = _locks[top]
    if top not in _seen:
        _seen[top] = Digests(f"build in {top}")
        atexit.register(_seen[top].save)
    env["FILES_SEEN"] = _seen[top]
    env.AddMethod(only_as_recorded, "OnlyAsRecorded")
    env.AddMethod(decide_by_content, "DecideByContent")
    env.AddMethod(named_value, "NamedValue")
    if not hasattr(env.decide_source, "doubts"):
        env.decide_source = _with_doubt(env.decide_source, held)
        env.decide_target = _with_doubt(env.decide_target, held)


def exists(env):
    """Returns True: the tool needs no program."""
    return True


def only_as_recorded(env, nodes):
    """Rebuilds those `nodes` whose files differ from the ones that SCons recorded when it built them."""
    check = env.Value("the file itself")  # its name in --debug=explain
    check.Decider(_is_another)
    env.Depends(nodes, check)
    return nodes


def decide_by_content(env, programs=()):
    """Makes SCons decide by content whether sources have changed, even if they are old.

    SCons assumes that a file older than two days is unchanged if its time is the same, which is common for
    files from an archive. Here a file is read if it may have changed since an earlier build read it
    (buildtool.base.digests). `programs`, the paths of compilers, are left to SCons, because they are large.
    """
    if is_hashed_always():
        env.SetOption("max_drift", -1)  # SCons reads old files, too, also those of no network
    seen, how = env["FILES_SEEN"], get_current_hash_algorithm_used()
    signatures: dict[str, str] = {}  # by path, computed in this build

    def decide(dependency, target, prev_ni, repo_node=None):
        if isinstance(dependency, File) and not dependency.has_builder():
            info, path = dependency.get_ninfo(), dependency.rfile().get_abspath()
            if getattr(info, "csig", None) != signatures.get(path, "") and path not in programs:
                with contextlib.suppress(OSError):
                    info.csig = signatures[path] = seen.digest(path, hash_file_signature, how)
        return dependency.changed_content(target, prev_ni, repo_node) or _is_of_others(dependency, target)

    env.Decider(decide)


def named_value(env, name, content):
    """Returns a value node for `content`, which --debug=explain shows as one line."""
    digest = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:16]
    node = env.Value(f"{name}, of digest {digest}")
    node.write(content)
    return node


# ---- targets that differ from the record ---------------------------------------------------------


def _is_another(dependency, target, prev_ni, repo_node=None):
    """A decider (with SCons's arguments) that compares the target itself with the record.

    Returns whether the target's file exists and differs from the recorded one.
    """
    path = (repo_node or target).get_abspath()
    if not Path(path).exists() or _is_recorded(target, path):
        return False
    _others.add(target)  # its dependents may have been built from this file
    return True


def _is_of_others(dependency, target):
    """Whether the target may have been built from a file that differs from the recorded one.

    False for targets that this build has built. SCons calls the decider again for them; if it returned True,
    SCons would not look for the headers of such a source.
    """
    if dependency not in _others or target.get_state() >= SCons.Node.up_to_date:
        return False
    _others.add(target)
    return True


def _is_recorded(target, path):
    """Whether the file at `path` is the one in the target's record.

    Its content is compared, because a file's time can be set, and is the same for two changes within one tick
    of the clock.
    """
    if target.get_state() >= SCons.Node.up_to_date:
        return True  # this build has built it: SCons calls the decider again
    try:
        recorded = target.get_stored_info().ninfo
    except AttributeError:
        return True  # a configure check, for which SCons has its own rules
    try:
        if Path(path).stat().st_size != recorded.size:
            return False
        seen, how = target.get_env()["FILES_SEEN"], get_current_hash_algorithm_used()
        return seen.digest(path, hash_file_signature, how) == recorded.csig
    except (AttributeError, OSError):
        return False


def _with_doubt(decide, held):
    """Returns a decider that works as `decide`, but does not trust files written during a killed build.

    `held` is the lock of this build, which knows when builds were killed.
    """

    def decide_with_doubt(dependency, target, prev_ni, repo_node=None):
        if decide(dependency, target, prev_ni, repo_node) or _is_of_others(dependency, target):
            return True
        if not held.cut_off or not isinstance(target, File):
            return False
        try:
            written = Path(target.get_abspath()).stat().st_mtime
        except OSError:
            return False
        is_doubtful = any(written in span for span in held.cut_off)
        return is_doubtful and _is_another(dependency, target, prev_ni, repo_node)

    decide_with_doubt.doubts = True  # type: ignore[attr-defined]
    return decide_with_doubt


# ---- one build at a time -------------------------------------------------------------------------


def _report_waiting(pid):
    which = f"process {pid}" if pid else "another process"
    sys.stderr.write(f"scons: waiting for {which}, which builds in the same folder\n")
    sys.stderr.flush()


def _end_with_the_record(held):
    """Releases the lock `held` at exit.

    If SCons is still writing its record then, the lock is not released: this build counts as killed.
    """
    written = [True]
    write = SCons.SConsign.write

    def write_and_note():
        written[0] = False
        write()
        written[0] = True

    SCons.SConsign.write = write_and_note
    atexit.register(lambda: held.end() if written[0] else None)
