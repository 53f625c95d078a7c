/* Text through the emulator or debugger. */
#include "print.h"
#include "semihosting.h"

void print(const char *text) {
    semihosting_print(text);
}
