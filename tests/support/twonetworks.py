"""A program with the networks `keywords` and `wake`, and the kernels that networks call."""

from pathlib import Path

from zeronet import Net

from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind

MAIN = """\
#include "keywords.h"
#include "wake.h"
#include <stdio.h>

static int8_t arena[KEYWORDS_ARENA_BYTES > WAKE_ARENA_BYTES ? KEYWORDS_ARENA_BYTES : WAKE_ARENA_BYTES]
    __attribute__((aligned(16)));

int main(void) {
    int keywords = keywords_init(arena, sizeof arena, keywords_weights);
    int wake = wake_init(arena, sizeof arena, wake_weights);
    printf("%d %d %d\\n", keywords, wake, wake_invoke());
    return 0;
}
"""


def adding() -> bytes:
    """Returns a file of a sum and a dense layer, which needs other kernels than `zeronet.small`."""
    net = Net((1, 8, 8, 3))
    return write_model(net.graph(net.dense(net.elementwise(OpKind.ADD, net.inputs[0], net.inputs[0]), 4)))


def called_kernels(folder: Path, *networks: str) -> set[str]:
    """Returns the objects of the kernels that networks call, from the lists below `folder`."""
    lists = [path for net in networks for path in folder.rglob(f"{net}_kernels.txt")]
    assert len(lists) == len(networks)
    return {name for path in lists for name in path.read_text().split()}
