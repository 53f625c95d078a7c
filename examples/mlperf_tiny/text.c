/* A small printf, because a board's firmware has no C library. */
#include "th.h"

#define MOST_DIGITS 10 /* of 32 bits */

static int print_text(const char *text) {
    int count = 0;
    for (; *text != '\0'; text++, count++) {
        th_putchar(*text);
    }
    return count;
}

static int print_number(unsigned long value, unsigned base, int width) {
    char digits[MOST_DIGITS + 1];
    int at = MOST_DIGITS;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (at > 0 && (value != 0 || MOST_DIGITS - at < width));
    return print_text(digits + at);
}

size_t th_strnlen(const char *text, size_t most) {
    size_t length = 0;
    while (length < most && text[length] != '\0') {
        length++;
    }
    return length;
}

int th_vprintf(const char *format, va_list values) {
    int count = 0;
    for (; *format != '\0'; format++) {
        if (*format != '%') {
            th_putchar(*format);
            count++;
            continue;
        }
        int width = 0, is_long = 0;
        for (format++; *format >= '0' && *format <= '9'; format++) {
            width = 10 * width + (*format - '0');
        }
        if (*format == 'l') {
            is_long = 1;
            format++;
        }
        if (*format == 's') {
            count += print_text(va_arg(values, const char *));
        } else if (*format == 'c') {
            th_putchar((char)va_arg(values, int));
            count++;
        } else if (*format == 'd') {
            const int value = va_arg(values, int);
            count += value < 0 ? print_text("-") : 0;
            count += print_number(value < 0 ? 0u - (unsigned)value : (unsigned)value, 10, width);
        } else if (*format == 'u' || *format == 'x') {
            const unsigned long value =
                is_long ? va_arg(values, unsigned long) : va_arg(values, unsigned);
            count += print_number(value, *format == 'x' ? 16 : 10, width);
        } else if (*format == '\0') {
            break;
        } else {
            th_putchar(*format);
            count++;
        }
    }
    return count;
}

void th_printf(const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)th_vprintf(format, values);
    va_end(values);
}
