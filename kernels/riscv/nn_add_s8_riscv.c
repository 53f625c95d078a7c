/* ADD and SUB. */
#include <stdint.h>

#define NN_RISCV_ADD nn_add_s8_riscv
#define NN_RISCV_ADD_REST nn_add_s8
typedef int8_t nn_riscv_element;

#include "nn_riscv_add.h"
