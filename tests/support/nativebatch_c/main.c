/* Runs networks one after the other on the inputs of input.bin, and writes what they make to
 * output.bin.
 *
 * In front of this file stand the networks' headers and NETWORKS, their rows of the table below. */

#include "nn_trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    nn_status (*init)(void *arena, size_t arena_bytes, const void *weights);
    int8_t *(*input)(int index);
    const int8_t *(*output)(int index);
    nn_status (*invoke)(void);
    const uint8_t *weights;
    size_t arena_bytes, alignment;
    int sets;
    const uint32_t *inputs, *outputs; /* bytes of each, 0 at the end */
    nn_status (*set_row_source)(nn_row_source *deliver, void *context);
    uint32_t row;             /* bytes of a row of a streamed image */
    nn_status (*reset)(void); /* of what lives between invokes: called before set `reset_at` */
    int reset_at;
} network;

static const network networks[] = {NETWORKS{0}};

static FILE *in, *out;
static uint32_t current;

static void record(uint32_t kind, uint32_t index, uint32_t offset, const void *data,
                   uint32_t bytes) {
    const uint32_t head[5] = {current, kind, index, offset, bytes};
    fwrite(head, 1, sizeof head, out);
    fwrite(data, 1, bytes, out);
}

void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes) {
    record(0, tensor, offset, data, bytes);
}

static int32_t next_row;
static long image_start;

/* Rows come in order, each once. */
static int deliver(void *context, int32_t row, int8_t *data) {
    const uint32_t bytes = *(const uint32_t *)context;
    if (row != next_row++ || fread(data, 1, bytes, in) != bytes) {
        exit(5);
    }
    return 0;
}

static void run_set(const network *net, void *arena, int set) {
    uint32_t row = net->row;
    if (net->reset != NULL && set == net->reset_at && net->reset() != NN_OK) {
        exit(6);
    }
    memset(arena, set % 2 ? 0x5A : 0xA5, net->arena_bytes);
    next_row = 0;
    image_start = ftell(in);
    if (net->set_row_source != NULL) {
        net->set_row_source(deliver, &row);
    }
    for (int i = 0; net->set_row_source == NULL && net->inputs[i] != 0; i++) {
        if (fread(net->input(i), 1, net->inputs[i], in) != net->inputs[i]) {
            exit(3);
        }
    }
    if (net->invoke() != NN_OK) {
        exit(4);
    }
    for (int i = 0; net->outputs[i] != 0; i++) {
        record(1, (uint32_t)i, 0, net->output(i), net->outputs[i]);
    }
    record(3, 0, 0, arena, (uint32_t)net->arena_bytes);
    if (net->set_row_source != NULL) {
        fseek(in, image_start + (long)net->inputs[0], SEEK_SET); /* rows that nobody asked for */
        record(2, 0, 0, "", 0);
    }
    for (int i = 0; net->set_row_source == NULL && net->inputs[i] != 0; i++) {
        record(2, (uint32_t)i, 0, net->input(i), net->inputs[i]);
    }
}

int main(void) {
    in = fopen("input.bin", "rb");
    out = fopen("output.bin", "wb");
    for (current = 0; networks[current].init != NULL; current++) {
        const network *net = &networks[current];
        void *arena = NULL;
        if (posix_memalign(&arena, net->alignment, net->arena_bytes) != 0) {
            return 1;
        }
        if (net->init(arena, net->arena_bytes, net->weights) != NN_OK) {
            return 2;
        }
        for (int set = 0; set < net->sets; set++) {
            run_set(net, arena, set);
        }
        free(arena);
    }
    return fclose(in) != 0 || fclose(out) != 0;
}
