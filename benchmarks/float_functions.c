/* The largest error of exp, log or tanh of float32 over inputs whose bits lie between two numbers:
 * `errors exp FIRST LAST STEP`. The true value is double precision. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn_float.h"
#include "nn_real.h"

int main(int count, char **words) {
    double worst = 0;
    float where = 0;
    if (count != 5) {
        return 2;
    }
    const uint64_t last = strtoull(words[3], NULL, 0), step = strtoull(words[4], NULL, 0);
    for (uint64_t bits = strtoull(words[2], NULL, 0); bits <= last; bits += step) {
        const float x = nn_float_of((uint32_t)bits);
        const int exponential = words[1][0] == 'e', logarithm = words[1][0] == 'l';
        const float y = exponential ? nn_real_exp(x) : logarithm ? nn_real_log(x) : nn_real_tanh(x);
        const double right = exponential ? exp(x) : logarithm ? log(x) : tanh(x);
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
