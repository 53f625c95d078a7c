"""Each program on the page of the C interface compiles without a warning and gives the reference's bytes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from loaded import SLOW_WEIGHTS, twin
from made_up import SHOWS, scores
from needs import needs_tool
from paths import ROOT
from statenets import by_rows

from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo import graph as build_graph

PAGE = (ROOT / "docs/c-interface.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```(c|cpp)\n(.*?)^```$", PAGE)
# name, board, options: one that is given its input, one that asks for it, one whose weights are loaded, one
# whose arena is in two memories, neither of which holds all of it
NETWORKS = (
    ("wake", "host", ()),
    ("seen", "host", ("--image", "stream", "--objective", "ram")),
    ("slow", "slow.toml", ()),
    ("twin", "twin.toml", ("--arena-in", "ram,fast")),
    ("heard", "host", ()),  # the same with its image in a state: a row an invoke
)
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-O1")

APP_H = """\
#ifndef APP_H
#define APP_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
int read_sensor(int8_t *to, int elements);
void rewind_sensor(void);
float read_real(int index);
void show(const int8_t *scores, int elements);
void *the_camera(void);
const uint8_t *next_line(void *camera);
void release_line(void *camera);
void feed_watchdog(void);
const void *partition(const char *name);
void *the_flash(void);
void start_reading(void *flash, void *to, uint32_t from, uint32_t bytes);
void finish_reading(void *flash);
#ifdef __cplusplus
}
#endif
#ifdef __cplusplus
extern "C"
#endif
int app(void);
#endif
"""
# What stands in for hardware: a sensor of 490 values, that camera, a flash that answers late.
DRIVERS_C = """\
#include "app.h"
#include "seen.h"
#include "slow.h"
#include "wake.h"
#include <stdio.h>
#include <string.h>

static uint32_t state = 1;
static int left = 490;

static int8_t next(void) {
    state = state * 1664525U + 1013904223U;
    left--;
    return (int8_t)((int32_t)(state >> 24) - 128);
}

int read_sensor(int8_t *to, int elements) {
    if (left < elements) {
        return 0;
    }
    for (int i = 0; i < elements; i++) {
        to[i] = next();
    }
    return 1;
}

void rewind_sensor(void) {
    state = 1;
    left = 490;
}

/* The value in the network's unit, and something besides that rounding takes away. */
float read_real(int index) {
    const nn_quantization unit = wake_input_quantization(0);
    return unit.scale * ((float)(next() - unit.zero_point) + (index % 2 ? 0.25F : -0.25F));
}

void show(const int8_t *scores, int elements) {
    printf("scores:");
    for (int i = 0; i < elements; i++) {
        printf(" %d", scores[i]);
    }
    printf("\\n");
}

static uint8_t line[SEEN_ROW_BYTES];
static int lent;

void *the_camera(void) {
    return line;
}

/* Of the first picture the sixth line is lost; the next one shows the same. */
const uint8_t *next_line(void *camera) {
    static int pictures;
    if (left == 490 - 5 * SEEN_ROW_BYTES && pictures++ == 0) {
        rewind_sensor();
        return NULL;
    }
    for (int i = 0; i < SEEN_ROW_BYTES; i++) {
        line[i] = (uint8_t)(next() + 128);
    }
    lent++;
    return camera;
}

void release_line(void *camera) {
    memset(camera, 0, sizeof line);
    lent--;
}

void feed_watchdog(void) {}

/* One byte of the last update is damaged. */
static uint8_t slot[WAKE_WEIGHTS_BYTES] __attribute__((aligned(16)));

const void *partition(const char *name) {
    memcpy(slot, wake_weights, sizeof slot);
    slot[sizeof slot / 2] ^= (uint8_t)name[0];
    return slot;
}

static struct {
    void *to;
    uint32_t from, bytes;
} begun[64];
static int waiting;

void *the_flash(void) {
    return begun;
}

void start_reading(void *flash, void *to, uint32_t from, uint32_t bytes) {
    (void)flash;
    memset(to, 0x5A, bytes);
    begun[waiting].to = to;
    begun[waiting].from = from;
    begun[waiting++].bytes = bytes;
}

void finish_reading(void *flash) {
    (void)flash;
    for (int i = 0; i < waiting; i++) {
        memcpy(begun[i].to, slow_weights + begun[i].from, begun[i].bytes);
    }
    waiting = 0;
}

int main(void) {
    const int status = app();
    return status != 0 ? 100 + status : lent;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the networks' library, their headers and drivers."""
    folder, session = tmp_path_factory.mktemp("page"), Session()
    (folder / "slow.toml").write_text(SLOW_WEIGHTS)
    (folder / "twin.toml").write_text(twin(9200, 1024))
    models = {"heard": str(folder / "heard.tflite")}
    whole = rewrite(build_graph("ds_cnn"))
    Path(models["heard"]).write_bytes(write_model(by_rows(whole, -128)))
    for name, board, options in NETWORKS:
        known = str(folder / board) if board.endswith(".toml") else board
        words = ("build", models.get(name, "ds_cnn"), "--board", known, "--name", name, *options)
        assert run([*words, "--bundle", "--out", str(folder / "nets")], session) == 0
    (folder / "app.h").write_text(APP_H)
    (folder / "drivers.c").write_text(DRIVERS_C)
    gcc = needs_tool("gcc")
    (folder / "Makefile").write_text(
        f"all: libnn.a drivers.o\ninclude nets/sources.mk\nCFLAGS := -std=c99 {' '.join(STRICT)}\n"
        f"libnn.a:\n\t{gcc} -c $(CFLAGS) $(NN_CFLAGS) $(NN_CPPFLAGS) $(NN_SOURCES)\n\tar rcs $@ *.o\n"
        f"drivers.o: drivers.c libnn.a\n\t{gcc} -c $(CFLAGS) $(NN_INCLUDES) drivers.c -o $@\n"
    )
    subprocess.run(["make", "-s"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.mark.slow
def test_every_program_of_the_page_gives_the_references_bytes(library: Path) -> None:
    compilers = {"c": ("gcc", "-std=c99"), "cpp": ("g++", "-std=c++17")}
    folders = [f"-I{library}", f"-I{library}/nets/kernels/include"]
    folders += [f"-I{library}/nets/networks/{name}" for name, _, _ in NETWORKS]
    for number, (language, text) in enumerate(BLOCKS):
        compiler, standard = compilers[language]
        source, program = library / f"{number}.{language}", library / f"{number}.elf"
        source.write_text(text)
        words = [*folders, source, library / "drivers.o", library / "libnn.a", "-o", program]
        subprocess.run([needs_tool(compiler), standard, *STRICT, *words], check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, text
        assert re.findall(SHOWS, done.stdout) == [scores()] * text.count("show("), text


def test_the_page_has_its_programs() -> None:
    assert [language for language, _ in BLOCKS].count("c") == 9
    assert [language for language, _ in BLOCKS].count("cpp") == 1


def test_every_status_and_every_macro_is_on_the_page() -> None:
    image = (ROOT / "kernels/include/nn_image.h").read_text()
    codes = re.findall(r"^    (NN_(?:OK|ERROR\w*))", image, re.MULTILINE)
    assert len(codes) > 7
    for code in codes:
        assert f"| `{code}` |" in PAGE
    header = (ROOT / "buildtool/emit/header.py").read_text()
    for macro in set(re.findall(r"#define \{macro\}_([A-Z]\w*)", header)) - {"H", "QUANTIZATION_H", "PLAN"}:
        assert f"`NAME_{macro}" in PAGE or macro == "OPERATORS", macro
