/* MUL. */
#include <stdint.h>

#define NN_RISCV_MUL nn_mul_s8_riscv
#define NN_RISCV_MUL_REST nn_mul_s8
typedef int8_t nn_riscv_element;

#include "nn_riscv_mul.h"
