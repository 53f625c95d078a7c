"""Calls from inside an invoke are refused, a row source can end one, and the next one is exact again.

One program of networks of every form (given their inputs or asking for rows, in one step and row by row, with
state, with weights that a loader brings, in two memories) runs under sanitizers. Each of them is called back
wherever it calls back, and there everything is tried that would take its memory or its sources away.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from loaded import SLOW_WEIGHTS, load_target, twin
from nativebatch import FLAGS, Job, build, execute
from statenets import ring

from buildtool.emit.sources import emit
from buildtool.graph import reference
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.target.choice import with_arena_in
from buildtool.zoo.drawn import NetBuilder


def chain(seed: int) -> Graph:
    """Convolutions, of an image of twelve rows."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 12, 10, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(net.conv(x, 12, kernel=(3, 3), same=True), 6)
    return net.graph([net.dense(net.flatten(x), 5)])


def remembering(seed: int) -> Graph:
    """The same, and the rows that it made in the invoke before."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 12, 10, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(ring(net, x, 10), 4, kernel=(3, 3), stride=(2, 2))
    return net.graph([net.dense(net.flatten(x), 5)])


def pair(seed: int) -> Graph:
    """Two inputs, two outputs."""
    net = NetBuilder(seed)
    x, y = net.input((1, 6, 5, 4)), net.input((1, 6, 5, 4))
    z = net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(3, 3), same=True), y)
    return net.graph([net.dense(net.flatten(z), 7), net.pool(OpKind.MAX_POOL_2D, z, (2, 2), (2, 2))])


def made(name: str, graph: Graph, board: str, **options: object) -> Job:
    """A network as the job of a native program, which nobody gives inputs."""
    graph, target = rewrite(graph), load_target(board)
    if board.endswith("twin.toml"):
        target = dataclasses.replace(target, board=with_arena_in(target.board, "ram,fast"))
    plan = make_plan(graph, target, PlanOptions(**options))
    check(plan, graph, target)
    return Job(b"", graph, graph, plan, emit(graph, plan, target, name), [])


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    folder = tmp_path_factory.mktemp("boards")
    (folder / "slow.toml").write_text(SLOW_WEIGHTS)
    (folder / "twin.toml").write_text(twin(1400, 2048))
    rows = {"image": "stream", "objective": "ram"}
    found = [
        made("given", pair(1), "host"),
        made("rows", chain(2), "host", **rows),
        made("whole", chain(3), "host", image="stream"),
        made("state", remembering(4), "host", **rows),
        made("slow", chain(5), str(folder / "slow.toml"), **rows),
        made("late", chain(6), str(folder / "slow.toml"), image="stream"),
        made("twin", chain(7), str(folder / "twin.toml"), image="stream"),
    ]
    plans = {job.sources.net: job.plan for job in found}
    assert any(region.is_streamed for region in plans["rows"].regions)
    assert not plans["whole"].regions[0].is_streamed
    assert plans["state"].states and plans["slow"].loads and plans["late"].loads
    assert len(plans["twin"].arenas) == 2
    return found


HEAD = """\
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nn_image.h"
#include "nn_trace.h"

/* A network; what it does not have is NULL. */
typedef struct {
    const char *name;
    nn_status (*init)(int8_t *arena, size_t bytes, const void *image);
    nn_status (*invoke)(void);
    nn_status (*reset)(void);
    nn_status (*set_row_source)(nn_row_source *deliver, void *context);
    nn_status (*set_loader)(nn_loader loader);
    void (*set_yield)(void (*hook)(void *context), void *context);
    int8_t *(*input)(int index);
    const int8_t *(*output)(int index);
    nn_quantization (*output_quantization)(int index);
    const uint8_t *weights;
    size_t weights_bytes;
    int8_t *arena;
    size_t arena_bytes;
    const uint32_t *inputs, *outputs; /* bytes of each, 0 at the end */
    uint32_t row_bytes;
} network;

void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes) {
    (void)tensor, (void)offset, (void)data, (void)bytes;
}
"""

BODY = """\
#define CHECK(condition)                                                                           \\
    do {                                                                                           \\
        if (!(condition)) {                                                                        \\
            fprintf(stderr, "%s:%d: %s\\n", net->name, __LINE__, #condition);                       \\
            exit(1);                                                                               \\
        }                                                                                          \\
    } while (0)

static const network *net;
static int8_t own[1 << 16], expected[2][1 << 12];
static uint8_t image[1 << 16] __attribute__((aligned(16)));

static int8_t pixel(int input, uint32_t i) {
    return (int8_t)(i * 7U + 3U + 22U * (uint32_t)input);
}

/* ---- a loader that brings nothing before it is asked to --------------------------------------- */

static struct {
    void *to;
    uint32_t from, bytes;
} begun[256];
static int waiting;
static int intrude;

static void try_everything(void);

static void begin(void *context, void *to, uint32_t from, uint32_t bytes) {
    (void)context;
    memset(to, 0x5A, bytes);
    begun[waiting].to = to;
    begun[waiting].from = from;
    begun[waiting++].bytes = bytes;
}

static void wait(void *context) {
    (void)context;
    for (int i = 0; i < waiting; i++) {
        memcpy(begun[i].to, net->weights + begun[i].from, begun[i].bytes);
    }
    waiting = 0;
    if (intrude) {
        try_everything();
    }
}

static const nn_loader loader = {begin, wait, NULL}, no_loader = {NULL, NULL, NULL};

static nn_status initialise(void) {
    if (net->set_loader != NULL) {
        CHECK(net->set_loader(loader) == NN_OK);
    }
    return net->init(net->arena, net->arena_bytes, net->set_loader != NULL ? NULL : net->weights);
}

/* ---- what is called back ---------------------------------------------------------------------- */

static int32_t rows, end_at, end_with;
static int tried;

static int strange_rows(void *context, int32_t row, int8_t *data) {
    (void)context, (void)row, (void)data;
    abort();
}

/* All that would take memory or sources away from a network that is at work. */
static void try_everything(void) {
    tried++;
    CHECK(net->invoke() == NN_ERROR_BUSY);
    CHECK(net->init(net->arena, net->arena_bytes, net->weights) == NN_ERROR_BUSY);
    CHECK(net->init(own, sizeof own, net->weights) == NN_ERROR_BUSY);
    CHECK(net->init(NULL, 0, NULL) == NN_ERROR_BUSY);
    CHECK(net->init(net->arena, net->arena_bytes, image) == NN_ERROR_BUSY);
    CHECK(net->reset == NULL || net->reset() == NN_ERROR_BUSY);
    CHECK(net->set_row_source == NULL || net->set_row_source(strange_rows, NULL) == NN_ERROR_BUSY);
    CHECK(net->set_row_source == NULL || net->set_row_source(NULL, NULL) == NN_ERROR_BUSY);
    CHECK(net->set_loader == NULL || net->set_loader(no_loader) == NN_ERROR_BUSY);
}

static void hook(void *context) {
    (void)context;
    if (intrude) {
        const nn_quantization found = net->output_quantization(0); /* and it stays busy */
        try_everything();
        CHECK(found.scale > 0.0F);
    }
}

static int deliver(void *context, int32_t row, int8_t *data) {
    CHECK(context == &rows && row == rows++);
    if (intrude) {
        try_everything();
    }
    if (row == end_at) {
        memset(data, 0x77, net->row_bytes / 2);
        return end_with;
    }
    for (uint32_t i = 0; i < net->row_bytes; i++) {
        data[i] = pixel(0, (uint32_t)row * net->row_bytes + i);
    }
    return 0;
}

/* ---- runs ------------------------------------------------------------------------------------- */

static nn_status run(void) {
    rows = 0;
    memset(net->arena, 0xA5, net->arena_bytes);
    for (int i = 0; net->input != NULL && net->inputs[i] != 0; i++) {
        for (uint32_t k = 0; k < net->inputs[i]; k++) {
            net->input(i)[k] = pixel(i, k);
        }
    }
    return net->invoke();
}

static void put_outputs(int8_t *to) {
    for (int i = 0; net->outputs[i] != 0; i++) {
        memcpy(to, net->output(i), net->outputs[i]);
        to += net->outputs[i];
    }
}

/* That two invokes give what the first two gave: state is as it was at the beginning. */
static void run_twice(void) {
    int8_t found[1 << 12] = {0};
    for (int n = 0; n < 2; n++) {
        CHECK(run() == NN_OK);
        put_outputs(found);
        CHECK(memcmp(found, expected[net->reset != NULL ? n : 0], sizeof found) == 0);
    }
}

static void begin_anew(void) {
    CHECK(net->reset == NULL || net->reset() == NN_OK);
}

static void end_in_the_middle(void) {
    const int codes[] = {-1, -300, INT_MIN, INT_MAX, 256, NN_ERROR_ARENA};
    begin_anew();
    CHECK(run() == NN_OK);
    const int32_t all = rows;
    for (int32_t row = 0; row < all; row++) {
        end_at = row;
        end_with = codes[row % 6];
        begin_anew();
        if (row % 2) { /* it is reset even where it has run before */
            end_at = -1;
            CHECK(run() == NN_OK);
            end_at = row;
        }
        CHECK((int)run() == end_with);
        CHECK(rows == row + 1);
        CHECK(waiting == 0);
        end_at = -1;
        run_twice();
    }
}

static void intrude_everywhere(void) {
    intrude = 1;
    tried = 0;
    run_twice();
    CHECK(tried >= 4);
    tried = 0; /* a table that a loader brings is under way as an invoke is */
    const nn_quantization loaded = net->output_quantization(0);
    CHECK(tried == (net->set_loader != NULL));
    intrude = 0;
    CHECK(net->output_quantization(0).scale == loaded.scale && loaded.scale > 0.0F);
    begin_anew();
    run_twice();
    begin_anew();
    intrude = 1;
    if (net->set_row_source != NULL) { /* and where the invoke is ended */
        end_at = rows / 2;
        end_with = -7;
        CHECK((int)run() == -7);
        end_at = -1;
    }
    intrude = 0;
    run_twice();
}

/* After an init that fails there is nothing to run. */
static void fail(nn_status status) {
    CHECK(status != NN_OK);
    int8_t *before = malloc(net->arena_bytes);
    memset(net->arena, 0x3C, net->arena_bytes);
    memcpy(before, net->arena, net->arena_bytes);
    rows = 0;
    CHECK(net->invoke() == NN_ERROR_NOT_INITIALISED);
    CHECK(net->reset == NULL || net->reset() == NN_ERROR_NOT_INITIALISED);
    CHECK(net->output(0) == NULL);
    CHECK(rows == 0 && waiting == 0);
    CHECK(memcmp(before, net->arena, net->arena_bytes) == 0);
    free(before);
    CHECK(initialise() == NN_OK);
    run_twice();
}

static void failing_inits(void) {
    const size_t bytes = net->arena_bytes;
    fail(net->init(NULL, bytes, net->weights));
    fail(net->init(net->arena, 1, net->weights));
    fail(net->init(net->arena + 1, bytes, net->weights));
    fail(net->init(net->arena, bytes, image + 1));
    for (size_t place = 0; place < net->weights_bytes; place += place < 64 ? 1 : 97) {
        memcpy(image, net->weights, net->weights_bytes);
        image[place] ^= 4;
        fail(net->init(net->arena, bytes, image));
    }
    if (net->set_loader == NULL) {
        fail(net->init(net->arena, bytes, NULL));
        return;
    }
    CHECK(net->set_loader(no_loader) == NN_OK); /* the weights came by it alone */
    fail(NN_ERROR_NOT_INITIALISED);
    CHECK(net->set_loader(no_loader) == NN_OK);
    CHECK(net->init(net->arena, bytes, net->weights) == NN_OK); /* and now they lie in memory */
    run_twice();
    CHECK(net->set_loader(loader) == NN_OK);
    run_twice();
}

static void without_a_source(void) {
    CHECK(net->set_row_source(NULL, NULL) == NN_OK);
    CHECK(run() == NN_ERROR_NO_ROW_SOURCE);
    CHECK(rows == 0);
    CHECK(net->set_row_source(deliver, &rows) == NN_OK);
    begin_anew();
    run_twice();
}

int main(void) {
    for (net = networks; net->name != NULL; net++) {
        end_at = -1;
        CHECK(initialise() == NN_OK);
        net->set_yield(hook, NULL);
        CHECK(net->set_row_source == NULL || net->set_row_source(deliver, &rows) == NN_OK);
        memset(expected, 0, sizeof expected);
        for (int n = 0; n < 2; n++) {
            CHECK(run() == NN_OK);
            put_outputs(expected[n]);
        }
        CHECK((memcmp(expected[0], expected[1], sizeof *expected) != 0) == (net->reset != NULL));
        begin_anew();
        intrude_everywhere();
        begin_anew();
        failing_inits();
        if (net->set_row_source != NULL) {
            end_in_the_middle();
            without_a_source();
        }
        printf("%s", net->name);
        for (uint32_t i = 0; i < net->outputs[0]; i++) {
            printf(" %d", expected[0][i]);
        }
        printf("\\n");
    }
    return 0;
}
"""


def program(jobs: list[Job]) -> str:
    """The C of the program: the networks' memory, a table of them, and what is tried with each."""
    parts, table = [HEAD], []
    for job in jobs:
        net, macro = job.sources.net, job.sources.net.upper()
        second = f"{net}_second, sizeof {net}_second, " if len(job.plan.arenas) > 1 else ""
        parts.append(f'#include "{net}.h"\n{macro}_DEFINE_ARENA({net}_arena);\n')
        parts.append(f"{macro}_DEFINE_SECOND_ARENA({net}_second);\n" if second else "")
        parts.append(
            f"static nn_status init_{net}(int8_t *arena, size_t bytes, const void *image) {{\n"
            f"    return {net}_init(arena, bytes, {second}image);\n}}\n"
        )
        by_rows = job.plan.image == "stream"
        has = {"reset": job.plan.states, "set_row_source": by_rows, "set_loader": job.plan.loads}
        functions = [f"{net}_{name}" if there else "NULL" for name, there in has.items()]
        sizes = [
            "(const uint32_t[]){" + "".join(f"{macro}_{word}{i}_BYTES, " for i in range(len(tensors))) + "0}"
            for word, tensors in (("INPUT", job.graph.inputs), ("OUTPUT", job.graph.outputs))
        ]
        fields = [f'"{net}"', f"init_{net}", f"{net}_invoke", *functions, f"{net}_set_yield"]
        fields += ["NULL" if by_rows else f"{net}_input", f"{net}_output"]
        fields += [f"{net}_output_quantization", f"{net}_weights"]
        fields += [f"{macro}_WEIGHTS_BYTES", f"{net}_arena", f"{macro}_ARENA_BYTES", *sizes]
        table.append("{" + ", ".join([*fields, f"{macro}_ROW_BYTES" if by_rows else "0"]) + "},\n")
    return "".join([*parts, "static const network networks[] = {\n", *table, "{0}};\n", BODY])


def test_a_network_at_work_is_guarded_and_can_be_ended(jobs: list[Job], tmp_path: Path) -> None:
    said = execute(build(jobs, tmp_path, FLAGS, program(jobs))).splitlines()
    outputs = {name: [int(n) for n in values] for name, *values in map(str.split, said)}
    assert list(outputs) == [job.sources.net for job in jobs]
    for job in jobs:
        if not job.graph.states:
            tensors = [job.graph.tensors[t] for t in job.graph.inputs]
            images = [
                (np.arange(t.size) * 7 + 3 + 22 * i).astype(np.int8).reshape(t.shape)
                for i, t in enumerate(tensors)
            ]
            expected = reference.execute(job.graph, images)[job.graph.outputs[0]]
            assert outputs[job.sources.net] == expected.ravel().tolist(), job.sources.net
