/* The VPU as portable C: what nn_vpu.h describes, for a little-endian host.
 *
 * It follows the chip's documents: VLASHR rounds down, all other roundings go to the nearest and
 * halves up, every saturation is symmetric, and VLSUB takes vR from memory. Intermediate values
 * are of 64 bits. In VLMACCR the sum is saturated once, not after every product.
 *
 * Unless NDEBUG is defined, it stops at an address that the unit would refuse, and at a type that
 * an operation does not know.
 */
#ifndef NN_VPU_MODEL_H
#define NN_VPU_MODEL_H

#include <stdint.h>
#include <string.h>

#ifdef NDEBUG
#define NN_VPU_REQUIRE(condition) ((void)(condition))
#else
#define NN_VPU_REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

#define NN_VPU_OP static inline __attribute__((unused))

typedef union {
    int8_t b[32];
    int16_t h[16];
    int32_t w[8];
} nn_vpu_register;

typedef struct {
    nn_vpu_register r, d, c;
    int32_t type;
} nn_vpu;

/* Counts the issue, and checks its address. */
NN_VPU_OP void nn_vpu_begin(const void *address) {
    NN_VPU_ISSUE();
    NN_VPU_REQUIRE(((uintptr_t)address & 3) == 0);
}

NN_VPU_OP nn_vpu_register nn_vpu_read(const void *address) {
    nn_vpu_register m;
    nn_vpu_begin(address);
    memcpy(&m, address, sizeof(m));
    return m;
}

NN_VPU_OP void nn_vpu_write(void *address, const nn_vpu_register *from) {
    nn_vpu_begin(address);
    memcpy(address, from, sizeof(*from));
}

NN_VPU_OP int64_t nn_vpu_sat(int64_t value, int64_t most) {
    return value > most ? most : value < -most ? -most : value;
}

/* value / 2^shift to the nearest, halves up; shift 1 to 62. */
NN_VPU_OP int64_t nn_vpu_round(int64_t value, int32_t shift) {
    return ((value >> (shift - 1)) + 1) >> 1;
}

/* ---- elements and accumulators ------------------------------------------------------------- */

NN_VPU_OP int32_t nn_vpu_elements(const nn_vpu *v) {
    return v->type == NN_VPU_S8 ? 32 : v->type == NN_VPU_S16 ? 16 : 8;
}

NN_VPU_OP int64_t nn_vpu_most(const nn_vpu *v) {
    return v->type == NN_VPU_S8 ? INT8_MAX : v->type == NN_VPU_S16 ? INT16_MAX : INT32_MAX;
}

NN_VPU_OP int64_t nn_vpu_get(const nn_vpu *v, const nn_vpu_register *from, int32_t i) {
    return v->type == NN_VPU_S8 ? from->b[i] : v->type == NN_VPU_S16 ? from->h[i] : from->w[i];
}

/* Saturates. */
NN_VPU_OP void nn_vpu_put(nn_vpu *v, int32_t i, int64_t value) {
    value = nn_vpu_sat(value, nn_vpu_most(v));
    if (v->type == NN_VPU_S8) {
        v->r.b[i] = (int8_t)value;
    } else if (v->type == NN_VPU_S16) {
        v->r.h[i] = (int16_t)value;
    } else {
        v->r.w[i] = (int32_t)value;
    }
}

NN_VPU_OP int64_t nn_vpu_acc(const nn_vpu *v, int32_t i) {
    if (v->type == NN_VPU_S32) {
        return (int8_t)v->d.w[i] * ((int64_t)1 << 32) + (uint32_t)v->r.w[i]; /* 40 bits */
    }
    return (int32_t)v->d.h[i] * 65536 + (uint16_t)v->r.h[i];
}

/* Saturates. */
NN_VPU_OP void nn_vpu_set_acc(nn_vpu *v, int32_t i, int64_t value) {
    if (v->type == NN_VPU_S32) {
        value = nn_vpu_sat(value, ((int64_t)1 << 39) - 1);
        v->d.w[i] = (int32_t)(value >> 32);
        v->r.w[i] = (int32_t)(uint32_t)value;
        return;
    }
    value = nn_vpu_sat(value, INT32_MAX);
    v->d.h[i] = (int16_t)(value >> 16);
    v->r.h[i] = (int16_t)(uint16_t)value;
}

/* ---- types, loads and stores --------------------------------------------------------------- */

NN_VPU_OP void nn_vpu_vsetc(nn_vpu *v, int32_t type) {
    NN_VPU_ISSUE();
    NN_VPU_REQUIRE(type == NN_VPU_S8 || type == NN_VPU_S16 || type == NN_VPU_S32);
    v->type = type;
}

NN_VPU_OP void nn_vpu_vclrdr(nn_vpu *v) {
    NN_VPU_ISSUE();
    memset(&v->r, 0, sizeof(v->r));
    memset(&v->d, 0, sizeof(v->d));
}

NN_VPU_OP void nn_vpu_vldr(nn_vpu *v, const void *address) {
    v->r = nn_vpu_read(address);
}

NN_VPU_OP void nn_vpu_vldd(nn_vpu *v, const void *address) {
    v->d = nn_vpu_read(address);
}

NN_VPU_OP void nn_vpu_vldc(nn_vpu *v, const void *address) {
    v->c = nn_vpu_read(address);
}

NN_VPU_OP void nn_vpu_vstr(const nn_vpu *v, void *address) {
    nn_vpu_write(address, &v->r);
}

NN_VPU_OP void nn_vpu_vstd(const nn_vpu *v, void *address) {
    nn_vpu_write(address, &v->d);
}

NN_VPU_OP void nn_vpu_vstc(const nn_vpu *v, void *address) {
    nn_vpu_write(address, &v->c);
}

NN_VPU_OP void nn_vpu_vstrpv(const nn_vpu *v, void *address, uint32_t mask) {
    int8_t *to = (int8_t *)address;
    nn_vpu_begin(address);
    for (int32_t i = 0; i < 32; i++) {
        if ((mask >> i) & 1) {
            to[i] = v->r.b[i];
        }
    }
}

/* ---- accumulators -------------------------------------------------------------------------- */

NN_VPU_OP void nn_vpu_vlmacc(nn_vpu *v, const void *address) {
    nn_vpu_register m;
    nn_vpu_begin(address);
    memcpy(&m, address, v->type == NN_VPU_S8 ? 16 : sizeof(m));
    if (v->type == NN_VPU_S32) {
        for (int32_t i = 0; i < 8; i++) {
            nn_vpu_set_acc(v, i, nn_vpu_acc(v, i) + nn_vpu_round((int64_t)v->c.w[i] * m.w[i], 30));
        }
        return;
    }
    for (int32_t i = 0; i < NN_VPU_ACC; i++) {
        const int32_t product =
            v->type == NN_VPU_S8 ? v->c.b[i] * m.b[i] : (int32_t)v->c.h[i] * m.h[i];
        nn_vpu_set_acc(v, i, nn_vpu_acc(v, i) + product);
    }
}

NN_VPU_OP void nn_vpu_vlmaccr(nn_vpu *v, const void *address) {
    const nn_vpu_register m = nn_vpu_read(address);
    int64_t sum;
    if (v->type == NN_VPU_S8) {
        int32_t dot = 0;
        for (int32_t i = 0; i < 32; i++) {
            dot += v->c.b[i] * m.b[i];
        }
        sum = nn_vpu_acc(v, 15) + dot;
    } else if (v->type == NN_VPU_S16) {
        sum = nn_vpu_acc(v, 15);
        for (int32_t i = 0; i < 16; i++) {
            sum += (int32_t)v->c.h[i] * m.h[i];
        }
    } else {
        sum = nn_vpu_acc(v, 7);
        for (int32_t i = 0; i < 8; i++) {
            sum += nn_vpu_round((int64_t)v->c.w[i] * m.w[i], 30);
        }
    }
    if (v->type == NN_VPU_S32) {
        memmove(v->d.w + 1, v->d.w, sizeof(v->d) - 4);
        memmove(v->r.w + 1, v->r.w, sizeof(v->r) - 4);
    } else {
        memmove(v->d.h + 1, v->d.h, sizeof(v->d) - 2);
        memmove(v->r.h + 1, v->r.h, sizeof(v->r) - 2);
    }
    nn_vpu_set_acc(v, 0, sum);
}

/* A shift of 32 and more leaves the sign: -1 or 0. */
NN_VPU_OP void nn_vpu_vlsat(nn_vpu *v, const void *address) {
    const nn_vpu_register m = nn_vpu_read(address);
    const int32_t count = v->type == NN_VPU_S32 ? 8 : NN_VPU_ACC;
    const nn_vpu sums = *v;
    memset(&v->r, 0, sizeof(v->r));
    memset(&v->d, 0, sizeof(v->d));
    for (int32_t i = 0; i < count; i++) {
        const uint32_t shift = v->type == NN_VPU_S32 ? (uint32_t)m.w[i] : (uint16_t)m.h[i];
        int64_t acc = nn_vpu_acc(&sums, i);
        if (shift >= 32) {
            acc = acc < 0 ? -1 : 0;
        } else if (shift > 0) {
            acc = nn_vpu_round(acc, (int32_t)shift);
        }
        nn_vpu_put(v, i, acc);
    }
}

NN_VPU_OP void nn_vpu_vadddr(nn_vpu *v) {
    int64_t sum = 0;
    const int32_t count = v->type == NN_VPU_S32 ? 8 : NN_VPU_ACC;
    NN_VPU_ISSUE();
    for (int32_t i = 0; i < count; i++) {
        sum += nn_vpu_acc(v, i);
    }
    memset(&v->r, 0, sizeof(v->r));
    memset(&v->d, 0, sizeof(v->d));
    nn_vpu_set_acc(v, 0, sum);
}

/* ---- elements ------------------------------------------------------------------------------ */

NN_VPU_OP void nn_vpu_vladd(nn_vpu *v, const void *address) {
    const nn_vpu_register m = nn_vpu_read(address);
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        nn_vpu_put(v, i, nn_vpu_get(v, &v->r, i) + nn_vpu_get(v, &m, i));
    }
}

NN_VPU_OP void nn_vpu_vlsub(nn_vpu *v, const void *address) {
    const nn_vpu_register m = nn_vpu_read(address);
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        nn_vpu_put(v, i, nn_vpu_get(v, &m, i) - nn_vpu_get(v, &v->r, i));
    }
}

NN_VPU_OP void nn_vpu_vlmul(nn_vpu *v, const void *address) {
    const nn_vpu_register m = nn_vpu_read(address);
    const int32_t shift = v->type == NN_VPU_S8 ? 6 : v->type == NN_VPU_S16 ? 14 : 30;
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        nn_vpu_put(v, i, nn_vpu_round(nn_vpu_get(v, &v->r, i) * nn_vpu_get(v, &m, i), shift));
    }
}

NN_VPU_OP void nn_vpu_vlashr(nn_vpu *v, const void *address, int32_t right) {
    const nn_vpu_register m = nn_vpu_read(address);
    const int32_t up = right >= 0 ? 0 : right < -32 ? 32 : -right;
    const int32_t down = right <= 0 ? 0 : right > 32 ? 32 : right;
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        /* 32 bits and 32 places up are within 64 */
        nn_vpu_put(v, i, nn_vpu_get(v, &m, i) * ((int64_t)1 << up) >> down);
    }
}

NN_VPU_OP void nn_vpu_vpos(nn_vpu *v) {
    NN_VPU_ISSUE();
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        const int64_t x = nn_vpu_get(v, &v->r, i);
        nn_vpu_put(v, i, x > 0 ? x : 0);
    }
}

NN_VPU_OP void nn_vpu_vsign(nn_vpu *v) {
    const int64_t one = (nn_vpu_most(v) + 1) / 2;
    NN_VPU_ISSUE();
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        nn_vpu_put(v, i, nn_vpu_get(v, &v->r, i) >= 0 ? one : -one);
    }
}

NN_VPU_OP void nn_vpu_vdepth1(nn_vpu *v) {
    uint32_t bits = 0;
    NN_VPU_ISSUE();
    for (int32_t i = 0; i < nn_vpu_elements(v); i++) {
        bits |= (uint32_t)(nn_vpu_get(v, &v->r, i) < 0) << i;
    }
    memset(&v->r, 0, sizeof(v->r));
    v->r.w[0] = (int32_t)bits;
}

/* From elements of 16 and 32 bits. */
NN_VPU_OP void nn_vpu_vdepth8(nn_vpu *v) {
    const nn_vpu_register from = v->r;
    const int32_t count = nn_vpu_elements(v);
    NN_VPU_ISSUE();
    NN_VPU_REQUIRE(v->type != NN_VPU_S8);
    memset(&v->r, 0, sizeof(v->r));
    for (int32_t i = 0; i < count; i++) {
        const int32_t shift = v->type == NN_VPU_S16 ? 8 : 24;
        v->r.b[i] = (int8_t)nn_vpu_sat(nn_vpu_round(nn_vpu_get(v, &from, i), shift), INT8_MAX);
    }
}

/* From elements of 32 bits. */
NN_VPU_OP void nn_vpu_vdepth16(nn_vpu *v) {
    const nn_vpu_register from = v->r;
    NN_VPU_ISSUE();
    NN_VPU_REQUIRE(v->type == NN_VPU_S32);
    memset(&v->r, 0, sizeof(v->r));
    for (int32_t i = 0; i < 8; i++) {
        v->r.h[i] = (int16_t)nn_vpu_sat(nn_vpu_round(from.w[i], 16), INT16_MAX);
    }
}

#endif
