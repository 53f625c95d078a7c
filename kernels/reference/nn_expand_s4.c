/* Expands constants whose weights are stored in four bits. What is stored is read in words, since
 * some chips read nothing smaller from flash. */
#include "nn.h"

enum { PIECE = 32, HALF = PIECE / 2 }; /* bytes */

#define aligned(address) NN_ALIGNED_TO(address, 4)

/* Subtracts 8 from each byte of a word: from 0 .. 15 to -8 .. 7. No byte carries into the next one.
 * A byte whose highest bit is not flipped is 128 more. */
static inline uint32_t less_eight(uint32_t bytes, uint32_t flipped) {
    return (bytes + 0x78787878U) ^ flipped;
}

const void *nn_expand_s4(const void *constants, int8_t *out, int32_t bytes) {
    const int8_t *stored = (const int8_t *)constants;
    const int32_t pieces = bytes / PIECE;
    const int8_t *map = stored + 8; /* a bit for each piece: whether it is wide */
    uint32_t flipped, wide = 0;
    NN_MEMCPY(&flipped, aligned(stored), sizeof flipped);
    stored += 8 + (pieces + 63) / 64 * 8;
    for (int32_t i = 0; i < pieces; i++, out += PIECE, wide >>= 1) {
        if (i % 32 == 0) {
            NN_MEMCPY(&wide, aligned(map + i / 8), sizeof wide);
        }
        if (wide & 1) {
            NN_MEMCPY(aligned(out), aligned(stored), PIECE);
            stored += PIECE;
            continue;
        }
        uint32_t in[HALF / 4], low[HALF / 4], high[HALF / 4];
        NN_MEMCPY(in, aligned(stored), sizeof in);
        stored += HALF;
        for (int k = 0; k < HALF / 4; k++) {
            low[k] = less_eight(in[k] & 0x0F0F0F0FU, flipped);
            high[k] = less_eight((in[k] >> 4) & 0x0F0F0F0FU, flipped);
        }
        NN_MEMCPY(aligned(out), low, sizeof low);
        NN_MEMCPY(aligned(out + HALF), high, sizeof high);
    }
    if (bytes % PIECE) {
        NN_MEMCPY(aligned(out), aligned(stored), HALF);
        stored += HALF;
    }
    return stored;
}
