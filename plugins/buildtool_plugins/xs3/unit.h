/* What the vector unit does beyond nn_vpu_model.h: the running magnitude, binary and complex
 * products, butterflies, and the readings in which the vendor's public models differ. Elements of
 * 32 bits where not said. */
#ifndef XS3_UNIT_H
#define XS3_UNIT_H

#include "nn_vpu.h"

#include <stdint.h>

typedef struct {
    nn_vpu v;
    uint32_t magnitude; /* bits of the largest value stored since VSETC, without the sign */
    uint32_t shift;     /* 0 none, 1 left, 2 right: VLADSB and butterflies */
    int32_t rounds;     /* VLASHR */
    int32_t saturates;  /* VLMACCR in 8 bits, after every product */
} xs3_unit;

static inline uint32_t unit_control(const xs3_unit *u) {
    return (uint32_t)u->v.type | u->shift << 6 | u->magnitude;
}

/* 0x000, 0x100, 0x200 are elements of 32, 16, 8 bits; 0 where the word is another. */
static inline int unit_set_control(xs3_unit *u, uint32_t word) {
    if ((word & ~0x3dfU) != 0 || (word & 0x300) == 0x300 || (word >> 6 & 3) == 3) {
        return 0;
    }
    u->v.type = (int32_t)(word & 0x300);
    u->shift = word >> 6 & 3;
    u->magnitude = 0;
    return 1;
}

static inline void unit_watch(xs3_unit *u, const nn_vpu_register *stored) {
    uint32_t bits = 0;
    if (u->v.type == NN_VPU_S8) {
        for (int32_t i = 0; i < 32; i++) {
            bits |= (uint32_t)(stored->b[i] ^ stored->b[i] >> 7);
        }
    } else if (u->v.type == NN_VPU_S16) {
        for (int32_t i = 0; i < 16; i++) {
            bits |= (uint32_t)(stored->h[i] ^ stored->h[i] >> 15);
        }
    } else {
        for (int32_t i = 0; i < 8; i++) {
            bits |= (uint32_t)(stored->w[i] ^ stored->w[i] >> 31);
        }
    }
    const uint32_t needed = bits == 0 ? 0 : 32U - (uint32_t)__builtin_clz(bits);
    if (needed > u->magnitude) {
        u->magnitude = needed;
    }
}

static inline void unit_vlashr(xs3_unit *u, const void *address, int32_t right) {
    nn_vpu *v = &u->v;
    if (!u->rounds || right <= 0) {
        nn_vpu_vlashr(v, address, right);
        return;
    }
    const nn_vpu_register m = nn_vpu_read(address);
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        nn_vpu_put(v, i, nn_vpu_round(nn_vpu_get(v, &m, i), right > 40 ? 40 : right));
    }
}

static inline void unit_vlmaccr(xs3_unit *u, const void *address) {
    nn_vpu *v = &u->v;
    if (!u->saturates || v->type != NN_VPU_S8) {
        nn_vpu_vlmaccr(v, address);
        return;
    }
    const nn_vpu_register m = nn_vpu_read(address);
    int64_t sum = nn_vpu_acc(v, 15);
    for (int32_t i = 0; i < 32; i++) {
        sum = nn_vpu_sat(sum + v->c.b[i] * m.b[i], INT32_MAX);
    }
    memmove(v->d.h + 1, v->d.h, sizeof(v->d) - 2);
    memmove(v->r.h + 1, v->r.h, sizeof(v->r) - 2);
    nn_vpu_set_acc(v, 0, sum);
}

/* Bits are -1 and 1: 256 of them, half of all that differ is taken away. */
static inline void unit_vlmaccr1(xs3_unit *u, const void *address) {
    nn_vpu *v = &u->v;
    const nn_vpu_register m = nn_vpu_read(address);
    int32_t same = 0;
    for (int32_t i = 0; i < 8; i++) {
        same += __builtin_popcount(~(uint32_t)(v->c.w[i] ^ m.w[i]));
    }
    const int64_t sum = nn_vpu_acc(v, 15) + same - 128;
    memmove(v->d.h + 1, v->d.h, sizeof(v->d) - 2);
    memmove(v->r.h + 1, v->r.h, sizeof(v->r) - 2);
    nn_vpu_set_acc(v, 0, sum);
}

static inline int32_t unit_shifted(const xs3_unit *u, int64_t value) {
    if (u->shift == 1) {
        value *= 2;
    } else if (u->shift == 2) {
        value = nn_vpu_round(value, 1);
    }
    return (int32_t)nn_vpu_sat(value, nn_vpu_most(&u->v));
}

static inline void unit_store_element(const nn_vpu *v, nn_vpu_register *to, int32_t i,
                                      int32_t value) {
    if (v->type == NN_VPU_S8) {
        to->b[i] = (int8_t)value;
    } else if (v->type == NN_VPU_S16) {
        to->h[i] = (int16_t)value;
    } else {
        to->w[i] = value;
    }
}

static inline void unit_vladsb(xs3_unit *u, const void *address) {
    nn_vpu *v = &u->v;
    const nn_vpu_register m = nn_vpu_read(address), r = v->r;
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        const int64_t a = nn_vpu_get(v, &m, i), b = nn_vpu_get(v, &r, i);
        unit_store_element(v, &v->r, i, unit_shifted(u, a + b));
        unit_store_element(v, &v->d, i, unit_shifted(u, a - b));
    }
}

/* vR of four complex numbers: their real (0) or imaginary parts (1) of vD * vC, or of vD *
 * conj(vC)'s mirror, vC * conj(vD). */
static inline void unit_complex(xs3_unit *u, int32_t imaginary, int32_t conjugate) {
    nn_vpu *v = &u->v;
    for (int32_t k = 0; k < 8; k += 2) {
        const int64_t dr = v->d.w[k], di = v->d.w[k + 1], cr = v->c.w[k], ci = v->c.w[k + 1];
        const int64_t first = nn_vpu_round(dr * (imaginary ? ci : cr), 30);
        const int64_t second = nn_vpu_round(di * (imaginary ? cr : ci), 30);
        const int64_t sum = !imaginary ? (conjugate ? second + first : first - second)
                                       : (conjugate ? second - first : first + second);
        v->r.w[k + imaginary] = (int32_t)nn_vpu_sat(sum, INT32_MAX);
    }
}

typedef struct {
    int64_t re, im;
} unit_number;

/* Butterflies of four complex numbers in vD: `inverse` turns the other way; the two orders differ
 * in where the tangled pairs lie (in time: neighbours first; in frequency: halves first). */
static inline void unit_butterfly(xs3_unit *u, int32_t in_time, int32_t inverse) {
    nn_vpu *v = &u->v;
    unit_number x[4], s[4], y[4];
    for (int32_t i = 0; i < 4; i++) {
        x[i].re = v->d.w[2 * i];
        x[i].im = v->d.w[2 * i + 1];
    }
    const int32_t near = in_time ? 1 : 2, far = in_time ? 2 : 1; /* partners of the two stages */
    s[0] = (unit_number){x[0].re + x[near].re, x[0].im + x[near].im};
    s[near] = (unit_number){x[0].re - x[near].re, x[0].im - x[near].im};
    s[far] = (unit_number){x[far].re + x[3].re, x[far].im + x[3].im};
    s[3] = (unit_number){x[far].re - x[3].re, x[far].im - x[3].im};
    s[3] = inverse ? (unit_number){-s[3].im, s[3].re} : (unit_number){s[3].im, -s[3].re};
    y[0] = (unit_number){s[0].re + s[far].re, s[0].im + s[far].im};
    y[far] = (unit_number){s[0].re - s[far].re, s[0].im - s[far].im};
    y[near] = (unit_number){s[near].re + s[3].re, s[near].im + s[3].im};
    y[3] = (unit_number){s[near].re - s[3].re, s[near].im - s[3].im};
    for (int32_t i = 0; i < 4; i++) {
        v->d.w[2 * i] = unit_shifted(u, y[i].re);
        v->d.w[2 * i + 1] = unit_shifted(u, y[i].im);
    }
}

#endif
