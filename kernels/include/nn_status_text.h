/* What a status means, for logs. A program that does not include this has none of the texts. */
#ifndef NN_STATUS_TEXT_H
#define NN_STATUS_TEXT_H

#include "nn_image.h"

static inline const char *nn_status_text(nn_status status) {
    switch (status) {
    case NN_OK:
        return "success";
    case NN_ERROR_ARENA:
        return "the arena is null, too small, or not aligned";
    case NN_ERROR_IMAGE:
        return "the weights are null, not aligned, or not a weight image";
    case NN_ERROR_IMAGE_VERSION:
        return "the weight image has another version";
    case NN_ERROR_IMAGE_LAYOUT:
        return "the weights are of another network or core";
    case NN_ERROR_IMAGE_CRC:
        return "the weight image is damaged";
    case NN_ERROR_NOT_INITIALISED:
        return "the network is not initialised";
    case NN_ERROR_NO_ROW_SOURCE:
        return "no row source is set";
    case NN_ERROR_NO_SLOT:
        return "no slot has a usable weight image";
    case NN_ERROR_FLASH:
        return "flash does not hold what was written";
    case NN_ERROR_SLOTS:
        return "the slots are impossible";
    case NN_ERROR_BUSY:
        return "another call of the network is running";
    case NN_ERROR_ROWS:
        return "the rows are not whole hops";
    case NN_ERROR_GUARD:
        return "a guard word beside the arena was overwritten";
    case NN_ERROR_GOLDEN:
        return "the golden input gives another output";
    case NN_ERROR_GOLDEN_WEIGHTS:
        return "the golden output is of other weights";
    case NN_ERROR_LOWEST:
        break;
    }
    return "a status of the application";
}

#endif
