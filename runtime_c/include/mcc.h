/* mcc.h - what every compiled model shares with the program around it: status codes, and names for element types.
 *
 * A model is one struct and one block of memory (the arena), both yours; so is the blob with its weights:
 *
 *     static MCC_ALIGNED(KWS_ARENA_ALIGN) uint8_t arena[KWS_ARENA_BYTES];
 *     kws_model m;
 *     mcc_status s = kws_init(&m, arena, sizeof arena, kws_weights, kws_weights_bytes);
 *     if (s != MCC_OK) { puts(mcc_status_text(s)); }
 *     ... fill kws_input_mfcc(&m) ...
 *     s = kws_run(&m);
 *     ... read kws_output_scores(&m) ...
 *
 * Nothing here allocates, prints or keeps state; only stdint.h, stddef.h, string.h and math.h are used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_H
#define MCC_H

#include "mcc_port.h"

/* Changes whenever generated code and runtime would no longer fit together. Programs that hold several compiled
 * models include the first copy of this file they meet; each model checks this number. */
#define MCC_RUNTIME_VERSION 1

/* What went wrong, if anything did. The numbers are stable: they may be logged and sent. */
typedef enum mcc_status {
    MCC_OK = 0,
    MCC_ERR_NULL = 1,              /* a pointer is null */
    MCC_ERR_NOT_INIT = 2,          /* the model struct has not been initialised */
    MCC_ERR_SIZE = 3,              /* a size given at run time is outside the bounds the model was compiled for */
    MCC_ERR_ARENA_SIZE = 4,        /* the arena is smaller than <MODEL>_ARENA_BYTES */
    MCC_ERR_ARENA_ALIGN = 5,       /* the arena does not lie at a multiple of <MODEL>_ARENA_ALIGN */
    MCC_ERR_BLOB_SIZE = 6,         /* the blob is truncated, has bytes too many, or its sizes contradict each other */
    MCC_ERR_BLOB_ALIGN = 7,        /* the blob does not lie at the alignment it asks for */
    MCC_ERR_BLOB_MAGIC = 8,        /* not a blob at all */
    MCC_ERR_BLOB_VERSION = 9,      /* a blob in a format of another time */
    MCC_ERR_BLOB_BYTE_ORDER = 10,  /* the blob is little-endian, this machine is not */
    MCC_ERR_BLOB_CRC = 11,         /* the blob is damaged */
    MCC_ERR_BLOB_IDENTITY = 12,    /* a sound blob, but of another model */
    MCC_ERR_BRANCH = 13,           /* the model cannot run the branch that its condition asks for */
    MCC_ERR_STRING_ROOM = 14,      /* the strings of a run need more room than the model was compiled for */
    MCC_ERR_STRING_NUMBER = 15,    /* a string that is to be read as a number is none */
    MCC_ERR_IMAGE = 16,            /* a file is not an image of a known format, or not of the declared size */
    MCC_ERR_IO_ALIGN = 17,         /* an input or output outside the arena does not lie at its alignment */
    MCC_MORE = 18,                 /* no error: <model>_run_steps has more steps, <model>_push wants more frames */
    MCC_ERR_NOT_BEGUN = 19,        /* <model>_run_steps without <model>_begin, or after the last step */
    MCC_ERR_CANARY = 20,           /* something wrote just before or behind the arena during a run (MCC_CANARY) */
    MCC_ERR_BLOB_VALUE = 21,       /* a number in the blob would have a run read or write outside */
    MCC_ERR_MODULE_SIZE = 22,      /* a module is truncated */
    MCC_ERR_MODULE_ALIGN = 23,     /* a module does not lie at the alignment it asks for */
    MCC_ERR_MODULE_MAGIC = 24,     /* not a module at all */
    MCC_ERR_MODULE_VERSION = 25,   /* a module for another version of mcc_module.h */
    MCC_ERR_MODULE_MACHINE = 26,   /* a module for another machine, or for a core that has more than this one */
    MCC_ERR_MODULE_CRC = 27,       /* a module is damaged */
    MCC_ERR_MODULE_FUNCTION = 28,  /* a module calls a function that the program does not give */
    MCC_ERR_MODULE_CALL = 29,      /* a module was compiled without what it is asked for */
    MCC_ERR_ROWS = 30,             /* the program's function did not give rows of an input */
    MCC_ERR_STORE = 31,            /* nothing whole is in the store of what was learned, or it failed */
    MCC_ERR_READ = 32,             /* the program's function did not read weights */
    MCC_ERR_UPDATE_OLD = 33,       /* weights with a lower counter than those that run */
    MCC_ERR_UPDATE_SIGNATURE = 34, /* the signature of weights is wrong */
    MCC_ERR_ACCELERATOR = 35       /* the accelerator did not compute its region */
} mcc_status;

/* An English sentence for a status; never null. */
MCC_INLINE const char *mcc_status_text(mcc_status status)
{
    switch (status) {
    case MCC_OK: return "ok";
    case MCC_ERR_NULL: return "a pointer is null";
    case MCC_ERR_NOT_INIT: return "the model has not been initialised";
    case MCC_ERR_SIZE: return "a size is outside the bounds the model was compiled for";
    case MCC_ERR_ARENA_SIZE: return "the arena is too small";
    case MCC_ERR_ARENA_ALIGN: return "the arena is not aligned";
    case MCC_ERR_BLOB_SIZE: return "the blob has the wrong size";
    case MCC_ERR_BLOB_ALIGN: return "the blob is not aligned";
    case MCC_ERR_BLOB_MAGIC: return "this is not a blob";
    case MCC_ERR_BLOB_VERSION: return "the blob has another format version";
    case MCC_ERR_BLOB_BYTE_ORDER: return "the blob is little-endian, this machine is not";
    case MCC_ERR_BLOB_CRC: return "the blob is damaged";
    case MCC_ERR_BLOB_IDENTITY: return "the blob belongs to another model";
    case MCC_ERR_BRANCH: return "the model cannot run the branch that its condition asks for";
    case MCC_ERR_STRING_ROOM: return "the strings of a run need more room than there is";
    case MCC_ERR_STRING_NUMBER: return "a string that is to be read as a number is none";
    case MCC_ERR_IMAGE: return "the file is not a plain BMP or PNM, or not of the declared size";
    case MCC_ERR_IO_ALIGN: return "an input or output outside the arena is not aligned";
    case MCC_MORE: return "more steps are to run, or frames to come";
    case MCC_ERR_NOT_BEGUN: return "no run has begun";
    case MCC_ERR_CANARY: return "something wrote just before or behind the arena";
    case MCC_ERR_BLOB_VALUE: return "a number in the blob would have a run read or write outside";
    case MCC_ERR_MODULE_SIZE: return "the module is truncated";
    case MCC_ERR_MODULE_ALIGN: return "the module is not aligned";
    case MCC_ERR_MODULE_MAGIC: return "this is not a module";
    case MCC_ERR_MODULE_VERSION: return "the module is of another version";
    case MCC_ERR_MODULE_MACHINE: return "the module is for another machine";
    case MCC_ERR_MODULE_CRC: return "the module is damaged";
    case MCC_ERR_MODULE_FUNCTION: return "the program lacks a function of the module";
    case MCC_ERR_MODULE_CALL: return "the module was compiled without what it is asked for";
    case MCC_ERR_ROWS: return "rows of an input did not come";
    case MCC_ERR_STORE: return "the store is empty or failed";
    case MCC_ERR_READ: return "weights could not be read";
    case MCC_ERR_UPDATE_OLD: return "the update is older than what may run";
    case MCC_ERR_UPDATE_SIGNATURE: return "the signature is wrong";
    case MCC_ERR_ACCELERATOR: return "the accelerator failed";
    }
    return "unknown status";
}

/* Counts and offsets inside kernels: signed, so that compilers may assume they do not wrap, as wide as a pointer. */
typedef ptrdiff_t mcc_index;

/* Runs body(context, 0), ..., body(context, count - 1), at the same time as far as it can, and returns when all are
 * done. `pool` is what <model>_set_parallel was given with it. Only models compiled with --threads know it. */
typedef void (*mcc_parallel_for)(void *pool, mcc_index count, void (*body)(void *context, mcc_index index),
                                 void *context);

/* Element types that C has no name for are stored as plain integers; mcc_narrow.h converts them from and to float. */
typedef uint8_t mcc_bool;       /* 0 or 1 */
typedef uint16_t mcc_f16;       /* IEEE binary16 */
typedef uint16_t mcc_bf16;      /* the upper half of a float */
typedef uint8_t mcc_f8e4m3fn;   /* 8-bit floats, named by exponent and mantissa bits as in ONNX: */
typedef uint8_t mcc_f8e4m3fnuz; /* "fn" has no infinity, "uz" no negative zero */
typedef uint8_t mcc_f8e5m2;
typedef uint8_t mcc_f8e5m2fnuz;
typedef uint8_t mcc_f8e8m0;     /* a power of two */
                                /* 4-bit and 2-bit elements are packed into uint8_t, the first in the low bits */

/* A piece of text: `size` bytes at `data`, without a zero at the end; mcc_string.h makes them and compares them. It has
 * 16 bytes on every machine, so that memory plans do not depend on the width of pointers. */
typedef struct mcc_string {
    const char *data;
    uint32_t size;
    uint8_t unused[12u - sizeof(const char *)];
} mcc_string;

#endif /* MCC_H */
