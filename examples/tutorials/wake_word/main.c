#include "semihosting.h"
#include "wake.h"

WAKE_DEFINE_ARENA(arena);

enum { HOPS = 75, HOP_MS = 40, WORD = 11, LEVEL = 64 };

static void read_frames(int hop, int8_t *frames) {
    static uint32_t noise = 1;
    for (int frame = 2 * hop; frame < 2 * hop + WAKE_HOP_ROWS; frame++) {
        for (int i = 0; i < WAKE_WINDOW_ROW_BYTES; i++) {
            noise = noise * 1664525U + 1013904223U;
            const int word = ((frame + 100 * i) & 255) - 128;
            *frames++ = (int8_t)(frame >= 60 && frame < 100 ? word : (int)(noise >> 28) - 8);
        }
    }
}

int main(void) {
    int mean = -128, heard = 0;
    nn_status status = wake_init(arena, sizeof arena, wake_weights);
    for (int hop = 0; status == NN_OK && hop < HOPS; hop++) {
        int8_t frames[WAKE_HOP_ROWS * WAKE_WINDOW_ROW_BYTES];
        read_frames(hop, frames);
        status = wake_push(frames, WAKE_HOP_ROWS);
        if (status == NN_OK) {
            status = wake_invoke();
        }
        const int score = ((const int8_t *)wake_output(0))[WORD];
        mean += (score - mean) / 4;
        if (hop % 5 == 4) {
            semihosting_print_number((hop + 1) * HOP_MS);
            semihosting_print(" ms: score ");
            semihosting_print_number(score);
            semihosting_print("\n");
        }
        if (mean > LEVEL && !heard) {
            semihosting_print("the wake word!\n");
        }
        heard = mean > LEVEL || (heard && mean > 0);
    }
    return (int)status;
}
