/* This machine instead of a board: standard input and output, and the time of the day. */
#define _POSIX_C_SOURCE 199309L
#include "protocol.h"
#include "th.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void th_watch_clock(void) {
}

void th_timestamp(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const unsigned long us = (unsigned long)now.tv_sec * 1000000UL;
    th_printf(EE_MSG_TIMESTAMP, (us + (unsigned long)now.tv_nsec / 1000UL) & 0xFFFFFFFFUL);
}

void th_timestamp_initialize(void) {
    th_printf(EE_MSG_TIMESTAMP_MODE);
    th_timestamp();
}

void th_serialport_initialize(void) {
}

void th_putchar(char c) {
    (void)putchar(c);
}

char th_getchar(void) {
    (void)fflush(stdout);
    const int c = getchar();
    if (c == EOF) {
        exit(0);
    }
    return (char)c;
}

void th_command_ready(char volatile *command) {
    ee_serial_command_parser_callback((char *)command);
}

int main(void) {
    ee_benchmark_initialize();
    for (;;) {
        ee_serial_callback(th_getchar());
    }
}
