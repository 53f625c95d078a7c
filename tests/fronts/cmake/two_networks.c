#include "second.h"
#include "wake_word.h"
#include <stdio.h>
static int8_t one[WAKE_WORD_ARENA_BYTES] __attribute__((aligned(16)));
static int8_t other[SECOND_ARENA_BYTES] __attribute__((aligned(16)));
int main(void) {
    if (wake_word_init(one, sizeof one, wake_word_weights) ||
        second_init(other, sizeof other, second_weights)) {
        return 1;
    }
    for (int i = 0; i < WAKE_WORD_INPUT0_BYTES; i++) {
        wake_word_input(0)[i] = (int8_t)i;
    }
    int failed = wake_word_invoke() || second_invoke();
    printf("%d %d\n", wake_word_output(0)[11], second_output(0)[3]);
    return failed;
}
