/* programs.h - the models that driver.c runs: for each the functions of host.c under names of its own. */
#ifndef FUZZ_PROGRAMS_H
#define FUZZ_PROGRAMS_H

#include "mcc.h"

#define FUNCTIONS(X, prefix) \
    X(prefix, size_t, model_bytes, (void)) \
    X(prefix, int, init, (void *m, void *const *a, const size_t *n, const void *w, size_t s)) \
    X(prefix, int, run, (void *m)) \
    X(prefix, const double *, spent, (void)) \
    X(prefix, void *, input, (void *m, int i)) \
    X(prefix, const void *, output, (const void *m, int i)) \
    X(prefix, int, resize, (void *m, const ptrdiff_t *sizes)) \
    X(prefix, void, output_shape, (const void *m, int i, size_t *shape)) \
    X(prefix, int, place, (void *m, int i, void *memory)) \
    X(prefix, int, state, (void *m, void *to, const void *from)) \
    X(prefix, const char *, status_text, (int status))

#define MEMBER(prefix, type, name, arguments) type(*name) arguments;
#define DECLARED(prefix, type, name, arguments) type prefix##_host_##name arguments;
#define POINTER(prefix, type, name, arguments) prefix##_host_##name,

typedef struct program {
    FUNCTIONS(MEMBER, any)
} program;

extern const program programs[];

#endif
