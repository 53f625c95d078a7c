/* memcpy and its like for firmware without a C library: word by word where both sides allow it.
 *
 * Word accesses may alias anything; the target's cores load and store unaligned words, so only the
 * destination is aligned. NO_IDIOM keeps the compiler from turning the loops into calls of
 * themselves.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define NO_IDIOM __attribute__((no_builtin))
#else
#define NO_IDIOM __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

typedef uint32_t __attribute__((may_alias)) word;
typedef struct {
    uint32_t value;
} __attribute__((packed, may_alias)) loose_word;

/* Upwards, four words loaded before they are stored: safe where `to` is 16 bytes below `from`, or
 * more. Not `restrict`, which would let the compiler load further ahead. */
NO_IDIOM static void copy_up(uint8_t *d, const uint8_t *s, size_t bytes) {
    while (bytes > 0 && ((uintptr_t)d & 3) != 0) {
        *d++ = *s++;
        bytes--;
    }
#ifdef __xcore__ /* loads loose words byte by byte */
    for (; bytes >= 16 && ((uintptr_t)s & 3) == 0; bytes -= 16, d += 16, s += 16) {
        const uint32_t a = ((const word *)s)[0], b = ((const word *)s)[1];
        const uint32_t c = ((const word *)s)[2], e = ((const word *)s)[3];
        ((word *)d)[0] = a;
        ((word *)d)[1] = b;
        ((word *)d)[2] = c;
        ((word *)d)[3] = e;
    }
#endif
    for (; bytes >= 16; bytes -= 16, d += 16, s += 16) {
        const uint32_t a = ((const loose_word *)s)[0].value, b = ((const loose_word *)s)[1].value;
        const uint32_t c = ((const loose_word *)s)[2].value, e = ((const loose_word *)s)[3].value;
        ((word *)d)[0] = a;
        ((word *)d)[1] = b;
        ((word *)d)[2] = c;
        ((word *)d)[3] = e;
    }
    for (; bytes >= 4; bytes -= 4, d += 4, s += 4) {
        *(word *)d = ((const loose_word *)s)->value;
    }
    while (bytes > 0) {
        *d++ = *s++;
        bytes--;
    }
}

NO_IDIOM void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    copy_up(to, from, bytes);
    return to;
}

/* Downwards from the end, a word at a time: safe where `to` is 4 bytes above `from`, or more. */
NO_IDIOM static void copy_down(uint8_t *to, const uint8_t *from, size_t bytes) {
    while (bytes > 0 && ((uintptr_t)(to + bytes) & 3) != 0) {
        bytes--;
        to[bytes] = from[bytes];
    }
    while (bytes >= 4) {
        bytes -= 4;
        *(word *)(to + bytes) = ((const loose_word *)(from + bytes))->value;
    }
    while (bytes > 0) {
        bytes--;
        to[bytes] = from[bytes];
    }
}

NO_IDIOM void *memmove(void *to, const void *from, size_t bytes) {
    uint8_t *d = to;
    const uint8_t *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= bytes) {
        if ((uintptr_t)s - (uintptr_t)d >= 16) {
            copy_up(d, s, bytes);
        } else {
            while (bytes > 0) {
                *d++ = *s++;
                bytes--;
            }
        }
    } else if ((uintptr_t)d - (uintptr_t)s >= 4) {
        copy_down(d, s, bytes);
    } else {
        while (bytes > 0) {
            bytes--;
            d[bytes] = s[bytes];
        }
    }
    return to;
}

NO_IDIOM void *memset(void *to, int value, size_t bytes) {
    uint8_t *d = to;
    const uint32_t pattern = (uint8_t)value * 0x01010101U;
    while (bytes > 0 && ((uintptr_t)d & 3) != 0) {
        *d++ = (uint8_t)value;
        bytes--;
    }
    for (; bytes >= 16; bytes -= 16, d += 16) {
        ((word *)d)[0] = pattern;
        ((word *)d)[1] = pattern;
        ((word *)d)[2] = pattern;
        ((word *)d)[3] = pattern;
    }
    while (bytes > 0) {
        *d++ = (uint8_t)value;
        bytes--;
    }
    return to;
}

NO_IDIOM int memcmp(const void *a, const void *b, size_t bytes) {
    const uint8_t *p = a, *q = b;
    while (bytes >= 4 && ((const loose_word *)p)->value == ((const loose_word *)q)->value) {
        p += 4;
        q += 4;
        bytes -= 4;
    }
    for (; bytes > 0; bytes--, p++, q++) {
        if (*p != *q) {
            return *p - *q;
        }
    }
    return 0;
}

NO_IDIOM size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    return length;
}

#if defined(__arm__)

/* Names of the Arm run-time ABI, which clang emits. Its memset has the last two arguments swapped.
 */
#define COPY(name)                                                                                 \
    void name(void *restrict to, const void *restrict from, size_t bytes);                         \
    NO_IDIOM void name(void *restrict to, const void *restrict from, size_t bytes) {               \
        copy_up(to, from, bytes);                                                                  \
    }
#define MOVE(name)                                                                                 \
    void name(void *to, const void *from, size_t bytes);                                           \
    NO_IDIOM void name(void *to, const void *from, size_t bytes) {                                 \
        memmove(to, from, bytes);                                                                  \
    }
#define SET(name)                                                                                  \
    void name(void *to, size_t bytes, int value);                                                  \
    NO_IDIOM void name(void *to, size_t bytes, int value) {                                        \
        memset(to, value, bytes);                                                                  \
    }
#define CLEAR(name)                                                                                \
    void name(void *to, size_t bytes);                                                             \
    NO_IDIOM void name(void *to, size_t bytes) {                                                   \
        memset(to, 0, bytes);                                                                      \
    }

COPY(__aeabi_memcpy)
COPY(__aeabi_memcpy4)
COPY(__aeabi_memcpy8)
MOVE(__aeabi_memmove)
MOVE(__aeabi_memmove4)
MOVE(__aeabi_memmove8)
SET(__aeabi_memset)
SET(__aeabi_memset4)
SET(__aeabi_memset8)
CLEAR(__aeabi_memclr)
CLEAR(__aeabi_memclr4)
CLEAR(__aeabi_memclr8)

#endif
