/* mcc_dump.h - what the steps of a run make, handed to a function of the program's, and a writer that sends it on as
 * docs/looking_inside.md describes. Only for models that are compiled with --dump-values:
 *
 *     static size_t to_uart(void *to, const void *from, size_t bytes) { ... return bytes; }
 *
 *     mcc_dump_writer w;
 *     mcc_dump_begin(&w, to_uart, NULL);
 *     kws_set_dump(&m, mcc_dump_write, &w);
 *     kws_run(&m);                              w.failed says whether something did not go out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DUMP_H
#define MCC_DUMP_H

#include <string.h>

#include "mcc.h"

typedef enum mcc_dump_kind {
    MCC_DUMP_RUN = 0,    /* a run begins: 16 bytes that tell the code from any other, under the model's prefix */
    MCC_DUMP_INPUT = 1,  /* an input, before the first step */
    MCC_DUMP_STATE = 2,  /* what the run before has left, likewise */
    MCC_DUMP_VALUE = 3,  /* a tensor of the model's file, which a step has made */
    MCC_DUMP_BUFFER = 4, /* what a step has made that is not a tensor of the file; the name is mccompile's */
    MCC_DUMP_END = 5     /* the run has ended well */
} mcc_dump_kind;

/* Holds as long as the function runs that it is handed to. */
typedef struct mcc_dumped {
    mcc_dump_kind kind;
    const char *name;         /* in UTF-8 */
    uint32_t step;            /* its number in report.json */
    uint32_t type;            /* of elements, as ONNX numbers them: 1 float, 2 uint8, 3 int8, 6 int32, 7 int64 ... */
    uint32_t rank;
    const mcc_index *shape;   /* as in the file */
    const mcc_index *strides; /* in elements: what lies channels-last has a 1 at its channels */
    int32_t axis;             /* -1: all of it. Else one row of it, along this axis: */
    int32_t row;              /* it is never there as a whole */
    const void *data;
    size_t bytes;             /* from the first element to the last, with what may lie between them */
} mcc_dumped;

typedef void (*mcc_dump)(void *to, const mcc_dumped *what);

/* For generated code: hands out a tensor whose elements have so many bits. */
MCC_INLINE void mcc_dump_tensor(mcc_dump dump, void *to, mcc_dump_kind kind, const char *name, uint32_t step,
                                uint32_t type, uint32_t bits, uint32_t rank, const mcc_index *shape,
                                const mcc_index *strides, int32_t axis, mcc_index row, const void *data)
{
    mcc_dumped what;
    mcc_index last = 0;
    uint32_t i;
    int empty = 0;
    if (dump == NULL) return;
    for (i = 0; i < rank; i++) {
        last += (shape[i] - 1) * strides[i];
        if (shape[i] == 0) empty = 1;
    }
    what.kind = kind;
    what.name = name;
    what.step = step;
    what.type = type;
    what.rank = rank;
    what.shape = shape;
    what.strides = strides;
    what.axis = axis;
    what.row = (int32_t)row;
    what.data = data;
    what.bytes = empty ? 0u : ((size_t)(last + 1) * bits + 7u) / 8u;
    dump(to, &what);
}

/* Sends bytes; gives how many went. */
typedef size_t (*mcc_dump_send)(void *to, const void *from, size_t bytes);

typedef struct mcc_dump_writer {
    mcc_dump_send send;
    void *to;
    uint32_t low, high; /* the checksum of a record */
    int failed;         /* something did not go out: nothing more is sent */
} mcc_dump_writer;

MCC_INLINE void mcc_dump_begin(mcc_dump_writer *writer, mcc_dump_send send, void *to)
{
    writer->send = send;
    writer->to = to;
    writer->low = 1u;
    writer->high = 0u;
    writer->failed = 0;
}

MCC_INLINE void mcc_dump_bytes(mcc_dump_writer *writer, const void *from, size_t bytes)
{
    const uint8_t *const p = (const uint8_t *)from;
    size_t i;
    if (writer->failed || bytes == 0u) return;
    for (i = 0; i < bytes; i++) { /* Adler-32, without divisions */
        writer->low += p[i];
        if (writer->low >= 65521u) writer->low -= 65521u;
        writer->high += writer->low;
        if (writer->high >= 65521u) writer->high -= 65521u;
    }
    if (writer->send(writer->to, from, bytes) != bytes) writer->failed = 1;
}

/* `count` bytes of a number, the lowest first. */
MCC_INLINE void mcc_dump_number(mcc_dump_writer *writer, uint32_t number, size_t count)
{
    uint8_t bytes[4];
    size_t i;
    for (i = 0; i < 4u; i++) bytes[i] = (uint8_t)(number >> (8u * i) & 0xFFu);
    mcc_dump_bytes(writer, bytes, count);
}

/* A record, as <model>_set_dump wants a function; `to` is the writer. */
MCC_INLINE void mcc_dump_write(void *to, const mcc_dumped *what)
{
    mcc_dump_writer *const writer = (mcc_dump_writer *)to;
    const size_t letters = strlen(what->name);
    uint32_t i;
    mcc_dump_bytes(writer, "MCCD", 4u);
    writer->low = 1u;
    writer->high = 0u;
    mcc_dump_number(writer, 1u, 1u);
    mcc_dump_number(writer, (uint32_t)what->kind, 1u);
    mcc_dump_number(writer, (uint32_t)letters, 2u);
    mcc_dump_number(writer, what->step, 4u);
    mcc_dump_number(writer, what->type, 2u);
    mcc_dump_number(writer, what->rank, 2u);
    mcc_dump_number(writer, (uint32_t)what->bytes, 4u);
    mcc_dump_number(writer, (uint32_t)what->axis, 4u);
    mcc_dump_number(writer, (uint32_t)what->row, 4u);
    for (i = 0; i < what->rank; i++) mcc_dump_number(writer, (uint32_t)what->shape[i], 4u);
    for (i = 0; i < what->rank; i++) mcc_dump_number(writer, (uint32_t)what->strides[i], 4u);
    mcc_dump_bytes(writer, what->name, letters);
    mcc_dump_bytes(writer, what->data, what->bytes);
    mcc_dump_number(writer, writer->high << 16 | writer->low, 4u);
}

#endif /* MCC_DUMP_H */
