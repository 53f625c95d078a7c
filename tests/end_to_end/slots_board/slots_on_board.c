/* Stands in for a network (tests/targets/probe/harness_net.h): one invoke updates the weights of a
 * network in slots of a flash that is simulated in RAM, cut after every operation, and runs the
 * network after each cut. */
#include "harness_net.h"
#include "nn_slots.h"

#include "images.h" /* OLD, NEW: weight images; OLD_OUTPUT, NEW_OUTPUT: what the reference makes of them */
#include "net.h"

#define ERASE 1024U
#define PROGRAM 32U
#define SLOT ((NET_WEIGHTS_BYTES + ERASE - 1) / ERASE * ERASE)

static const nn_image_kind kind = NET_IMAGE_KIND;
static uint8_t flash[2 * SLOT] __attribute__((aligned(16)));
static uint8_t memory[NN_CRC32_SCRATCH_BYTES + 16] __attribute__((aligned(16)));
static uint32_t left, done;
static uint32_t torn;
static int8_t *probe_arena;

NET_DEFINE_ARENA(arena);

/* Whether there is power for another operation; of the last one only a part is done, if `torn`. */
static uint32_t allowed(uint32_t bytes) {
    if (left == 0) {
        return 0;
    }
    left--;
    done++;
    return left == 0 && torn ? bytes / 2 + 1 : bytes;
}

static int erase(void *context, uint32_t at) {
    (void)context;
    const uint32_t bytes = allowed(ERASE);
    for (uint32_t i = 0; i < bytes; i++) {
        flash[at + i] = 0xFF;
    }
    return bytes != ERASE;
}

static int program(void *context, uint32_t at, const void *data) {
    (void)context;
    const uint32_t bytes = allowed(PROGRAM);
    for (uint32_t i = 0; i < bytes; i++) {
        flash[at + i] &= ((const uint8_t *)data)[i];
    }
    return bytes != PROGRAM;
}

static const nn_slots slots = {flash,   2,    SLOT, ERASE,  PROGRAM,      erase,
                               program, NULL, NULL, memory, sizeof memory};

static void put(uint32_t slot, const uint8_t *image) {
    for (uint32_t i = 0; i < SLOT; i++) {
        flash[slot * SLOT + i] = i < NET_WEIGHTS_BYTES ? image[i] : 0xFF;
    }
}

static nn_status update(const uint8_t *image) {
    nn_update one;
    nn_status status = nn_slots_begin(&one, &slots, &kind);
    for (uint32_t at = 0; at < NET_WEIGHTS_BYTES && status == NN_OK; at += 64) {
        const uint32_t rest = NET_WEIGHTS_BYTES - at;
        status = nn_slots_write(&one, image + at, rest < 64 ? rest : 64);
    }
    return status == NN_OK ? nn_slots_end(&one) : status;
}

static int same(const int8_t *one, const int8_t *two) {
    for (int i = 0; i < NET_OUTPUT0_BYTES; i++) {
        if (one[i] != two[i]) {
            return 0;
        }
    }
    return 1;
}

/* What a start does: 0: the old network ran, 1: the new one, 2: neither. */
static int boot(void) {
    uint32_t tried = 0, slot = 0;
    nn_status status = NN_ERROR_IMAGE_CRC;
    while (status != NN_OK && nn_slots_newest(&slots, &kind, &tried, &slot) == NN_OK) {
        status = net_init(arena, sizeof arena, flash + slot * SLOT);
    }
    if (status != NN_OK) {
        return 2;
    }
    for (int i = 0; i < NET_INPUT0_BYTES; i++) {
        net_input(0)[i] = INPUT[i];
    }
    if (net_invoke() != NN_OK) {
        return 2;
    }
    return same(net_output(0), OLD_OUTPUT) ? 0 : same(net_output(0), NEW_OUTPUT) ? 1 : 2;
}

int probe_init(void *at, uint32_t bytes, const void *weights) {
    (void)bytes;
    (void)weights;
    probe_arena = at;
    return 0;
}

int8_t *probe_input(int i) {
    return probe_arena + 64 * i;
}

int8_t *probe_output(int i) {
    return probe_arena + 1024 + 64 * i;
}

int probe_invoke(void) {
    uint32_t *out = (uint32_t *)(void *)probe_output(0);
    uint32_t counts[3] = {0, 0, 0}, total = 0;
    for (uint32_t cut = 0xFFFFFFFFU; cut + 1 <= total + 1;
         cut++) { /* first of all once without a cut */
        put(0, OLD);
        put(1, NEW); /* damaged, so that it is the one to be overwritten */
        flash[SLOT + 100] ^= 1;
        left = cut;
        done = 0;
        torn = cut & 1U && cut != total;
        const nn_status status = update(NEW);
        const int ran = boot();
        if (cut == 0xFFFFFFFFU) {
            total = status == NN_OK && ran == 1 ? done : 0;
        } else {
            counts[ran]++;
        }
    }
    out[0] = total;
    out[1] = counts[0];
    out[2] = counts[1];
    out[3] = counts[2];
    return 0;
}
