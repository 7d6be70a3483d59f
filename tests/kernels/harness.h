/* What harness.c calls; harness.py writes cases.c. */
#ifndef HARNESS_H
#define HARNESS_H

#include "mcc.h"

struct harness_case {
    int blocks;
    const size_t *bytes, *align;
    unsigned strings; /* a bit for each block of strings */
    void (*call)(uint8_t **);
};

struct harness_cases {
    size_t count;
    const struct harness_case *first;
};

extern const struct harness_cases harness_cases;

#endif
