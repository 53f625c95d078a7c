/* Text, files and the end of a program; see services.h. */
#include "services.h"

#include <string.h>

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

int32_t serve(xs3_services *s, const services_of *of, uint32_t number) {
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

void services_close(xs3_services *s) {
    for (uint32_t i = 0; i < SERVICE_FILES; i++) {
        if (s->files[i] != NULL) {
            fclose(s->files[i]);
            s->files[i] = NULL;
        }
    }
}
