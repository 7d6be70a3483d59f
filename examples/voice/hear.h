/* hear.h - from samples to voice and none, a hop at a time: what both programs do. */
#ifndef HEAR_H
#define HEAR_H

#include "voice.h"

#define RATE 8000u
#define LOUD 0.6f   /* of the score: voice begins */
#define QUIET 0.3f  /* and ends */

typedef struct {
    voice_model model;
    MCC_ALIGNED(VOICE_ARENA_ALIGN) uint8_t arena[VOICE_ARENA_BYTES];
    int heard;
} hearing;

static mcc_status hear_start(hearing *h)
{
    h->heard = 0;
    return voice_init(&h->model, h->arena, sizeof h->arena, voice_weights, voice_weights_bytes);
}

/* VOICE_HOP samples go here. */
static int16_t *hear_samples(hearing *h) { return voice_input_samples(&h->model); }

/* What they make of it. */
static mcc_status hear_push(hearing *h)
{
    const mcc_status status = voice_push(&h->model);
    if (status == MCC_MORE) return MCC_OK; /* not enough samples yet */
    if (status == MCC_OK) h->heard = voice_output_score(&h->model)[0] > (h->heard ? QUIET : LOUD);
    return status;
}

#endif
