/* Functions of float32, in integers, so with the same bits on every core. Each is within 0.54 units
 * in the last place of the true value, erfc within 0.62, powers within 1. */
#ifndef NN_REAL_H
#define NN_REAL_H

float nn_real_exp(float x);
float nn_real_log(float x);
float nn_real_tanh(float x);
float nn_real_expm1(float x); /* exp(x) - 1 of numbers up to 0; other numbers as they are */
float nn_real_erf(float x);
float nn_real_erfc(float x);
float nn_real_pow(float base, float exponent);

#endif
