/* From halfwords to operations: the formats of XS1 with the additions of XS2 and XS3. */
#ifndef XS3_DECODE_H
#define XS3_DECODE_H

#include <stdint.h>
#include <string.h>

enum xs3_op {
    XS3_OP_UNKNOWN,
#define XS3_OP(id, text, format, base, access, traits) XS3_OP_##id,
#include "instructions.h"
#undef XS3_OP
    XS3_OP_MOVE, /* the end of a swap: what the low half computed reaches its register */
    XS3_OP_MARKER,
    XS3_OPS
};

enum xs3_format {
    XS3_R3,
    XS3_RUS2,
    XS3_RUS2B,
    XS3_R2,
    XS3_RUS,
    XS3_RUSB,
    XS3_R1,
    XS3_R0,
    XS3_RU6,
    XS3_U6,
    XS3_U10,
    XS3_LONG, /* from here on 32 bits */
    XS3_L3R = XS3_LONG,
    XS3_L2RUS,
    XS3_L2RUSB,
    XS3_L2R,
    XS3_L4R,
    XS3_L3RUS,
    XS3_L5R,
    XS3_L4RUSB,
    XS3_L6R
};

typedef struct {
    enum xs3_format format;
    uint32_t base;
    const char *access, *traits;
} xs3_instruction;

static const xs3_instruction xs3_instructions[] = {
    {XS3_R0, 0xffffffffU, "", ""},
#define XS3_OP(id, text, format, base, access, traits) {XS3_##format, base, access, traits},
#include "instructions.h"
#undef XS3_OP
};
#define XS3_KNOWN ((int32_t)(sizeof(xs3_instructions) / sizeof(xs3_instructions[0])))

/* One decoded instruction. Registers are a to f; a number is in `number`, branches' in halfwords
 * (in words in dual issue), offsets as the text has them. `more`: the issue has another one behind
 * it. */
typedef struct {
    uint8_t op, more, a, b, c, d, e, f;
    uint32_t number;
} xs3_decoded;

static inline int xs3_three(uint32_t half, uint8_t *a, uint8_t *b, uint8_t *c) {
    const uint32_t high = half >> 6 & 31;
    *a = (uint8_t)(high % 3 << 2 | (half >> 4 & 3));
    *b = (uint8_t)(high / 3 % 3 << 2 | (half >> 2 & 3));
    *c = (uint8_t)(high / 9 << 2 | (half & 3));
    return high < 27;
}

static inline int xs3_two(uint32_t half, uint8_t *a, uint8_t *b) {
    const uint32_t high = (half >> 6 & 31) - 27 + (half >> 5 & 1) * 5;
    if ((half >> 6 & 31) < 27 || high > 8) {
        return 0;
    }
    *a = (uint8_t)(high % 3 << 2 | (half >> 2 & 3));
    *b = (uint8_t)(high / 3 << 2 | (half & 3));
    return 1;
}

static inline uint32_t xs3_bit_position(uint32_t code) {
    return code == 0 || code > 10 ? 32 : code < 9 ? code : code == 9 ? 16 : 24;
}

/* Whether `half` is the instruction `i`, of 16 bits, whose operands are then in `to`. */
static inline int xs3_match_short(int32_t i, uint32_t half, xs3_decoded *to) {
    const xs3_instruction *it = &xs3_instructions[i];
    switch (it->format) {
    case XS3_R3:
    case XS3_RUS2:
    case XS3_RUS2B:
        if ((half & 0xf800) != it->base || !xs3_three(half, &to->a, &to->b, &to->c)) {
            return 0;
        }
        to->number = it->format == XS3_RUS2B ? xs3_bit_position(to->c) : to->c;
        return 1;
    case XS3_R2:
    case XS3_RUS:
    case XS3_RUSB:
        if ((half & 0xf810) != it->base || !xs3_two(half, &to->a, &to->b)) {
            return 0;
        }
        to->number = it->format == XS3_RUSB ? xs3_bit_position(to->b) : to->b;
        return 1;
    case XS3_R1:
        to->a = (uint8_t)(half & 15);
        return (half & 0xfff0) == it->base && to->a < 12;
    case XS3_R0:
        return half == it->base;
    case XS3_RU6:
        to->a = (uint8_t)(half >> 6 & 15);
        to->number = half & 63;
        return (half & 0xfc00) == it->base && (strchr(it->traits, 'J') == NULL || to->a < 12);
    case XS3_U6:
        to->number = half & 63;
        return (half & 0xffc0) == it->base;
    case XS3_U10:
        to->number = half & 1023;
        return (half & 0xfc00) == it->base;
    default:
        return 0;
    }
}

static inline int xs3_match_long(int32_t i, uint32_t low, uint32_t high, xs3_decoded *to) {
    const xs3_instruction *it = &xs3_instructions[i];
    const uint32_t base = it->base >> 16;
    if (it->format == XS3_L2R) {
        return high == base && (low & 0x10) == (it->base & 0x10) && xs3_two(low, &to->a, &to->b);
    }
    if (it->format < XS3_LONG || !xs3_three(low, &to->a, &to->b, &to->c)) {
        return 0;
    }
    switch (it->format) {
    case XS3_L3R:
    case XS3_L2RUS:
    case XS3_L2RUSB:
        to->number = it->format == XS3_L2RUSB ? xs3_bit_position(to->c) : to->c;
        return high == base;
    case XS3_L4R:
    case XS3_L3RUS:
        to->number = to->c;
        to->d = (uint8_t)(high & 15);
        return (high & 0xfff0) == base && to->d < 12;
    case XS3_L5R:
    case XS3_L4RUSB:
        if ((high & 0xf810) != base || !xs3_two(high, &to->d, &to->e)) {
            return 0;
        }
        to->number = xs3_bit_position(to->e);
        return 1;
    case XS3_L6R:
        return (high & 0xf800) == base && xs3_three(high, &to->d, &to->e, &to->f);
    default:
        return 0;
    }
}

static inline void xs3_clear(xs3_decoded *to) {
    memset(to, 0, sizeof(*to));
}

static inline int xs3_decode_short(uint32_t half, xs3_decoded *to) {
    for (int32_t i = 1; i < XS3_KNOWN; i++) {
        xs3_clear(to);
        if (xs3_match_short(i, half, to)) {
            to->op = (uint8_t)i;
            return 1;
        }
    }
    return 0;
}

static inline int xs3_is_long(uint32_t low) {
    return low >= 0xf000;
}

static inline int xs3_decode_long(uint32_t low, uint32_t high, xs3_decoded *to) {
    if ((low & 0xfc00) == 0xf000) { /* ten more bits for the number of a short one */
        if (!xs3_decode_short(high, to)) {
            return 0;
        }
        const enum xs3_format format = xs3_instructions[to->op].format;
        if (format == XS3_U10) {
            to->number |= (low & 1023) << 10;
        } else if (format == XS3_RU6 || format == XS3_U6) {
            to->number |= (low & 1023) << 6;
        } else {
            return 0;
        }
        return 1;
    }
    for (int32_t i = 1; i < XS3_KNOWN; i++) {
        xs3_clear(to);
        if (xs3_match_long(i, low, high, to)) {
            to->op = (uint8_t)i;
            return 1;
        }
    }
    return 0;
}

/* The registers that an instruction reads (0) or writes (1), a bit each. */
static inline uint32_t xs3_touched(const xs3_decoded *it, int32_t writes) {
    static const char others[] = "BbSsDdCcLl"; /* capitals are read */
    static const uint8_t numbers[] = {11, 14, 13, 12, 15};
    const uint8_t operands[] = {it->a, it->b, it->c, it->d, it->e, it->f};
    const char *access = xs3_instructions[it->op].access;
    uint32_t mask = 0;
    for (int32_t i = 0; *access != '\0' && *access != ':'; i++, access++) {
        if (*access == 'x' || *access == (writes ? 'w' : 'r')) {
            mask |= 1U << operands[i];
        }
    }
    for (; *access != '\0'; access++) {
        const char *found = strchr(others, *access);
        if (found != NULL && ((found - others) & 1) == writes) {
            mask |= 1U << numbers[(found - others) / 2];
        }
    }
    return mask;
}

static inline int xs3_has_trait(const xs3_decoded *it, char trait) {
    return strchr(xs3_instructions[it->op].traits, trait) != NULL;
}

#endif
