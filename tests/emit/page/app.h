/* What the programs on the page of the C interface call beside their network. */
#ifndef APP_H
#define APP_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
int read_sensor(int8_t *to, int elements);
void rewind_sensor(void);
float read_real(int index);
void show(const int8_t *scores, int elements);
void *the_camera(void);
const uint8_t *next_line(void *camera);
void release_line(void *camera);
void feed_watchdog(void);
const void *partition(const char *name);
void *the_flash(void);
void start_reading(void *flash, void *to, uint32_t from, uint32_t bytes);
void finish_reading(void *flash);
#ifdef __cplusplus
}
#endif
#ifdef __cplusplus
extern "C"
#endif
    int
    app(void);
#endif
