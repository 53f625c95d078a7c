/* What test_field_checks.py does to a network in the field: damages its weights, its arena and the
 * guards, and prints what the network's checks return. */
#include "harness_io.h"
#include "harness_net.h"
#include "nn_status_text.h"

#include <string.h>

#define WEIGHTS ((const nn_image_header *)(const void *)HARNESS_WEIGHTS)

static int8_t arena[HARNESS_ARENA_BYTES] __attribute__((aligned(64)));
#ifdef HARNESS_SECOND_ARENA_BYTES
static int8_t second_arena[HARNESS_SECOND_ARENA_BYTES] __attribute__((aligned(64)));
#endif
static uint8_t image[NET_WEIGHTS_BYTES] __attribute__((aligned(16)));

#ifdef HARNESS_SET_LOADER
static void bring(void *context, void *to, uint32_t from, uint32_t bytes) {
    (void)context;
    memcpy(to, image + from, bytes);
}
#endif

static void say(const char *what, nn_status status) {
    io_print(what);
    io_print(": ");
    io_print(nn_status_text(status));
    io_print("\n");
}

static nn_status begin(void) {
    const void *weights = image;
#ifdef HARNESS_SET_LOADER
    const nn_loader loader = {bring, NULL, NULL};
    net_set_loader(loader);
    weights = NULL;
#endif
    return HARNESS_INIT(arena, sizeof arena, weights);
}

static void damage_arena(void *context) {
    (void)context;
    memset(arena + 64, 0x55, sizeof arena - 128);
}

/* The first status that is not that of damaged weights, for a flip in each part of the payload. */
static nn_status flip_weights(void) {
    nn_status found = NN_ERROR_IMAGE_CRC;
    for (uint32_t i = 0; i < 8 && found == NN_ERROR_IMAGE_CRC; i++) {
        const uint32_t at = 64 + (NET_WEIGHTS_BYTES - 65) / 7 * i;
        image[at] ^= (uint8_t)(1U << i);
        found = net_self_test();
        image[at] ^= (uint8_t)(1U << i);
    }
    return found;
}

/* Other weights of the same layout, as after an update. */
static void retrain(void) {
    nn_image_header *header = (nn_image_header *)(void *)image;
    image[NET_WEIGHTS_BYTES - 40] ^= 1U;
    header->payload_crc32 = nn_crc32(0, header + 1, header->payload_bytes, NULL);
    header->header_crc32 = nn_crc32(0, header, offsetof(nn_image_header, header_crc32), NULL);
}

static nn_status invoke_with_guard(uint32_t at) {
    begin();
    arena[at] ^= 1;
    const nn_status called = net_check_guards();
    const nn_status tested = net_self_test();
    return called == tested ? called : NN_ERROR_LOWEST;
}

int main(void) {
    memcpy(image, HARNESS_WEIGHTS, sizeof image);
    say("early", net_self_test());
    say("guards early", net_check_guards());
    say("init", begin());
    say("self-test", net_self_test());
    say("again", net_self_test());
    say("guards", net_check_guards());
    say("flipped", flip_weights());
    net_set_yield(damage_arena, NULL);
    say("damaged", net_self_test());
    net_set_yield(NULL, NULL);
    say("mended", net_self_test());
    say("below", invoke_with_guard(3));
    say("above", invoke_with_guard(sizeof arena - 1));
    begin();
    retrain();
    say("retrained", net_self_test());
    io_print("version: ");
    io_print(net_version().network);
    io_print(" ");
    io_print(net_version().plan);
    io_print("\n");
    io_exit(0);
}
