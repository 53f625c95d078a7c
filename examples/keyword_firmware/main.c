/* Runs the network `keywords` once on a made-up input and prints its scores. */
#include "keywords.h"
#include "print.h"

/* The application decides where the arena lies: this section is placed by the linker script. */
static int8_t arena[KEYWORDS_ARENA_BYTES]
    __attribute__((section(".bss.nn_arena.keywords"), aligned(16)));

_Static_assert(KEYWORDS_INPUTS == 1 && KEYWORDS_OUTPUTS == 1, "this application feeds one input");

static void print_number(int value) {
    char digits[12];
    int at = (int)sizeof digits - 1;
    unsigned rest = value < 0 ? 0U - (unsigned)value : (unsigned)value;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + rest % 10U);
        rest /= 10U;
    } while (rest != 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    print(digits + at);
}

/* Where a sensor's data would come from: a linear congruential generator's upper byte. */
static void fill(int8_t *input, uint32_t bytes) {
    uint32_t state = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        state = state * 1664525U + 1013904223U;
        input[i] = (int8_t)((int32_t)(state >> 24) - 128);
    }
}

int main(void) {
    nn_status status = keywords_init(arena, sizeof arena, keywords_weights);
    if (status == NN_OK) {
        fill(keywords_input(0), KEYWORDS_INPUT0_BYTES);
        status = keywords_invoke();
    }
    if (status != NN_OK) {
        print("the network refused, status ");
        print_number((int)status);
        print("\n");
        return 1;
    }
    const int8_t *scores = keywords_output(0);
    int best = 0;
    print("scores:");
    for (int i = 0; i < KEYWORDS_OUTPUT0_BYTES; i++) {
        print(" ");
        print_number(scores[i]);
        best = scores[i] > scores[best] ? i : best;
    }
    print("\nkeyword ");
    print_number(best);
    print("\n");
    return 0;
}
