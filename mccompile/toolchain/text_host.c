/* text_host.c: programs of language models for Python; functions whose names do not depend on the model. */
#include "mcc_text_model.h"

size_t text_session_bytes(void) { return sizeof(TEXT_NAME(session)); }

size_t text_arena_bytes(void) { return TEXT_SIZE(ARENA_BYTES); }


const char *text_status(const void *session)
{
    const TEXT_NAME(session) *const s = (const TEXT_NAME(session) *)session;
    return mcc_status_text(s->status);
}

int32_t text_made(const void *session)
{
    const TEXT_NAME(session) *const s = (const TEXT_NAME(session) *)session;
    return s->made;
}

int text_begin(void *session, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes)
{
    return TEXT_NAME(begin)((TEXT_NAME(session) *)session, arena, arena_bytes, weights, weights_bytes) == MCC_OK;
}

int text_restart(void *session) { return TEXT_NAME(restart)((TEXT_NAME(session) *)session) == MCC_OK; }

/* `numbers`: temperature, top_p, min_p, repetition_penalty. */
void text_sampling(void *session, const float *numbers, int32_t top_k, uint64_t seed, int32_t keep)
{
    TEXT_NAME(session) *const s = (TEXT_NAME(session) *)session;
    s->sampling.temperature = numbers[0];
    s->sampling.top_p = numbers[1];
    s->sampling.min_p = numbers[2];
    s->sampling.repetition_penalty = numbers[3];
    s->sampling.top_k = top_k;
    s->sampling.seed = seed;
    s->keep = keep;
}

void text_stop(void *session, const char *const *stop, size_t count)
{
    TEXT_NAME(session) *const s = (TEXT_NAME(session) *)session;
    s->stop = stop;
    s->stop_count = count;
}

int text_generate(void *session, const char *prompt, size_t bytes, int32_t most, mcc_told told)
{
    return TEXT_NAME(generate)((TEXT_NAME(session) *)session, prompt, bytes, most, told, NULL);
}

#ifdef TEXT_CHATS
int text_ask(void *session, const char *system, const char *question, int32_t most, mcc_told told)
{
    TEXT_NAME(session) *const s = (TEXT_NAME(session) *)session;
#ifdef TEXT_DATES
    const time_t now = time(NULL);
    const struct tm *const today = localtime(&now);
    if (today != NULL) s->today = *today;
#endif
    return TEXT_NAME(ask)(s, system, question, most, told, NULL);
}
#endif
