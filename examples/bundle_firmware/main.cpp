// A C++17 application: runs the network `keywords` once on a made-up input and prints its scores.
#include "keywords.h"

#include <stdint.h>
#include <stdio.h>

namespace {

KEYWORDS_DEFINE_ARENA_IN(arena, ".bss.nn_arena.keywords");

class Keywords {
public:
    using Input = KEYWORDS_INPUT0_TYPE;
    using Score = KEYWORDS_OUTPUT0_TYPE;
    static constexpr int inputs = KEYWORDS_INPUT0_ELEMENTS;
    static constexpr int scores = KEYWORDS_OUTPUT0_ELEMENTS;

    [[nodiscard]] nn_status begin() { return keywords_init(arena, sizeof arena, keywords_weights); }

    template <typename Fill> [[nodiscard]] const Score *run(Fill fill) {
        fill(keywords_input(0));
        return keywords_invoke() == NN_OK ? keywords_output(0) : nullptr;
    }
};

} // namespace

int main() {
    Keywords keywords;
    if (const nn_status status = keywords.begin(); status != NN_OK) {
        printf("the network refused, status %d\n", static_cast<int>(status));
        return 1;
    }
    // Where a sensor's data would come from: a linear congruential generator's upper byte.
    const auto *scores = keywords.run([](Keywords::Input *input) {
        uint32_t state = 1;
        for (int i = 0; i < Keywords::inputs; i++) {
            state = state * 1664525U + 1013904223U;
            input[i] = static_cast<Keywords::Input>(static_cast<int32_t>(state >> 24) - 128);
        }
    });
    if (scores == nullptr) {
        return 1;
    }
    int best = 0;
    printf("scores:");
    for (int i = 0; i < Keywords::scores; i++) {
        printf(" %d", scores[i]);
        best = scores[i] > scores[best] ? i : best;
    }
    printf("\nkeyword %d\n", best);
    return 0;
}
