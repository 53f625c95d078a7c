/* Copies a box of elements from one layout to another: short lines of neighbours, words where they
 * are; the plain kernel does the rest. */
#include "nn_lines.h"
#include "nn_patch.h"
#include "nn_riscv.h"

#define LONGEST 64 /* bytes of a line for which a call is more */

void nn_copy_s8_riscv(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out) || l.count > LONGEST) {
        nn_copy_s8(geometry, in, out);
        return;
    }
    for (; l.lines > 0; l.lines--, l.in += l.in_stride, l.out += l.out_stride) {
        nn_patch_copy(l.out, l.in, l.count);
    }
}
