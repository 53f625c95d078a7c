#include "person.h"
#include "semihosting.h"

PERSON_DEFINE_ARENA(arena);

enum { COLUMNS = 96 };
NN_STATIC_ASSERT(PERSON_ROW_BYTES == 3 * COLUMNS,
                 "the network takes the camera's lines as they are");

static uint16_t line[COLUMNS]; /* RGB565: all that is kept of the picture */

static void read_line(int picture, int y) {
    for (int x = 0; x < COLUMNS; x++) {
        const int dx = x - 24 - 24 * picture, dy = y - 48;
        line[x] = (uint16_t)(dx * dx + dy * dy < 400 ? 0xfd8a : y << 5 | x >> 3);
    }
}

/* An invoke calls this for each row, from top to bottom. 0 ... 255 become -128 ... 127. */
static int deliver(void *picture, int32_t row, int8_t *data) {
    read_line(*(const int *)picture, row);
    for (int x = 0; x < COLUMNS; x++) {
        *data++ = (int8_t)((line[x] >> 8 & 0xf8) - 128);
        *data++ = (int8_t)((line[x] >> 3 & 0xfc) - 128);
        *data++ = (int8_t)((line[x] << 3 & 0xf8) - 128);
    }
    return 0;
}

int main(void) {
    int picture = 0;
    nn_status status = person_init(arena, sizeof arena, person_weights);
    person_set_row_source(deliver, &picture);
    for (; status == NN_OK && picture < 3; picture++) {
        status = person_invoke();
        const int8_t *scores = person_output(0);
        semihosting_print("no person ");
        semihosting_print_number(scores[0]);
        semihosting_print(", person ");
        semihosting_print_number(scores[1]);
        semihosting_print("\n");
    }
    return (int)status;
}
