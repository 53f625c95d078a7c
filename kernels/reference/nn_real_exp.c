/* exp of float32, in integers. */
#include "nn_real.h"
#include "nn_real_parts.h"

float nn_real_exp(float x) {
    return nn_real_exponential(x);
}
