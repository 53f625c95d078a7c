/* What clang's XCore back end calls by names of its own; the rest is in baremetal/. */
#include <stddef.h>
#include <stdint.h>

void *__memcpy_4(void *to, const void *from, size_t bytes);
uint32_t __misaligned_load(const uint8_t *from);
void __misaligned_store(uint8_t *to, uint32_t value);

/* Both addresses are multiples of 4, and so is the length. */
void *__memcpy_4(void *to, const void *from, size_t bytes) {
    volatile uint32_t *words = (volatile uint32_t *)to; /* or this loop became a call of itself */
    const uint32_t *source = (const uint32_t *)from;
    size_t left = bytes / 4;
    for (; left >= 4; left -= 4, words += 4, source += 4) {
        words[0] = source[0];
        words[1] = source[1];
        words[2] = source[2];
        words[3] = source[3];
    }
    for (; left > 0; left--) {
        *words++ = *source++;
    }
    return to;
}

uint32_t __misaligned_load(const uint8_t *from) {
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

void __misaligned_store(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> 8 * i);
    }
}
