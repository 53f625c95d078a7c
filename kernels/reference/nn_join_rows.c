/* Rows of several tensors and rings, one behind the other. */
#include "nn_moving.h"

void nn_join_rows(const nn_rows_geometry *geometry, const int8_t *const *inputs, int8_t *out) {
    const nn_rows_geometry *g = geometry;
    const int32_t size = g->row_bytes;
    for (int32_t i = 0; i < g->count; i++) {
        const nn_rows_piece *piece = &g->pieces[i];
        const int8_t *from = inputs[piece->input];
        const int32_t ring = g->ring_rows[piece->input];
        int32_t first = piece->first, count = piece->count;
        if (ring > 0) {
            first = nn_ring_after(nn_ring_oldest(from, ring * size), first, ring);
            const int32_t before = nn_min(count, ring - first); /* the ring begins again there */
            NN_MEMCPY(out, from + first * size, (size_t)(before * size));
            out += before * size;
            count -= before;
            first = 0;
        }
        NN_MEMCPY(out, from + first * size, (size_t)(count * size));
        out += count * size;
    }
}
