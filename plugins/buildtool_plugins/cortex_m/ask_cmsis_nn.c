/* Asks a CMSIS-NN for scratch, on the machine that plans: compiled with the library's size
 * functions and -DNN_CMSIS_NN_MVE=0 or 1.
 *
 *   ask conv|depthwise|avg_pool kh kw sh sw dh dw pt pl ih iw cin oh ow cout    prints bytes
 */
#include "nn_cmsis_nn_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KH, KW, SH, SW, DH, DW, PT, PL, IH, IW, CIN, OH, OW, COUT, VALUES };

int main(int argc, char **argv) {
    int32_t v[VALUES];
    if (argc != 2 + VALUES) {
        return 2;
    }
    for (int i = 0; i < VALUES; i++) {
        v[i] = (int32_t)strtol(argv[2 + i], NULL, 10);
    }
    const nn_conv_geometry g = {.kernel_h = v[KH],
                                .kernel_w = v[KW],
                                .stride_h = v[SH],
                                .stride_w = v[SW],
                                .dilation_h = v[DH],
                                .dilation_w = v[DW],
                                .pad_top = v[PT],
                                .pad_left = v[PL]};
    const nn_cmsis_nn_shape in = {v[IH], v[IW], v[CIN]}, out = {v[OH], v[OW], v[COUT]};
    int32_t bytes;
    if (strcmp(argv[1], "conv") == 0) {
        const nn_cmsis_nn_conv conv = nn_cmsis_nn_open_conv(&g, in, out);
        bytes = nn_cmsis_nn_conv_bytes(&conv);
    } else if (strcmp(argv[1], "depthwise") == 0) {
        const nn_cmsis_nn_depthwise conv = nn_cmsis_nn_open_depthwise(&g, in, out);
        bytes = nn_cmsis_nn_depthwise_bytes(&conv);
    } else if (strcmp(argv[1], "avg_pool") == 0) {
        bytes = nn_cmsis_nn_avg_pool_bytes(in, out);
    } else {
        return 2;
    }
    return printf("%ld\n", (long)bytes) < 0;
}
