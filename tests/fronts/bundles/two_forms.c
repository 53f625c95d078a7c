// Two networks of one program: one is given its input, the other asks for it row by row.
#include "nap.h"
#include "wake.h"
#include <stdio.h>

WAKE_DEFINE_ARENA_IN(arena, ".bss.nn_arena.both");
WAKE_CHECK_ARENA(arena);
NAP_CHECK_ARENA(arena);

static uint32_t state;

static void fill(int8_t *data, int bytes) {
    for (int i = 0; i < bytes; i++) {
        state = state * 1664525U + 1013904223U;
        data[i] = (int8_t)((int32_t)(state >> 24) - 128);
    }
}

static int deliver(void *context, int32_t row, int8_t *data) {
    (void)context;
    (void)row;
    fill(data, NAP_ROW_BYTES);
    return 0;
}

static void show(const int8_t *scores) {
    printf("scores:");
    for (int i = 0; i < WAKE_OUTPUT0_ELEMENTS; i++) {
        printf(" %d", scores[i]);
    }
    printf("\n");
}

int main(void) {
    if (wake_init(arena, sizeof arena, wake_weights) != NN_OK) {
        return 1;
    }
    state = 1;
    fill(wake_input(0), WAKE_INPUT0_BYTES);
    if (wake_invoke() != NN_OK) {
        return 2;
    }
    show(wake_output(0));
    if (nap_init(arena, sizeof arena, nap_weights) != NN_OK) {
        return 3;
    }
    state = 1;
    nap_set_row_source(deliver, NULL);
    if (nap_invoke() != NN_OK) {
        return 4;
    }
    show(nap_output(0));
    return 0;
}
