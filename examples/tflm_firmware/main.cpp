// What a board's own main does: three pictures, where a product would go on for ever.
#include "main_functions.h"

int main() {
    setup();
    for (int i = 0; i < 3; i++) {
        loop();
    }
    return 0;
}
