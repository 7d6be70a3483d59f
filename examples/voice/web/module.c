/* module.c - what the page calls. */
#include "hear.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

static hearing h;

int EXPORT(start)(void) { return hear_start(&h); }
int16_t *EXPORT(samples)(void) { return hear_samples(&h); }
unsigned EXPORT(hop)(void) { return VOICE_HOP; }
int EXPORT(push)(void) { return hear_push(&h); }
int EXPORT(heard)(void) { return h.heard; }
