/* Fourier transforms of real samples, for the type of samples that the including header defines.
 *
 * That header defines nn_scalar, nn_complex, and on them: nn_sum, nn_difference, nn_negated,
 * nn_half; nn_half_sum and nn_half_difference, whose sums wrap around in 32 bits; nn_scaled, a
 * product of real numbers; nn_product, of complex ones; and nn_share, a number divided by a radix,
 * which floats leave as it is. Two samples make a complex number. Stages transform these numbers in
 * place, in the order of KISS FFT: floats depend on it.
 */
#ifndef NN_FFT_H
#define NN_FFT_H

#include "nn_signal.h"

static inline nn_complex nn_add_pairs(nn_complex a, nn_complex b) {
    const nn_complex sum = {nn_sum(a.re, b.re), nn_sum(a.im, b.im)};
    return sum;
}

static inline nn_complex nn_subtract_pairs(nn_complex a, nn_complex b) {
    const nn_complex difference = {nn_difference(a.re, b.re), nn_difference(a.im, b.im)};
    return difference;
}

static inline nn_complex nn_share_pair(nn_complex a, int32_t radix) {
    const nn_complex share = {nn_share(a.re, radix), nn_share(a.im, radix)};
    return share;
}

/* a + i * b and a - i * b. */
static inline nn_complex nn_add_turned(nn_complex a, nn_complex b) {
    const nn_complex sum = {nn_difference(a.re, b.im), nn_sum(a.im, b.re)};
    return sum;
}

static inline nn_complex nn_subtract_turned(nn_complex a, nn_complex b) {
    const nn_complex difference = {nn_sum(a.re, b.im), nn_difference(a.im, b.re)};
    return difference;
}

static inline void nn_two(nn_complex *x, int32_t apart, const nn_complex *legs) {
    x[0] = nn_add_pairs(legs[0], legs[1]);
    x[apart] = nn_subtract_pairs(legs[0], legs[1]);
}

static inline void nn_three(nn_complex *x, int32_t apart, const nn_complex *legs, nn_complex root) {
    const nn_complex both = nn_add_pairs(legs[1], legs[2]);
    const nn_complex other = nn_subtract_pairs(legs[1], legs[2]);
    const nn_complex half = {nn_half(both.re), nn_half(both.im)};
    const nn_complex middle = nn_subtract_pairs(legs[0], half);
    const nn_complex turned = {nn_scaled(other.re, root.im), nn_scaled(other.im, root.im)};
    x[0] = nn_add_pairs(legs[0], both);
    x[apart] = nn_add_turned(middle, turned);
    x[2 * apart] = nn_subtract_turned(middle, turned);
}

static inline void nn_four(nn_complex *x, int32_t apart, const nn_complex *legs, int inverse) {
    const nn_complex difference = nn_subtract_pairs(legs[0], legs[2]);
    const nn_complex sum = nn_add_pairs(legs[0], legs[2]);
    const nn_complex both = nn_add_pairs(legs[1], legs[3]);
    const nn_complex other = nn_subtract_pairs(legs[1], legs[3]);
    x[0] = nn_add_pairs(sum, both);
    x[2 * apart] = nn_subtract_pairs(sum, both);
    x[inverse ? 3 * apart : apart] = nn_subtract_turned(difference, other);
    x[inverse ? apart : 3 * apart] = nn_add_turned(difference, other);
}

static inline void nn_five(nn_complex *x, int32_t apart, const nn_complex *legs, nn_complex a,
                           nn_complex b) {
    const nn_complex outer = nn_add_pairs(legs[1], legs[4]), inner = nn_add_pairs(legs[2], legs[3]);
    const nn_complex far = nn_subtract_pairs(legs[1], legs[4]);
    const nn_complex near = nn_subtract_pairs(legs[2], legs[3]);
    const nn_complex one = {
        nn_sum(nn_sum(legs[0].re, nn_scaled(outer.re, a.re)), nn_scaled(inner.re, b.re)),
        nn_sum(nn_sum(legs[0].im, nn_scaled(outer.im, a.re)), nn_scaled(inner.im, b.re))};
    const nn_complex two = {
        nn_sum(nn_sum(legs[0].re, nn_scaled(outer.re, b.re)), nn_scaled(inner.re, a.re)),
        nn_sum(nn_sum(legs[0].im, nn_scaled(outer.im, b.re)), nn_scaled(inner.im, a.re))};
    const nn_complex turned_one = {
        nn_sum(nn_scaled(far.im, a.im), nn_scaled(near.im, b.im)),
        nn_difference(nn_negated(nn_scaled(far.re, a.im)), nn_scaled(near.re, b.im))};
    const nn_complex turned_two = {
        nn_sum(nn_negated(nn_scaled(far.im, b.im)), nn_scaled(near.im, a.im)),
        nn_difference(nn_scaled(far.re, b.im), nn_scaled(near.re, a.im))};
    x[0] = nn_add_pairs(legs[0], nn_add_pairs(outer, inner));
    x[apart] = nn_subtract_pairs(one, turned_one);
    x[2 * apart] = nn_add_pairs(two, turned_two);
    x[3 * apart] = nn_subtract_pairs(two, turned_two);
    x[4 * apart] = nn_add_pairs(one, turned_one);
}

/* A part of a stage: `apart` transforms of `radix` numbers that lie `apart` from each other. */
static inline void nn_fft_part(nn_complex *x, int32_t radix, int32_t apart, const nn_complex *roots,
                               int32_t step, int inverse) {
    for (int32_t i = 0; i < apart; i++, x++) {
        nn_complex legs[5];
        legs[0] = nn_share_pair(x[0], radix);
        for (int32_t leg = 1; leg < radix; leg++) {
            const nn_complex share = nn_share_pair(x[leg * apart], radix);
            legs[leg] = nn_product(share, roots[leg * step * i]);
        }
        if (radix == 4) {
            nn_four(x, apart, legs, inverse);
        } else if (radix == 2) {
            nn_two(x, apart, legs);
        } else if (radix == 3) {
            nn_three(x, apart, legs, roots[step * apart]);
        } else {
            nn_five(x, apart, legs, roots[step * apart], roots[2 * step * apart]);
        }
    }
}

/* All stages, on numbers that lie in the order that nn_fft_place gives. */
static inline void nn_fft_stages(const nn_fft_geometry *g, nn_complex *x, const nn_complex *roots,
                                 int inverse) {
    const int32_t count = g->points / 2;
    int32_t apart = 1;
    for (int32_t stage = g->stages - 1; stage >= 0; stage--) {
        const int32_t radix = g->radices[stage], length = radix * apart;
        for (int32_t first = 0; first < count; first += length) {
            nn_fft_part(x + first, radix, apart, roots, count / length, inverse);
        }
        apart = length;
    }
}

/* A walk over the numbers in the order in which the stages take them. */
typedef struct {
    int32_t place;
    int32_t digits[NN_MAX_RADICES];
} nn_fft_walk;

static inline void nn_fft_step(const nn_fft_geometry *g, nn_fft_walk *walk) {
    int32_t weight = g->points / 2;
    for (int32_t stage = g->stages - 1; stage >= 0; stage--) {
        weight /= g->radices[stage];
        walk->place += weight;
        if (++walk->digits[stage] < g->radices[stage]) {
            return;
        }
        walk->place -= g->radices[stage] * weight;
        walk->digits[stage] = 0;
    }
}

/* Separates even from odd samples, in place: `x` has one number more afterwards. */
static inline void nn_fft_separate(const nn_fft_geometry *g, nn_complex *x,
                                   const nn_complex *roots) {
    const int32_t count = g->points / 2;
    const nn_complex first = nn_share_pair(x[0], 2);
    x[0].re = nn_sum(first.re, first.im);
    x[count].re = nn_difference(first.re, first.im);
    x[0].im = x[count].im = 0;
    for (int32_t k = 1; k <= count / 2; k++) {
        const nn_complex mirrored = {x[count - k].re, nn_negated(x[count - k].im)};
        const nn_complex near = nn_share_pair(x[k], 2), far = nn_share_pair(mirrored, 2);
        const nn_complex even = nn_add_pairs(near, far);
        const nn_complex odd = nn_product(nn_subtract_pairs(near, far), roots[k - 1]);
        x[k].re = nn_half_sum(even.re, odd.re);
        x[k].im = nn_half_sum(even.im, odd.im);
        x[count - k].re = nn_half_difference(even.re, odd.re);
        x[count - k].im = nn_half_difference(odd.im, even.im);
    }
}

/* The numbers of even and odd samples from a spectrum. */
static inline void nn_fft_join(const nn_fft_geometry *g, const nn_complex *spectrum, nn_complex *x,
                               const nn_complex *roots) {
    const int32_t count = g->points / 2;
    x[0].re = nn_sum(spectrum[0].re, spectrum[count].re);
    x[0].im = nn_difference(spectrum[0].re, spectrum[count].re);
    x[0] = nn_share_pair(x[0], 2);
    for (int32_t k = 1; k <= count / 2; k++) {
        const nn_complex mirrored = {spectrum[count - k].re, nn_negated(spectrum[count - k].im)};
        const nn_complex near = nn_share_pair(spectrum[k], 2), far = nn_share_pair(mirrored, 2);
        const nn_complex even = nn_add_pairs(near, far);
        const nn_complex odd = nn_product(nn_subtract_pairs(near, far), roots[k - 1]);
        const nn_complex other = nn_subtract_pairs(even, odd);
        x[k] = nn_add_pairs(even, odd);
        x[count - k].re = other.re;
        x[count - k].im = nn_negated(other.im);
    }
}

static inline void nn_fft_forward(const nn_fft_geometry *g, const void *constants,
                                  const nn_scalar *in, nn_scalar *out) {
    const nn_complex *roots = constants;
    const int32_t count = g->points / 2;
    for (int32_t frame = 0; frame < g->frames; frame++) {
        nn_complex *x = (nn_complex *)(void *)out;
        nn_fft_walk walk = {0};
        for (int32_t i = 0; i < count; i++) {
            const int32_t sample = 2 * walk.place;
            x[i].re = sample < g->samples ? in[sample] : 0;
            x[i].im = sample + 1 < g->samples ? in[sample + 1] : 0;
            nn_fft_step(g, &walk);
        }
        nn_fft_stages(g, x, roots, 0);
        nn_fft_separate(g, x, roots + count);
        in += g->samples;
        out += g->points + 2;
    }
}

static inline void nn_fft_inverse(const nn_fft_geometry *g, const void *constants,
                                  const nn_scalar *in, nn_scalar *out, void *scratch) {
    const nn_complex *roots = constants;
    nn_complex *joined = scratch;
    const int32_t count = g->points / 2;
    for (int32_t frame = 0; frame < g->frames; frame++) {
        nn_complex *x = (nn_complex *)(void *)out;
        nn_fft_walk walk = {0};
        nn_fft_join(g, (const nn_complex *)(const void *)in, joined, roots + count);
        for (int32_t i = 0; i < count; i++) {
            x[i] = joined[walk.place];
            nn_fft_step(g, &walk);
        }
        nn_fft_stages(g, x, roots, 1);
        in += g->points + 2;
        out += g->points;
    }
}

#endif
