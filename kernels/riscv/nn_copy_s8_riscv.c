/* Copies a box of elements from one layout to another: short lines of neighbours, words where they
 * are; the plain kernel does the rest. */
#include "nn_lines.h"
#include "nn_patch.h"
#include "nn_riscv.h"

#define LONG 40 /* bytes of a line that is worth making words of */

/* A long line. Where the two lie differently in their words, each word is made of two, of which the
 * first one's other bytes belong to the line as well. */
NN_OUTLINE void copy_words(int8_t *to, const int8_t *from, int32_t bytes) {
    const int32_t head = 4 + (int32_t)(-(uintptr_t)to & 3);
    nn_patch_copy(to, from, head);
    to += head;
    from += head;
    const uint32_t by = 8 * ((uintptr_t)from & 3);
    const uint32_t *s = (const uint32_t *)(const void *)(from - by / 8);
    uint32_t *d = (uint32_t *)(void *)to, low = *s++;
    int32_t left = bytes - head;
    for (; left >= 12; left -= 8, s += 2, d += 2) {
        const uint32_t middle = s[0], high = s[1];
        d[0] = by != 0 ? low >> by | middle << (32 - by) : low;
        d[1] = by != 0 ? middle >> by | high << (32 - by) : middle;
        low = high;
    }
    const int32_t done = bytes - head - left;
    nn_patch_copy(to + done, from + done, left);
}

void nn_copy_s8_riscv(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out)) {
        nn_copy_s8(geometry, in, out);
        return;
    }
    if (l.count >= LONG) {
        for (; l.lines > 0; l.lines--, l.in += l.in_stride, l.out += l.out_stride) {
            copy_words(l.out, l.in, l.count);
        }
    }
    for (; l.lines > 0; l.lines--, l.in += l.in_stride, l.out += l.out_stride) {
        nn_patch_copy(l.out, l.in, l.count);
    }
}
