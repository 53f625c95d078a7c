/* Stands in for an emitted network: what it does is chosen by its input. */
#ifndef HARNESS_NET_H
#define HARNESS_NET_H

#include <stdint.h>

#define PROBE_ARENA_BYTES 4096
#define PROBE_OUTPUT_OFFSET 1024

/* Two inputs: 8 bytes that choose (action, 3 unused, little-endian value), and 16 to echo. */
#define HARNESS_INPUTS 2
#define HARNESS_INPUT(i) probe_input(i)
#define HARNESS_INPUT_BYTES(i) ((i) == 0 ? 8U : 16U)
#define HARNESS_OUTPUTS 1
#define HARNESS_OUTPUT(i) probe_output(i)
#define HARNESS_OUTPUT_BYTES(i) 16U
#define HARNESS_ARENA_BYTES PROBE_ARENA_BYTES
#define HARNESS_WEIGHTS probe_weights
#define HARNESS_INIT(arena, bytes, weights) probe_init((arena), (bytes), (weights))
#define HARNESS_INVOKE() probe_invoke()

extern const uint8_t probe_weights[];
int probe_init(void *arena, uint32_t bytes, const void *weights);
int8_t *probe_input(int i);
int8_t *probe_output(int i);
int probe_invoke(void);

#endif
