/* Kernels whose calls are shared by threads, over their own input: equal to one thread's, or
 * exit 1.
 *
 * Rows below are `apart` bytes above the output, the least distance that the contract allows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_reference_threads.h"
#include "nn_view.h"

enum {
    HEIGHT = 9,
    WIDTH = 13,
    CHANNELS = 8,
    SIZE = HEIGHT * WIDTH * CHANNELS,
    ROW = WIDTH * CHANNELS
};

static int8_t plain[SIZE], wanted[SIZE], arena[SIZE + 3 * ROW];
static const nn_window all = {0, HEIGHT, 0, WIDTH};
static _Alignas(16) struct {
    nn_conv_constants head;
    nn_channel channels[CHANNELS];
    int8_t weights[4096];
} block;
static const nn_add_constants sum = {3,  1 << 30, 0,       -5,  1 << 30, -1,
                                     20, 1,       1 << 30, -18, -128,    127};

static void fill(void) {
    srand(1);
    block.head.clamp_min = -128;
    block.head.clamp_max = 127;
    for (int i = 0; i < CHANNELS; i++) {
        block.channels[i].multiplier = (1 << 30) + i;
        block.channels[i].shift = -7;
    }
    for (size_t i = 0; i < sizeof(block.weights); i++) {
        block.weights[i] = (int8_t)rand();
    }
    for (int i = 0; i < SIZE; i++) {
        plain[i] = (int8_t)rand();
    }
}

static int differs(const char *what, int apart) {
    const int found = memcmp(arena, wanted, SIZE) != 0;
    if (found) {
        printf("%s, %d bytes apart: not what one thread makes\n", what, apart);
    }
    return found;
}

static int convolution(const nn_conv_geometry *g, int apart, int depthwise) {
    const nn_view from = nn_whole(plain, HEIGHT, WIDTH, CHANNELS);
    const nn_view to = nn_whole(wanted, HEIGHT, WIDTH, CHANNELS);
    const nn_view in = nn_whole(arena + apart, HEIGHT, WIDTH, CHANNELS);
    const nn_view out = nn_whole(arena, HEIGHT, WIDTH, CHANNELS);
    memcpy(arena + apart, plain, SIZE);
    if (depthwise) {
        nn_depthwise_conv2d_s8(g, &block, &from, &to, &all, NULL);
        nn_depthwise_conv2d_s8_threads(g, &block, &in, &out, &all, NULL);
    } else {
        nn_conv2d_s8(g, &block, &from, &to, &all, NULL);
        nn_conv2d_s8_threads(g, &block, &in, &out, &all, NULL);
    }
    return differs(depthwise ? "depthwise" : "convolution", apart);
}

static int addition(int apart) {
    const nn_view from = nn_whole(plain, HEIGHT, WIDTH, CHANNELS);
    const nn_view to = nn_whole(wanted, HEIGHT, WIDTH, CHANNELS);
    const nn_view in = nn_whole(arena + apart, HEIGHT, WIDTH, CHANNELS);
    const nn_view out = nn_whole(arena, HEIGHT, WIDTH, CHANNELS);
    memcpy(arena + apart, plain, SIZE);
    nn_add_s8(&sum, &from, &from, &to, &all);
    nn_add_s8_threads(&sum, &in, &from, &out, &all);
    return differs("addition", apart);
}

int main(void) {
    const nn_conv_geometry square = {3, 3, 1, 1, 1, 1, 1, 1, 1},
                           point = {1, 1, 1, 1, 1, 1, 0, 0, 1};
    int wrong = 0;
    fill();
    for (int more = 0; more <= ROW; more += 1 + more) {
        wrong += convolution(&square, 2 * ROW + more, 1);
        wrong += convolution(&square, 2 * ROW + more, 0);
        wrong += convolution(&point, ROW + more, 0);
        wrong += addition(more);
    }
    return wrong != 0;
}
