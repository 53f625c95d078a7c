/* The largest error of a function of float32 over inputs whose bits lie between two numbers:
 * `errors exp FIRST LAST STEP`. The true value is double precision. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_float.h"
#include "nn_real.h"

typedef struct {
    const char *name;
    float (*ours)(float x);
    double (*right)(double x);
} function;

static const function functions[] = {{"exp", nn_real_exp, exp},
                                     {"log", nn_real_log, log},
                                     {"tanh", nn_real_tanh, tanh},
                                     {"expm1", nn_real_expm1, expm1},
                                     {"erf", nn_real_erf, erf},
                                     {"erfc", nn_real_erfc, erfc}};

int main(int count, char **words) {
    double worst = 0;
    float where = 0;
    const function *f = functions;
    if (count != 5) {
        return 2;
    }
    while (strcmp(f->name, words[1]) != 0) {
        f++;
    }
    const uint64_t last = strtoull(words[3], NULL, 0), step = strtoull(words[4], NULL, 0);
    for (uint64_t bits = strtoull(words[2], NULL, 0); bits <= last; bits += step) {
        const float x = nn_float_of((uint32_t)bits);
        const float y = f->ours(x);
        const double right = f->right(x);
        int exponent;
        if (isnan(x) || isnan(right) || right == 0 || isinf((float)right) || isinf(y)) {
            if (!isnan(right) && y != (float)right) {
                printf("%a: %a, not %a\n", (double)x, (double)y, right);
                return 1;
            }
            continue;
        }
        frexp(right, &exponent);
        const int unit = exponent - 24 < -149 ? -149 : exponent - 24;
        const double error = fabs((double)y - right) / ldexp(1, unit);
        if (error > worst) {
            worst = error;
            where = x;
        }
    }
    printf("%.4f at %g\n", worst, (double)where);
    return 0;
}
