/* MUL on int16. */
#include <stdint.h>

#define NN_RISCV_MUL nn_mul_s16_riscv
#define NN_RISCV_MUL_REST nn_mul_s16
typedef int16_t nn_riscv_element;

#include "nn_riscv_mul.h"
