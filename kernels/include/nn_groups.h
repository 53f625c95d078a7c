/* CONV_2D of several groups of channels: each is a convolution of one group on parts of the
 * channels, by a kernel that knows no groups.
 *
 * constants: nn_groups_constants, then each group's block as that kernel reads it.
 */
#ifndef NN_GROUPS_H
#define NN_GROUPS_H

#include "nn_patch.h"

typedef struct {
    int32_t block_bytes; /* of a group's constants, a multiple of 16 */
    int32_t reserved[3];
} nn_groups_constants;

typedef void nn_conv_kernel(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch);
typedef int32_t nn_conv_scratch(const nn_conv_geometry *geometry, const nn_view *in,
                                const nn_view *out);

/* Group by group where the tensors share no memory. Otherwise row by row, because a row of one
 * group's output may lie over rows of input that another group still reads for earlier rows.
 * `bytes`: of an element. */
static inline void nn_groups_walk_of(int32_t bytes, const nn_conv_geometry *geometry,
                                     const void *constants, const nn_view *in, const nn_view *out,
                                     const nn_window *window, void *scratch,
                                     nn_conv_kernel *kernel) {
    const int32_t groups = geometry->groups;
    const int32_t rows = nn_apart(in, out) ? nn_max(window->y1 - window->y0, 1) : 1;
    nn_conv_geometry one = *geometry;
    nn_view from = *in, to = *out;
    nn_window part = *window;
    one.groups = 1;
    from.channels = in->channels / groups;
    to.channels = out->channels / groups;
    for (; part.y0 < window->y1; part.y0 = part.y1) {
        const nn_groups_constants *head = (const nn_groups_constants *)constants;
        const int8_t *block = (const int8_t *)(head + 1);
        part.y1 = nn_min(part.y0 + rows, window->y1);
        from.data = in->data;
        to.data = out->data;
        for (int32_t group = 0; group < groups; group++) {
            kernel(&one, block, &from, &to, &part, scratch);
            block += head->block_bytes;
            from.data += bytes * from.channels;
            to.data += bytes * to.channels;
        }
    }
}

static inline void nn_groups_walk(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch, nn_conv_kernel *kernel) {
    nn_groups_walk_of(1, geometry, constants, in, out, window, scratch, kernel);
}

/* Bytes of scratch: those of one group. */
static inline int32_t nn_groups_scratch(const nn_conv_geometry *geometry, const nn_view *in,
                                        const nn_view *out, nn_conv_scratch *scratch) {
    nn_conv_geometry one = *geometry;
    nn_view from = *in, to = *out;
    one.groups = 1;
    from.channels = in->channels / geometry->groups;
    to.channels = out->channels / geometry->groups;
    return scratch(&one, &from, &to);
}

#endif
