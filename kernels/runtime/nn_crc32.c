#include "nn_image.h"

/* Loops stay as they are written: unrolled further they are 2 KB of code, and hardly faster. */
#ifdef __clang__
#define AS_WRITTEN _Pragma("clang loop unroll(disable)")
#else
#define AS_WRITTEN _Pragma("GCC unroll 1")
#endif

/* CRC-32 (IEEE 802.3, reflected) four bits at a time: 64 bytes of table, 9 instructions a byte. */
static const uint32_t crc_nibble[16] = {0x00000000U, 0x1DB71064U, 0x3B6E20C8U, 0x26D930ACU,
                                        0x76DC4190U, 0x6B6B51F4U, 0x4DB26158U, 0x5005713CU,
                                        0xEDB88320U, 0xF00F9344U, 0xD6D6A3E8U, 0xCB61B38CU,
                                        0x9B64C2B0U, 0x86D3D2D4U, 0xA00AE278U, 0xBDBDF21CU};

/* Once in the image, whoever calls it: loops around it are not worth their code. */
__attribute__((noinline)) static uint32_t by_nibbles(uint32_t crc, const uint8_t *data,
                                                     uint32_t bytes) {
    AS_WRITTEN
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
    }
    return crc;
}

/* Long data, without tables: the CRC is the remainder of the data, as a polynomial over GF(2), by
 * the generator G, and adding a multiple of G to the data does not change it. G divides
 *
 *     T = x^300 + x^155 + x^117 + x^89 + 1
 *
 * and T(x)^32 = T(x^32), because squaring is linear over GF(2). So with y = x^32, the shift by a
 * word, T(y) is a multiple of G as well. The first word of the data, times T(y), is added to the
 * data: it becomes 0, and words 145, 183, 211 and 300 further on change. Word after word disappears
 * in this way, in a ring of 300 words, until 300 are left, whose CRC is that of the whole. */
#define WORDS 300U
#define NEAR 145U
#define MIDDLE 183U
#define FAR 211U

NN_STATIC_ASSERT(NN_CRC32_SCRATCH_BYTES == WORDS * sizeof(uint32_t), "the ring is the scratch");

/* `count` words of data, a multiple of STEP, into a ring that is at p[ring]; the words before it
 * that are taken as well are at constant places, so that one register finds all of them. */
static inline __attribute__((always_inline)) void fold(uint32_t *p, const uint32_t *data,
                                                       uint32_t count, uint32_t ring, uint32_t near,
                                                       uint32_t middle, uint32_t far) {
#ifdef __ARM_FEATURE_MVE
#define STEP 1U
    for (uint32_t i = 0; i < count; i++) {
        p[ring + i] ^= data[i] ^ p[near + i] ^ p[middle + i] ^ p[far + i];
    }
#else
#define STEP 4U
    AS_WRITTEN
    for (const uint32_t *const end = data + count; data != end; data += STEP, p += STEP) {
        const uint32_t a = data[0] ^ p[near] ^ p[middle] ^ p[far];
        const uint32_t b = data[1] ^ p[near + 1] ^ p[middle + 1] ^ p[far + 1];
        const uint32_t c = data[2] ^ p[near + 2] ^ p[middle + 2] ^ p[far + 2];
        const uint32_t d = data[3] ^ p[near + 3] ^ p[middle + 3] ^ p[far + 3];
        p[ring] ^= a;
        p[ring + 1] ^= b;
        p[ring + 2] ^= c;
        p[ring + 3] ^= d;
    }
#endif
}

/* The word `back` words before word `at` of the ring. */
static const uint32_t *tap(const uint32_t *ring, uint32_t at, uint32_t back) {
    return ring + (at >= back ? at - back : at + WORDS - back);
}

__attribute__((unused)) static uint32_t by_words(uint32_t crc, const uint32_t *data, uint32_t words,
                                                 uint32_t *ring) {
    const uint32_t *const last = data + words - WORDS; /* the words from here on stay */
    uint32_t at = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        ring[i] = 0;
    }
    ring[0] = crc;
    while (data != last) {
        /* Up to the next place where a word that is taken comes from the other end of the ring. */
        const uint32_t seam = at < NEAR ? NEAR : at < MIDDLE ? MIDDLE : at < FAR ? FAR : WORDS;
        const uint32_t left = (uint32_t)(last - data);
        const uint32_t most = left < seam - at ? left : seam - at;
        const uint32_t count = most < STEP ? 1 : most - most % STEP;
        uint32_t *const p = ring + at;
        if (count < STEP) {
            *p ^= *data ^ *tap(ring, at, NEAR) ^ *tap(ring, at, MIDDLE) ^ *tap(ring, at, FAR);
        } else if (at < NEAR) {
            fold(p, data, count, 0, WORDS - NEAR, WORDS - MIDDLE, WORDS - FAR);
        } else if (at < MIDDLE) {
            fold(p - NEAR, data, count, NEAR, 0, NEAR + WORDS - MIDDLE, NEAR + WORDS - FAR);
        } else if (at < FAR) {
            fold(p - MIDDLE, data, count, MIDDLE, MIDDLE - NEAR, 0, MIDDLE + WORDS - FAR);
        } else {
            fold(p - FAR, data, count, FAR, FAR - NEAR, FAR - MIDDLE, 0);
        }
        data += count;
        at = at + count < WORDS ? at + count : 0;
    }
    crc = 0;
    AS_WRITTEN
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t word = data[i] ^ ring[at];
        word ^= i < NEAR ? *tap(ring, at, NEAR) : 0;
        word ^= i < MIDDLE ? *tap(ring, at, MIDDLE) : 0;
        word ^= i < FAR ? *tap(ring, at, FAR) : 0;
        crc = by_nibbles(crc, (const uint8_t *)&word, sizeof word);
        at = at + 1 < WORDS ? at + 1 : 0;
    }
    return crc;
}

__attribute__((weak)) uint32_t nn_crc32(uint32_t crc, const void *data, uint32_t bytes,
                                        void *scratch) {
    const uint8_t *from = data;
    crc = ~crc;
#ifdef __OPTIMIZE_SIZE__ /* a kilobyte of code less */
    (void)scratch;
#else
    if (scratch != NULL && bytes >= 3U * NN_CRC32_SCRATCH_BYTES) {
        const uint32_t head = (uint32_t)(-(uintptr_t)from & 3U);
        const uint32_t words = (bytes - head) / sizeof(uint32_t);
        crc = by_nibbles(crc, from, head);
        crc = by_words(crc, (const uint32_t *)(const void *)(from + head), words, scratch);
        from += head + words * sizeof(uint32_t);
        bytes -= head + words * (uint32_t)sizeof(uint32_t);
    }
#endif
    return ~by_nibbles(crc, from, bytes);
}
