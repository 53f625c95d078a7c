/* What a program asks the runner for: `kcall NUMBER`, arguments in r0 to r2, the result in r0. */
#ifndef XS3_SERVICES_H
#define XS3_SERVICES_H

#include "machine.h"

#include <stdio.h>
#include <string.h>

enum {
    SERVICE_EXIT,   /* r0: the exit code */
    SERVICE_PUT,    /* r0: a character, to standard output */
    SERVICE_OPEN,   /* r0: a file's name, r1: 1 to write; a handle, or -1 */
    SERVICE_CLOSE,  /* r0: a handle */
    SERVICE_LENGTH, /* r0: a handle; bytes, or -1 */
    SERVICE_SEEK,   /* r0: a handle, r1: bytes from the start; 0, or -1 */
    SERVICE_READ,   /* r0: a handle, r1: an address, r2: bytes; 0 if all were read, else -1 */
    SERVICE_WRITE,
    SERVICE_MARK,  /* r0: who issues from now on, see xs3_count */
    SERVICE_CLOCK, /* issue slots of this run, the lower 32 bits */
    SERVICE_PIECE, /* r0: 0 a call begins that threads share, 1 a piece begins, 2 it ends, 3 the
                      call ends */
    SERVICE_COPY,  /* r0: to, r1: from, r2: bytes, as another thread's loader copies; 0, or -1 */
    SERVICES
};

enum { SERVICE_DONE, SERVICE_ENDS, SERVICE_UNKNOWN };

#define SERVICE_FILES 8
#define SERVICE_NAME_BYTES 256

typedef struct {
    FILE *files[SERVICE_FILES];
} xs3_services;

typedef struct {
    xs3 *machine;
    uint32_t *r;
} services_of;

/* The program's memory, NULL where there is none. */
uint8_t *xs3_find(const xs3 *m, uint32_t address, uint32_t bytes, int32_t writes);

#define FAILED 0xffffffffU

static uint32_t open_file(xs3_services *s, const services_of *of) {
    char name[SERVICE_NAME_BYTES];
    for (uint32_t i = 0; i < SERVICE_NAME_BYTES; i++) {
        const uint8_t *from = xs3_find(of->machine, of->r[0] + i, 1, 0);
        if (from == NULL) {
            return FAILED;
        }
        name[i] = (char)*from;
        if (*from == 0) {
            break;
        }
    }
    name[SERVICE_NAME_BYTES - 1] = 0;
    for (uint32_t i = 0; i < SERVICE_FILES; i++) {
        if (s->files[i] == NULL) {
            s->files[i] = fopen(name, of->r[1] ? "wb" : "rb");
            return s->files[i] == NULL ? FAILED : i;
        }
    }
    return FAILED;
}

static uint32_t length(FILE *file) {
    const long here = ftell(file);
    if (here < 0 || fseek(file, 0, SEEK_END) != 0) {
        return FAILED;
    }
    const long end = ftell(file);
    return fseek(file, here, SEEK_SET) != 0 || end < 0 || end > INT32_MAX ? FAILED : (uint32_t)end;
}

static uint32_t transfer(FILE *file, const services_of *of, int32_t writes) {
    const uint32_t bytes = of->r[2];
    uint8_t *at = bytes == 0 ? NULL : xs3_find(of->machine, of->r[1], bytes, !writes);
    if (bytes == 0) {
        return 0;
    }
    if (at == NULL) {
        return FAILED;
    }
    return (writes ? fwrite(at, 1, bytes, file) : fread(at, 1, bytes, file)) == bytes ? 0 : FAILED;
}

static uint32_t copy_bytes(const services_of *of) {
    const uint32_t bytes = of->r[2];
    if (bytes > 0) {
        uint8_t *const to = xs3_find(of->machine, of->r[0], bytes, 1);
        const uint8_t *const from = xs3_find(of->machine, of->r[1], bytes, 0);
        if (to == NULL || from == NULL) {
            return FAILED;
        }
        memmove(to, from, bytes);
    }
    return 0;
}

static int32_t serve(xs3_services *s, const services_of *of, uint32_t number) {
    uint32_t *const r = of->r;
    if (number == SERVICE_EXIT) {
        return SERVICE_ENDS;
    }
    if (number == SERVICE_PUT) {
        putchar((int)(r[0] & 255));
        return SERVICE_DONE;
    }
    if (number == SERVICE_OPEN) {
        r[0] = open_file(s, of);
        return SERVICE_DONE;
    }
    if (number == SERVICE_COPY) {
        r[0] = copy_bytes(of);
        return SERVICE_DONE;
    }
    if (number > SERVICE_WRITE) {
        return number < SERVICES ? SERVICE_DONE : SERVICE_UNKNOWN;
    }
    FILE *file = r[0] < SERVICE_FILES ? s->files[r[0]] : NULL;
    if (file == NULL) {
        r[0] = FAILED;
    } else if (number == SERVICE_CLOSE) {
        s->files[r[0]] = NULL;
        r[0] = fclose(file) == 0 ? 0 : FAILED;
    } else if (number == SERVICE_LENGTH) {
        r[0] = length(file);
    } else if (number == SERVICE_SEEK) {
        r[0] = fseek(file, (long)r[1], SEEK_SET) == 0 ? 0 : FAILED;
    } else {
        r[0] = transfer(file, of, number == SERVICE_WRITE);
    }
    return SERVICE_DONE;
}

static void services_close(xs3_services *s) {
    for (uint32_t i = 0; i < SERVICE_FILES; i++) {
        if (s->files[i] != NULL) {
            fclose(s->files[i]);
            s->files[i] = NULL;
        }
    }
}

#endif
