/* One operation of the vector unit's model, by its number in test_vpu_model.py. */
#include "../../kernels/xcore_vpu/nn_vpu.h"

void vpu_driver(int32_t operation, nn_vpu *v, void *memory, int32_t argument);

void vpu_driver(int32_t operation, nn_vpu *v, void *memory, int32_t argument) {
    switch (operation) {
    case 0:
        nn_vpu_vsetc(v, argument);
        break;
    case 1:
        nn_vpu_vclrdr(v);
        break;
    case 2:
        nn_vpu_vldr(v, memory);
        break;
    case 3:
        nn_vpu_vldd(v, memory);
        break;
    case 4:
        nn_vpu_vldc(v, memory);
        break;
    case 5:
        nn_vpu_vstr(v, memory);
        break;
    case 6:
        nn_vpu_vstd(v, memory);
        break;
    case 7:
        nn_vpu_vstc(v, memory);
        break;
    case 8:
        nn_vpu_vstrpv(v, memory, (uint32_t)argument);
        break;
    case 9:
        nn_vpu_vlmacc(v, memory);
        break;
    case 10:
        nn_vpu_vlmaccr(v, memory);
        break;
    case 11:
        nn_vpu_vlsat(v, memory);
        break;
    case 12:
        nn_vpu_vadddr(v);
        break;
    case 13:
        nn_vpu_vladd(v, memory);
        break;
    case 14:
        nn_vpu_vlsub(v, memory);
        break;
    case 15:
        nn_vpu_vlmul(v, memory);
        break;
    case 16:
        nn_vpu_vlashr(v, memory, argument);
        break;
    case 17:
        nn_vpu_vpos(v);
        break;
    case 18:
        nn_vpu_vsign(v);
        break;
    case 19:
        nn_vpu_vdepth1(v);
        break;
    case 20:
        nn_vpu_vdepth8(v);
        break;
    case 21:
        nn_vpu_vdepth16(v);
        break;
    default:
        __builtin_trap();
    }
}
