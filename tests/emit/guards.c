/* What test_guards.py tries with every network of a program; it writes networks.inc. */
#include "nn_image.h"
#include "nn_trace.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The networks' headers and memory, and `networks`: the table of them, ended by one without a name.
 */
#include "networks.inc"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", net->name, __LINE__, #condition);                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const network *net;
static int8_t own[1 << 16], expected[2][1 << 12];
static uint8_t image[1 << 16] __attribute__((aligned(16)));

static int8_t pixel(int input, uint32_t i) {
    return (int8_t)(i * 7U + 3U + 22U * (uint32_t)input);
}

/* ---- a loader that brings nothing before it is asked to ---------------------------------------
 */

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

/* ---- what is called back ----------------------------------------------------------------------
 */

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

/* ---- runs -------------------------------------------------------------------------------------
 */

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
        printf("\n");
    }
    return 0;
}
