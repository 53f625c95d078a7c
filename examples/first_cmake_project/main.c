#include "keyword_net.h"

KEYWORD_NET_DEFINE_ARENA(arena);

/* Writes the next row of the input, as a microphone or a camera delivers it. */
static int next_row(void *context, int32_t row, int8_t *data) {
    (void)context;
    for (int32_t i = 0; i < KEYWORD_NET_ROW_BYTES; i++) {
        data[i] = (int8_t)(row - i);
    }
    return 0;
}

int main(void) {
    nn_status status = keyword_net_init(arena, sizeof arena, keyword_net_weights);
    if (status == NN_OK) {
        keyword_net_set_row_source(next_row, NULL);
        status = keyword_net_invoke();
    }
    if (status != NN_OK) {
        return 100;
    }
    const int8_t *scores = keyword_net_output(0);
    int best = 0;
    for (int i = 1; i < KEYWORD_NET_OUTPUT0_ELEMENTS; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}
