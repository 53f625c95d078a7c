"""The same name gives the same bytes: in one process, in another, under another hash seed."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT
from zoo_networks import file

from buildtool import zoo

PROGRAM = """
import hashlib, sys
from buildtool import zoo
for name in sys.argv[1:]:
    print(hashlib.sha256(zoo.build(name)).hexdigest())
"""


def digests(names, hash_seed, threads):
    environment = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "OPENBLAS_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", PROGRAM, *names]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.split()


# Every kind of layer. In the last one matrix products are large enough to use several threads.
NAMES = (
    *("autoencoder", "ds_cnn", "resnet8"),
    *("mobilenetv3_small:size=32,classes=10", "mobilenetv2:size=64,alpha=0.35,classes=10"),
)


@pytest.mark.slow
def test_bytes_do_not_depend_on_hash_seed_or_threads():
    first = digests(NAMES, "1", "1")
    assert len(set(first)) == len(NAMES)
    assert digests(NAMES, "4242", "2") == first
    assert hashlib.sha256(zoo.build(NAMES[0])).hexdigest() == first[0]
    assert zoo.build(NAMES[0]) == file(NAMES[0])


def test_another_seed_gives_other_weights_in_the_same_topology():
    a, b = zoo.graph("ds_cnn"), zoo.graph("ds_cnn:seed=1")
    assert [(t.name, t.shape, t.dtype) for t in a.tensors] == [(t.name, t.shape, t.dtype) for t in b.tensors]
    assert [(op.kind, op.inputs, op.outputs, op.attrs) for op in a.ops] == [
        (op.kind, op.inputs, op.outputs, op.attrs) for op in b.ops
    ]
    for x, y in zip(a.tensors, b.tensors, strict=True):
        assert x.data is None or not np.array_equal(x.data, y.data)
