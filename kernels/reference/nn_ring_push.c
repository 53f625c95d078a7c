/* New rows in place of a ring's oldest ones. */
#include "nn_moving.h"

void nn_ring_push(const nn_ring_geometry *geometry, const int8_t *in, void *state) {
    const nn_ring_geometry *g = geometry;
    const int32_t size = g->row_bytes;
    int8_t *ring = (int8_t *)state;
    int32_t *place = nn_ring_place(state, g->rows * size);
    const int8_t *from = in + g->first * size;
    const int32_t before = nn_min(g->count, g->rows - *place); /* the ring begins again there */
    NN_MEMCPY(ring + *place * size, from, (size_t)(before * size));
    NN_MEMCPY(ring, from + before * size, (size_t)((g->count - before) * size));
    *place = nn_ring_after(*place, g->count, g->rows);
}
