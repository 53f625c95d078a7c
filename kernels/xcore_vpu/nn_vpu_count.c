/* The counters of nn_vpu_count.h. */
#include "nn_vpu_count.h"

#ifdef NN_VPU_COUNT
nn_vpu_counts nn_vpu_counter;

nn_vpu_counts nn_vpu_counted(void) {
    return nn_vpu_counter;
}
#else
nn_vpu_counts nn_vpu_counted(void) {
    const nn_vpu_counts none = {0, 0, 0};
    return none;
}
#endif
