#include "net.h"

NET_DEFINE_ARENA(arena);

int main(void) {
    return net_init(arena, sizeof(arena), net_weights) != NN_OK || net_invoke() != NN_OK;
}
