/* Runs the network `scene` on a picture that is never whole in memory, and prints its scores. */
#include "camera.h"
#include "print.h"
#include "scene.h"

NN_STATIC_ASSERT(SCENE_ROWS == CAMERA_LINES && SCENE_ROW_BYTES == CAMERA_LINE_BYTES,
                 "the network takes the camera's lines as they are");

/* The application decides where the arena lies: this section is placed by the linker script. */
SCENE_DEFINE_ARENA_IN(arena, ".bss.nn_arena.scene");

static int rows, pauses;

/* Called by an invoke when it needs the next row. Pixels 0 ... 255 stand for -128 ... 127. */
static int deliver(void *context, int32_t row, int8_t *data) {
    (void)context;
    (void)row; /* 0, 1, 2 ...: the order in which the camera sends them */
    const uint8_t *line = camera_line();
    for (int i = 0; i < SCENE_ROW_BYTES; i++) {
        data[i] = (int8_t)(line[i] - 128);
    }
    camera_next();
    rows++;
    return 0;
}

/* Called between parts of an invoke: a place to feed a watchdog. */
static void pause(void *context) {
    (void)context;
    pauses++;
}

static void print_number(int value) {
    char digits[12];
    int at = (int)sizeof digits - 1;
    unsigned rest = value < 0 ? 0U - (unsigned)value : (unsigned)value;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + rest % 10U);
        rest /= 10U;
    } while (rest != 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    print(digits + at);
}

static nn_status look(void) {
    camera_start();
    return scene_invoke();
}

int main(void) {
    nn_status status = scene_init(arena, sizeof arena, scene_weights);
    scene_set_row_source(deliver, NULL);
    scene_set_yield(pause, NULL);
    for (int picture = 0; status == NN_OK && picture < 2; picture++) {
        status = look();
    }
    if (status != NN_OK) {
        print("the network refused, status ");
        print_number((int)status);
        print("\n");
        return 1;
    }
    const int8_t *scores = scene_output(0);
    print("scores:");
    for (int i = 0; i < SCENE_OUTPUT0_ELEMENTS; i++) {
        print(" ");
        print_number(scores[i]);
    }
    print("\nrows ");
    print_number(rows);
    print(" pauses ");
    print_number(pauses);
    print("\n");
    return 0;
}
