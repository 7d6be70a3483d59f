/* Many texts in one call: what tests/tokenizer/built.py compiles beside a tokenizer. */
#include "tokenizer.h"

/* Tokens and decoded text of each text, one behind the other; `ends` has where each ends, `counts` its tokens. 0 where
 * there is no room for all. */
int tokenizer_many(const char *texts, const size_t *ends, size_t count, int32_t *tokens, size_t room, int32_t *counts,
                   uint32_t *scratch, size_t words, char *decoded, size_t bytes, size_t *decoded_ends);
int tokenizer_many(const char *texts, const size_t *ends, size_t count, int32_t *tokens, size_t room, int32_t *counts,
                   uint32_t *scratch, size_t words, char *decoded, size_t bytes, size_t *decoded_ends)
{
    size_t number, begin = 0u, at = 0u;
    for (number = 0u; number < count; number++) {
        mcc_decoding state = {{0u}, 0u, 0u};
        int32_t each;
        counts[number] = tokenizer_encode(texts + begin, ends[number] - begin, MCC_TOKENS_WHOLE, tokens, room, scratch,
                                          words);
        begin = ends[number];
        for (each = 0; each < counts[number]; each++) {
            if (bytes - at < TOKENIZER_MOST_BYTES) return 0;
            at += tokenizer_decode(&state, tokens[each], decoded + at);
        }
        if (bytes - at < TOKENIZER_MOST_BYTES) return 0;
        at += tokenizer_decode_end(&state, decoded + at);
        decoded_ends[number] = at;
        if (counts[number] > 0) {
            tokens += counts[number];
            room -= (size_t)counts[number];
        }
    }
    return 1;
}
