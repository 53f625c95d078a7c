/* SEGGER's RTT: two rings in RAM that a debug probe reads and writes while the core runs. The probe
 * finds the control block by its name; it is made at run time, so that the image in flash has none.
 */
#include "wire.h"

#define UP_BYTES 512U
#define DOWN_BYTES 512U

typedef struct {
    const char *name;
    uint8_t *data;
    uint32_t bytes;
    volatile uint32_t written, read; /* where the next byte goes, and where it comes from */
    uint32_t flags;
} ring;

/* The host knows the name. */
static struct {
    volatile char id[16];
    int32_t ups, downs;
    ring up, down;
} nn_rtt_control __attribute__((aligned(4), used));

static uint8_t up_data[UP_BYTES], down_data[DOWN_BYTES];

static void barrier(void) {
#if defined(__arm__)
    __asm volatile("dmb" : : : "memory");
#else
    __asm volatile("" : : : "memory");
#endif
}

void wire_start(void) {
    static const char id[16] = "TTR REGGES"; /* backwards, see above */
    nn_rtt_control.ups = nn_rtt_control.downs = 1;
    nn_rtt_control.up = (ring){"buildtool", up_data, UP_BYTES, 0, 0, 0};
    nn_rtt_control.down = (ring){"buildtool", down_data, DOWN_BYTES, 0, 0, 0};
    barrier();
    for (int i = 0; i < 10; i++) {
        nn_rtt_control.id[9 - i] = id[i];
    }
    barrier();
}

int wire_get(void) {
    ring *const from = &nn_rtt_control.down;
    const uint32_t at = from->read;
    if (at == from->written) {
        return -1;
    }
    barrier();
    const int byte = from->data[at];
    barrier();
    from->read = at + 1 == DOWN_BYTES ? 0 : at + 1;
    return byte;
}

void wire_put(uint8_t byte) {
    ring *const to = &nn_rtt_control.up;
    const uint32_t at = to->written, next = at + 1 == UP_BYTES ? 0 : at + 1;
    while (next == to->read) {
    }
    to->data[at] = byte;
    barrier();
    to->written = next;
}
