#include "keyword.h"

KEYWORD_DEFINE_ARENA(arena);

int main(void) {
    if (keyword_init(arena, sizeof arena, keyword_weights) != NN_OK) {
        return 100;
    }
    int8_t *input = keyword_input(0); /* 49 rows of 10 values */
    for (int i = 0; i < KEYWORD_INPUT0_ELEMENTS; i++) {
        input[i] = (int8_t)(i / 10 - i % 10);
    }
    if (keyword_invoke() != NN_OK) {
        return 101;
    }
    const int8_t *scores = keyword_output(0);
    int best = 0;
    for (int i = 1; i < KEYWORD_OUTPUT0_ELEMENTS; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}
