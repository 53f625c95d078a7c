/* What test_firmware.py asks of two networks that share an arena. */
#include "first.h"
#include "first_quantization.h"
#include "nn_trace.h"
#include "second.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGER (FIRST_ARENA_BYTES > SECOND_ARENA_BYTES ? FIRST_ARENA_BYTES : SECOND_ARENA_BYTES)

static int8_t arena[LARGER + 16] __attribute__((aligned(64)));
static uint8_t image[FIRST_WEIGHTS_BYTES + 16] __attribute__((aligned(16)));
static const size_t arena_bytes = FIRST_ARENA_BYTES;

void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes) {
    (void)tensor, (void)offset, (void)data, (void)bytes;
}

static void say(const char *name, long value) {
    printf("%s=%ld\n", name, value);
}

static void hex(const char *name, const int8_t *data, int bytes) {
    printf("%s=", name);
    for (int i = 0; i < bytes; i++) {
        printf("%02x", (uint8_t)data[i]);
    }
    printf("\n");
}

/* init with byte `place` of the image changed */
static long init_with(size_t place, uint8_t change) {
    memcpy(image, first_weights, FIRST_WEIGHTS_BYTES);
    image[place] ^= change;
    const nn_status status = first_init(arena, arena_bytes, image);
    if (status != NN_OK && first_invoke() != NN_ERROR_NOT_INITIALISED) {
        say("ran_after_refusal", (long)place);
    }
    return status;
}

/* init with a word of the header changed, whose CRC is right again */
static long init_sealed(uint32_t place, uint32_t change) {
    memcpy(image, first_weights, FIRST_WEIGHTS_BYTES);
    nn_image_header *header = (void *)image;
    ((uint32_t *)(void *)image)[place / 4] ^= change;
    header->header_crc32 = nn_crc32(0, header, offsetof(nn_image_header, header_crc32), NULL);
    const nn_status status = first_init(arena, arena_bytes, image);
    if (status != NN_OK && first_invoke() != NN_ERROR_NOT_INITIALISED) {
        say("ran_after_refusal", (long)place);
    }
    return status;
}

/* Each bit by itself and some numbers, in every word before the header's CRC. */
static void altered_headers(void) {
    const uint32_t wholes[] = {0xFFFFFFFFU, 3, 0x01010101U, 0xFFFF0000U};
    for (uint32_t place = 0; place < offsetof(nn_image_header, header_crc32); place += 4) {
        long accepted = 0;
        for (uint32_t n = 0; n < 36; n++) {
            accepted += init_sealed(place, n < 32 ? 1U << n : wholes[n - 32]) == NN_OK;
        }
        char name[32];
        sprintf(name, "accepted_at_%u", (unsigned)place);
        say(name, accepted);
    }
    say("sealed_size", init_sealed(12, 16));
    say("sealed_inputs", init_sealed(20, 1));
    say("sealed_outputs", init_sealed(24, 1));
    say("sealed_reserved", init_sealed(56, 1));
    say("damaged_reserved", init_with(56, 1));
}

static void before_init(void) {
    say("invoke_before_init", first_invoke());
    say("input_before_init", first_input(0) != NULL);
    say("output_before_init", first_output(0) != NULL);
    const nn_quantization none = first_input_quantization(0);
    say("quantization_before_init", none.scale != 0.0f || none.zero_point != 0);
}

static void refusals(void) {
    say("arena_null", first_init(NULL, arena_bytes, first_weights));
    say("arena_short", first_init(arena, arena_bytes - 1, first_weights));
    say("arena_empty", first_init(arena, 0, first_weights));
    say("arena_misaligned", first_init(arena + 8, arena_bytes, first_weights));
    say("arena_at_16", first_init(arena + 16, arena_bytes, first_weights));
    say("image_null", first_init(arena, arena_bytes, NULL));
    memcpy(image + 4, first_weights, FIRST_WEIGHTS_BYTES);
    say("image_misaligned", first_init(arena, arena_bytes, image + 4));
    say("image_stranger", first_init(arena, arena_bytes, second_weights));
    memset(image, 0xFF, sizeof image);
    say("image_erased", first_init(arena, arena_bytes, image));
    memset(image, 0, sizeof image);
    say("image_zero", first_init(arena, arena_bytes, image));
    say("image_good", init_with(0, 0));
    say("image_magic", init_with(1, 0x20));
    say("image_version", init_with(4, 3));
    say("image_header_bytes", init_with(8, 16));
    say("image_payload_bytes", init_with(12, 16));
    say("image_crc_field", init_with(16, 1));
    say("image_layout_first", init_with(32, 1));
    say("image_layout_last", init_with(47, 0x80));
    long accepted = 0;
    for (size_t place = 64; place < FIRST_WEIGHTS_BYTES; place++) {
        accepted += init_with(place, (uint8_t)(1 << place % 8)) != NN_ERROR_IMAGE_CRC;
    }
    say("flipped_bits_accepted", accepted);
    altered_headers();
}

static void places(void) {
    const int wrong[] = {-1, FIRST_INPUTS, 1000, -2147483647 - 1};
    long found = 0;
    for (int i = 0; i < 4; i++) {
        found += first_input(wrong[i]) != NULL;
        found += first_output(wrong[i]) != NULL;
        found += first_input_quantization(wrong[i]).scale != 0.0f;
        found += first_output_quantization(wrong[i]).scale != 0.0f;
    }
    say("places_out_of_range", found);
    long outside = 0;
    for (int i = 0; i < 2; i++) {
        outside += first_input(i) < arena || first_input(i) >= arena + arena_bytes;
        outside += first_output(i) < arena || first_output(i) >= arena + arena_bytes;
    }
    say("places_outside_arena", outside);
}

static void quantization(void) {
    const nn_quantization in = first_input_quantization(1), out = first_output_quantization(1);
    say("input_scale_equal", in.scale == FIRST_INPUT1_SCALE);
    say("input_zero_point_equal", in.zero_point == FIRST_INPUT1_ZERO_POINT);
    say("output_scale_equal", out.scale == FIRST_OUTPUT1_SCALE);
    say("output_zero_point_equal", out.zero_point == FIRST_OUTPUT1_ZERO_POINT);
    say("softmax_scale_equal", first_output_quantization(0).scale == FIRST_OUTPUT0_SCALE);
}

static void fill(int8_t *input, int bytes, int step) {
    for (int i = 0; i < bytes; i++) {
        input[i] = (int8_t)(i * step + 3);
    }
}

static void run_first(const char *dense, const char *pooled) {
    if (first_init(arena, arena_bytes, first_weights) != NN_OK) {
        exit(1);
    }
    fill(first_input(0), FIRST_INPUT0_BYTES, 7);
    fill(first_input(1), FIRST_INPUT1_BYTES, 29);
    say("invoked", first_invoke());
    hex(dense, first_output(0), FIRST_OUTPUT0_BYTES);
    hex(pooled, first_output(1), FIRST_OUTPUT1_BYTES);
}

static void run_second(const char *name) {
    if (second_init(arena, sizeof arena, second_weights) != NN_OK) {
        exit(1);
    }
    fill(second_input(0), SECOND_INPUT0_BYTES, 13);
    say("invoked", second_invoke());
    hex(name, second_output(0), SECOND_OUTPUT0_BYTES);
}

static void count(void *context) {
    ++*(long *)context;
}

int main(void) {
    before_init();
    refusals();
    run_first("first_dense", "first_pooled");
    places();
    quantization();
    run_second("second");
    run_first("first_dense_again", "first_pooled_again");
    run_second("second_again");
    long yields = 0, others = 0;
    first_set_yield(count, &yields);
    second_set_yield(count, &others);
    run_first("first_dense_hooked", "first_pooled_hooked");
    say("yields", yields);
    say("yields_of_the_other", others);
    first_set_yield(NULL, NULL);
    run_first("first_dense_unhooked", "first_pooled_unhooked");
    say("yields_without_hook", yields);
    return 0;
}
