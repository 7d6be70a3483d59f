/* mcc_sample.h - chooses a token by logits: the most likely one, or one drawn by chance.
 *
 * In this order: logits of tokens that were there already are lowered, all are divided by the temperature, the top_k
 * most likely are kept, the fewest of these that make up a share of top_p, and those at least min_p times as likely as
 * the first; one of them is drawn, each as often as it is likely. Of equal logits the lower token comes first.
 *
 * Likelihoods are integers, so every machine and compiler draws the same tokens. Memory comes from the caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SAMPLE_H
#define MCC_SAMPLE_H

#include "mcc_random.h"

/* Zeros choose the most likely token. */
typedef struct {
    float temperature;        /* 0: the most likely token */
    int32_t top_k;            /* 0: all */
    float top_p;              /* 0 or 1: all */
    float min_p;              /* 0: all */
    float repetition_penalty; /* positive logits are divided by it, others multiplied; 0 or 1: none */
    uint64_t seed;
} mcc_sampling;

typedef struct {
    float logit;
    int32_t token;
} mcc_candidate;

#define MCC_SAMPLE_ONE UINT64_C(0x80000000) /* the likelihood of the first */

/* 2^31 * exp((logit - most) / temperature), within 2^-22 of it. */
MCC_INLINE uint64_t mcc_sample_likelihood(float logit, float most, float temperature)
{
    volatile float distance; /* rounded to float, whatever registers hold */
    uint64_t bits, f, q;
    if (logit == most) return MCC_SAMPLE_ONE;
    distance = most - logit;
    distance = distance / temperature;
    if (!(distance < 22.0f)) return 0u;
    bits = ((uint64_t)(distance * 16777216.0f) * UINT64_C(6196328019)) >> 32; /* by log2(e): 24 bits behind the point */
    f = (bits & 0xFFFFFFu) << 8;
    q = UINT64_C(5548197) - ((UINT64_C(493840) * f) >> 32); /* 2^-f is 1 - f * q */
    q = UINT64_C(41219531) - ((q * f) >> 32);
    q = UINT64_C(238367584) - ((q * f) >> 32);
    q = UINT64_C(1031763232) - ((q * f) >> 32);
    q = UINT64_C(2977044448) - ((q * f) >> 32);
    return (UINT64_C(0x100000000) - ((q * f) >> 32)) >> ((bits >> 24) + 1u);
}

MCC_INLINE int mcc_sample_before(mcc_candidate a, mcc_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/* Moves the one at `at` down until both below come behind it. */
MCC_INLINE void mcc_sample_sift(mcc_candidate *heap, size_t count, size_t at)
{
    const mcc_candidate moved = heap[at];
    size_t below = 2u * at + 1u;
    while (below < count) {
        if (below + 1u < count && mcc_sample_before(heap[below + 1u], heap[below])) below++;
        if (!mcc_sample_before(heap[below], moved)) break;
        heap[at] = heap[below];
        at = below;
        below = 2u * at + 1u;
    }
    heap[at] = moved;
}

/* part * whole / 2^32, of a whole of at most 62 bits. */
MCC_INLINE uint64_t mcc_sample_part(uint64_t part, uint64_t whole)
{
    return part * (whole >> 32) + ((part * (whole & 0xFFFFFFFFu)) >> 32);
}

/* A share from 0 to 1 in 32 bits. */
MCC_INLINE uint64_t mcc_sample_share(float share) { return (uint64_t)((double)share * 4294967296.0); }

/* Candidates in the order in which they come: those taken so far lie at the end of the array, the first one last. */
typedef struct {
    const mcc_sampling *how;
    mcc_candidate *heap;
    size_t count, taken;
    float most;
} mcc_sampler;

/* The n-th likely one, from 0 on, and how likely it is. */
MCC_INLINE mcc_candidate mcc_sample_nth(mcc_sampler *s, size_t n, uint64_t *likelihood)
{
    while (s->taken <= n) {
        const size_t last = s->count - s->taken - 1u;
        const mcc_candidate first = s->heap[0];
        s->heap[0] = s->heap[last];
        mcc_sample_sift(s->heap, last, 0u);
        s->heap[last] = first;
        s->taken++;
    }
    *likelihood = mcc_sample_likelihood(s->heap[s->count - n - 1u].logit, s->most, s->how->temperature);
    return s->heap[s->count - n - 1u];
}

/* Likelihoods of all that may be drawn: of the first `most` and no more than are kept. */
MCC_INLINE uint64_t mcc_sample_total(mcc_sampler *s, size_t most)
{
    const mcc_sampling *const how = s->how;
    const int cut = how->top_p > 0.0f && how->top_p < 1.0f;
    uint64_t total = 0u, needed, least, sum = 0u, likelihood;
    size_t i;
    for (i = 0u; i < most; i++) {
        if (most < s->count) {
            (void)mcc_sample_nth(s, i, &likelihood);
        } else {
            likelihood = mcc_sample_likelihood(s->heap[i].logit, s->most, how->temperature);
        }
        total += likelihood;
    }
    if (!cut && !(how->min_p > 0.0f)) return total;
    needed = cut ? mcc_sample_part(mcc_sample_share(how->top_p), total) : total;
    least = how->min_p < 1.0f ? mcc_sample_share(how->min_p) >> 1 : MCC_SAMPLE_ONE;
    for (i = 0u; i < most && (i == 0u || sum < needed); i++) {
        (void)mcc_sample_nth(s, i, &likelihood);
        if (i != 0u && (likelihood < least || likelihood == 0u)) break;
        sum += likelihood;
    }
    return sum;
}

/* A token; -1 where no logit is a number above -infinity. `drawn`: how many were drawn by chance so far, which goes on
 * by one. `before`: tokens that were there, for the penalty. `scratch`: room for `count` candidates. */
MCC_INLINE int32_t mcc_sample(const mcc_sampling *how, uint64_t *drawn, const float *logits, size_t count,
                              const int32_t *before, size_t before_count, mcc_candidate *scratch)
{
    const float penalty = how->repetition_penalty;
    mcc_sampler s;
    mcc_candidate first;
    uint64_t target, likelihood, sum = 0u;
    size_t i;
    if (count == 0u) return -1;
    for (i = 0u; i < count; i++) {
        scratch[i].logit = logits[i] == logits[i] ? logits[i] : -INFINITY;
        scratch[i].token = (int32_t)i;
    }
    for (i = 0u; i < before_count && penalty > 0.0f; i++) {
        const int32_t token = before[i];
        volatile float lowered;
        if (token < 0 || (size_t)token >= count || logits[token] != logits[token]) continue;
        lowered = logits[token] > 0.0f ? logits[token] / penalty : logits[token] * penalty;
        scratch[token].logit = lowered;
    }
    first = scratch[0];
    for (i = 1u; i < count; i++) {
        if (mcc_sample_before(scratch[i], first)) first = scratch[i];
    }
    if (first.logit == -INFINITY) return -1;
    if (!(how->temperature > 0.0f)) return first.token;
    s.how = how;
    s.heap = scratch;
    s.count = count;
    s.taken = 0u;
    s.most = first.logit;
    for (i = count / 2u; i > 0u; i--) mcc_sample_sift(scratch, count, i - 1u);
    target = mcc_sample_total(&s, how->top_k > 0 && (size_t)how->top_k < count ? (size_t)how->top_k : count);
    target = mcc_sample_part(mcc_random_mix(how->seed + (*drawn)++ * UINT64_C(0xD1342543DE82EF95)) >> 32, target);
    for (i = 0u; sum <= target && i < count; i++) {
        first = mcc_sample_nth(&s, i, &likelihood);
        sum += likelihood;
    }
    return first.token;
}

#endif
