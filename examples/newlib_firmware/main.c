/* Runs the network `keywords` once on a made-up input and prints its scores through the C library.
 */
#include "keywords.h"

#include <stdio.h>

/* app.ld places this section. */
KEYWORDS_DEFINE_ARENA_IN(arena, ".bss.nn_arena.keywords");

/* Where a sensor's data would come from: a linear congruential generator's upper byte. */
static void fill(KEYWORDS_INPUT0_TYPE *input) {
    uint32_t state = 1;
    for (int i = 0; i < KEYWORDS_INPUT0_ELEMENTS; i++) {
        state = state * 1664525U + 1013904223U;
        input[i] = (KEYWORDS_INPUT0_TYPE)((int32_t)(state >> 24) - 128);
    }
}

int main(void) {
    nn_status status = keywords_init(arena, sizeof arena, keywords_weights);
    if (status == NN_OK) {
        fill(keywords_input(0));
        status = keywords_invoke();
    }
    if (status != NN_OK) {
        fprintf(stderr, "the network refused, status %d\n", (int)status);
        return 1;
    }
    const KEYWORDS_OUTPUT0_TYPE *scores = keywords_output(0);
    const nn_quantization unit = keywords_output_quantization(0);
    int best = 0;
    printf("scores:");
    for (int i = 0; i < KEYWORDS_OUTPUT0_ELEMENTS; i++) {
        printf(" %d", scores[i]);
        best = scores[i] > scores[best] ? i : best;
    }
    /* newlib's printf of floating point takes its heap; a percentage needs none */
    printf("\nkeyword %d (%d %%)\n", best,
           (int)(100.0F * unit.scale * (float)(scores[best] - unit.zero_point)));
    return 0;
}
