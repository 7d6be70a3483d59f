/* mcc_rows.h - inputs that a program gives row by row (--input NAME=rows), as a camera or a sensor delivers them: no
 * model holds them whole, but those that read them all at once.
 *
 *     static int next_rows(void *user, mcc_index first, mcc_index count, void *to)
 *     {
 *         return camera_read(user, to, (size_t)count * NET_INPUT_X_ROW_BYTES);
 *     }
 *     ...
 *     net_set_input_x(&m, next_rows, &camera);
 *
 * A run asks for each row of a frame once, from the first to the last, one or several at a time. The function may wait
 * until they are there. What it answers other than 0 ends the run with MCC_ERR_ROWS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_ROWS_H
#define MCC_ROWS_H

#include <string.h>

#include "mcc.h"

/* Writes `count` rows from row `first` on, one after the other without gaps; 0 if that went well. */
typedef int (*mcc_fetch)(void *user, mcc_index first, mcc_index count, void *to);

typedef struct mcc_rows {
    mcc_fetch fetch;
    void *user;
} mcc_rows;

/* A frame that is there as a whole, for tests and first steps: mcc_fetch_array is the function, this is its user. */
typedef struct mcc_array_rows {
    const void *from;
    size_t row_bytes;
    mcc_index rows;
    mcc_index next; /* 0 before a run; else the run before has not fetched all rows */
} mcc_array_rows;

MCC_INLINE int mcc_fetch_array(void *user, mcc_index first, mcc_index count, void *to)
{
    mcc_array_rows *const array = (mcc_array_rows *)user;
    if (first != array->next || count > array->rows - first) return 1;
    memcpy(to, (const uint8_t *)array->from + (size_t)first * array->row_bytes, (size_t)count * array->row_bytes);
    array->next = first + count == array->rows ? 0 : first + count;
    return 0;
}

#endif /* MCC_ROWS_H */
