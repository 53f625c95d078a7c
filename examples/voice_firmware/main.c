/* Runs two networks on a sound: `front` on the last 30 ms at each step, `words` on its features.
 *
 * A line for each step: the features, and the classes where `words` has run.
 */
#include <string.h>

#include "front.h"
#include "history.h"
#include "print.h"
#include "samples.h"
#include "words.h"

#define STEP (16 * STEP_MS) /* samples */

NN_STATIC_ASSERT(FRONT_INPUTS == 1 && FRONT_OUTPUTS == 1 && WORDS_INPUTS == 1 && WORDS_OUTPUTS == 1,
                 "one input and one output each");
NN_STATIC_ASSERT(sizeof(FRONT_INPUT0_TYPE) == 2 && FRONT_INPUT0_ELEMENTS >= STEP,
                 "the front end reads samples of 16 bits, and misses none");

/* One arena for both, because one runs after the other. */
NN_ARENA_IN(arena, FRONT_ARENA_BYTES > WORDS_ARENA_BYTES ? FRONT_ARENA_BYTES : WORDS_ARENA_BYTES,
            16, ".bss.nn_arena.voice");
FRONT_CHECK_ARENA(arena);
WORDS_CHECK_ARENA(arena);

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

static void print_features(const int8_t *values) {
    for (int i = 0; i < FRONT_OUTPUT0_ELEMENTS; i++) {
        print(" ");
        print_number(values[i]);
    }
}

static void print_classes(const WORDS_OUTPUT0_TYPE *values) {
    print(" |");
    for (int i = 0; i < WORDS_OUTPUT0_ELEMENTS; i++) {
        print(" ");
        print_number((int)values[i]);
    }
}

/* A step: the features of 30 ms of sound, and the classes of what has been heard. */
static nn_status hear(const int16_t *sound) {
    memcpy(front_input(0), sound, FRONT_INPUT0_BYTES);
    nn_status status = front_invoke();
    if (status != NN_OK) {
        return status;
    }
    const int8_t *frame = (const int8_t *)front_output(0);
    print("frame");
    print_features(frame);
    if (history_add(frame)) { /* a copy: the other network uses the arena now */
        memcpy(words_input(0), history_window(), WORDS_INPUT0_BYTES);
        status = words_invoke();
        print_classes((const WORDS_OUTPUT0_TYPE *)(const void *)words_output(0));
    }
    print("\n");
    return status;
}

int main(void) {
    nn_status status = front_init(arena, sizeof arena, front_weights);
    status = status == NN_OK ? words_init(arena, sizeof arena, words_weights) : status;
    for (int32_t at = 0; status == NN_OK && at + FRONT_INPUT0_ELEMENTS <= sample_count;
         at += STEP) {
        status = hear(samples + at);
    }
    if (status != NN_OK) {
        print("a network refused, status ");
        print_number((int)status);
        print("\n");
        return 1;
    }
    return 0;
}
