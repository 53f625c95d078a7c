// The same application in C++: the emitted header is both.
#include "keywords.h"
#include "print.h"

namespace {

// The application decides where the arena lies: this section is placed by the linker script.
alignas(16) __attribute__((section(".bss.nn_arena.keywords"))) int8_t arena[KEYWORDS_ARENA_BYTES];

static_assert(KEYWORDS_INPUTS == 1 && KEYWORDS_OUTPUTS == 1, "this application feeds one input");

void print_number(int value) {
    char digits[12] = {};
    char *at = digits + sizeof digits - 1;
    unsigned rest = value < 0 ? 0U - static_cast<unsigned>(value) : static_cast<unsigned>(value);
    do {
        *--at = static_cast<char>('0' + rest % 10U);
        rest /= 10U;
    } while (rest != 0);
    if (value < 0) {
        *--at = '-';
    }
    print(at);
}

// Where a sensor's data would come from: a linear congruential generator's upper byte.
void fill(int8_t *input, uint32_t bytes) {
    uint32_t state = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        state = state * 1664525U + 1013904223U;
        input[i] = static_cast<int8_t>(static_cast<int32_t>(state >> 24) - 128);
    }
}

} // namespace

int main() {
    nn_status status = keywords_init(arena, sizeof arena, keywords_weights);
    if (status == NN_OK) {
        fill(keywords_input(0), KEYWORDS_INPUT0_BYTES);
        status = keywords_invoke();
    }
    if (status != NN_OK) {
        print("the network refused, status ");
        print_number(static_cast<int>(status));
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
