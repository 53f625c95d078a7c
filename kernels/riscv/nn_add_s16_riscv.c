/* ADD and SUB on int16. */
#include <stdint.h>

#define NN_RISCV_ADD nn_add_s16_riscv
#define NN_RISCV_ADD_REST nn_add_s16
typedef int16_t nn_riscv_element;

#include "nn_riscv_add.h"
