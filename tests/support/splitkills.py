"""Ends the command `split` by signals at every stage, and starts it again until it is done.

`python splitkills.py FOLDER [MOMENT]...` runs it in FOLDER/whole to its end. Then it runs it in FOLDER/ended:
once for each moment (of those that are named, if any are), ended there by one signal, and last to its end.
Each run is a child process; its exit status and its last line of standard error are printed. whole.json has
the standard output of the first one. A tiny network with a shortcut replaces vgg16. whole.epochs and
ended.epochs have the saved epochs, in order.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import splitnets

WORDS = (
    "split vgg16 --data data.npz --board host --factors 2 --max-drop 100 --comparisons none"
    " --epochs 2 --fine-tune 2 --batch 16 --json"
)
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
SOON = 0.05  # seconds; the stage takes longer


def ends(owner, name, count=1, later=0.0):
    """Returns a function that arms a signal: this process gets it at the `count`-th call of `name`."""

    def prepare(number):
        plain, calls = getattr(owner, name), [0]

        def called(*args, **options):
            calls[0] += 1
            if calls[0] == count:
                if later:
                    threading.Timer(later, os.kill, (os.getpid(), number)).start()
                else:
                    os.kill(os.getpid(), number)
            return plain(*args, **options)

        setattr(owner, name, called)

    return prepare


def moments():
    """Returns stage -> a function that ends the process there."""
    from buildtool.split import backend, training
    from buildtool.split import run as splitting
    from buildtool.split.records import Records
    from buildtool.split.training import Batches

    def writes(name):
        return lambda number: at_write(name, number)

    return {
        "training the base": ends(Batches, "__getitem__", 6),  # in its second epoch
        "keeping an epoch": ends(training, "keep", 2),
        "keeping a network": ends(backend, "pack_model"),
        "keeping a record": ends(Records, "put"),
        "converting, at some time": ends(splitting, "int8_file", later=4 * SOON),
        "writing the tables": writes("split.json"),
    }


def at_write(name, number):
    """Arms a signal: this process gets it when a file of this name is about to be renamed."""
    plain = os.replace

    def replace(source, target, *args, **options):
        if Path(target).name == name:
            os.kill(os.getpid(), number)
        return plain(source, target, *args, **options)

    os.replace = replace  # what Path.replace calls


def child(out, disturb, said):
    """Runs the command in this process, then ends the process."""
    from buildtool.fronts.cli import main as cli
    from buildtool.split import run as splitting
    from buildtool.split import training

    plain = training.keep

    def keep(*args):
        plain(*args)
        with Path(f"{out}.epochs").open("a") as log:
            log.write(f"{args[3]} ")

    training.keep = keep
    splitting.by_name = lambda *_: splitnets.network(blocks=1, dropout=True, shortcut=True)
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.default_int_handler if one is signal.SIGINT else signal.SIG_DFL)
    for stream, path in ((1, said.with_suffix(".json")), (2, said)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.argv = ["buildtool", *WORDS.split(), "--out", out]
    disturb()
    status = 70
    try:
        cli.main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else status
    finally:
        sys.stdout.flush()
        os._exit(status)


def run(root, out, disturb):
    output = root / f"{out}.txt"
    number = os.fork()  # TensorFlow has begun no thread yet
    if number == 0:
        child(out, disturb, output)
    _, status = os.waitpid(number, 0)
    lines = output.read_text().splitlines()
    return f"{os.waitstatus_to_exitcode(status)}: {lines[-1] if lines else ''}"


def main():
    from buildtool.split import backend

    backend.prepare()
    root = Path(sys.argv[1])
    os.chdir(root)
    np.savez("data.npz", **splitnets.data().arrays())
    print("whole", "-", run(root, "whole", lambda: None), sep="|", flush=True)
    named = {name: ending for name, ending in moments().items() if name in sys.argv[2:] or not sys.argv[2:]}
    for at, (name, ending) in enumerate(named.items()):
        number = SIGNALS[at % len(SIGNALS)]
        ending_line = run(root, "ended", lambda ending=ending, number=number: ending(number))
        print(name, number.name, ending_line, sep="|", flush=True)
    print("again", "-", run(root, "ended", lambda: None), sep="|", flush=True)


if __name__ == "__main__":
    main()
