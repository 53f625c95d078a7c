/* Stands in for a network (tests/targets/probe/harness_net.h): operator 1 is a CRC with scratch,
 * operator 2 one without, over the same data. */
#include "nn_image.h"
#include "nn_profile.h"
#include "plain_net.h"

#define BYTES 65536U

static uint32_t data[BYTES / 4];

int probe_invoke(void) {
    uint32_t *out = (uint32_t *)(void *)probe_output(0);
    uint32_t state = 1;
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        state = state * 1664525U + 1013904223U;
        data[i] = state;
    }
    NN_MARK_INVOKE_BEGIN();
    NN_MARK_BEGIN(1);
    out[0] = nn_crc32(0, data, BYTES, arena);
    NN_MARK_END();
    NN_MARK_BEGIN(2);
    out[1] = nn_crc32(0, data, BYTES, 0);
    NN_MARK_END();
    NN_MARK_INVOKE_END();
    out[2] = 0;
    out[3] = 0;
    return 0;
}
