"""NET_weights.c: the weight image as a C array, for toolchains whose assembler is not GNU's."""

from __future__ import annotations

_COLUMNS = 100


def array(net: str, image: bytes) -> bytes:
    """The file's text; the preprocessor drops it unless NN_WEIGHTS_IN_C is defined."""
    lines, line = [], ""
    for number in map(str, image):
        if len(line) + len(number) + 1 > _COLUMNS:
            lines.append(line)
            line = ""
        line += number + ","
    body = "\n".join([*lines, line])
    text = f"""\
/* The weight image {net}_weights.bin as a C array, for toolchains whose assembler is not GNU's: it is
 * compiled where NN_WEIGHTS_IN_C is defined, and {net}_weights.S is left out. */
#include "{net}.h"

#ifdef NN_WEIGHTS_IN_C

#ifdef __ELF__
#define PLACE section(".nn_weights"), aligned(16)
#else
#define PLACE aligned(16)
#endif

const uint8_t {net}_weights[{net.upper()}_WEIGHTS_BYTES] __attribute__((PLACE)) = {{
{body}
}};

#endif
"""
    return text.encode()
