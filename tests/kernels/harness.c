/* Calls kernels on memory that comes from stdin and gives it back on stdout; see harness.py. Every block is an allocation of
 * its own and exactly as large as promised, so AddressSanitizer sees each byte too many. With HARNESS_GUARDS it lies between
 * guard bytes instead, and no better aligned than promised. With HARNESS_LOADS the first argument is a shared object of the
 * cases, so that one program serves all kernels. */
#define _POSIX_C_SOURCE 200112L
#ifdef HARNESS_LOADS
#include <dlfcn.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void stop(const char *why)
{
    fprintf(stderr, "harness: %s\n", why);
    exit(2);
}

/* Pointers of strings: on their way in and out they are block + 1 (upper half) and offset; 0 stands for no text. */
static void to_pointers(const struct harness_case *c, uint8_t **block, int which)
{
    size_t at;
    for (at = 0; at + sizeof(mcc_string) <= c->bytes[which]; at += sizeof(mcc_string)) {
        uint64_t place;
        mcc_string s;
        memcpy(&place, block[which] + at, sizeof place);
        memcpy(&s, block[which] + at, sizeof s);
        if (place >> 32 > (uint64_t)c->blocks) continue; /* of a result: not written yet */
        s.data = place == 0u ? "" : (const char *)block[(place >> 32) - 1u] + (uint32_t)place;
        memcpy(block[which] + at, &s, sizeof s);
    }
}

static void from_pointers(const struct harness_case *c, uint8_t **block, int which)
{
    size_t at;
    int i;
    for (at = 0; at + sizeof(mcc_string) <= c->bytes[which]; at += sizeof(mcc_string)) {
        uint64_t place = 0u;
        mcc_string s;
        memcpy(&s, block[which] + at, sizeof s);
        for (i = 0; s.size != 0u && i < c->blocks; i++) {
            const uintptr_t from = (uintptr_t)s.data - (uintptr_t)block[i];
            if (from < c->bytes[i] && s.size <= c->bytes[i] - from) place = (uint64_t)(i + 1) << 32 | from;
        }
        memcpy(block[which] + at, &place, sizeof place);
    }
}

#ifdef HARNESS_GUARDS
#define GUARD 96u

static uint8_t *allocate(size_t bytes, size_t align)
{
    const size_t room = (GUARD + 2u * align - 1u) / (2u * align) * (2u * align) + align;
    void *memory = NULL;
    if (posix_memalign(&memory, 2u * align < 64u ? 64u : 2u * align, room + bytes + GUARD) != 0) stop("no memory");
    memset(memory, 0xC3, room + bytes + GUARD);
    return (uint8_t *)memory + room;
}

static void release(uint8_t *block, size_t bytes, size_t align)
{
    const size_t room = (GUARD + 2u * align - 1u) / (2u * align) * (2u * align) + align;
    size_t at;
    for (at = 0; at < room + GUARD; at++) {
        if (block[at < room ? (ptrdiff_t)at - (ptrdiff_t)room : (ptrdiff_t)(bytes + at - room)] != 0xC3) stop("a write outside of a block");
    }
    free(block - room);
}
#else
static uint8_t *allocate(size_t bytes, size_t align)
{
    void *memory = NULL;
    if (posix_memalign(&memory, align < 8u ? 8u : align, bytes) != 0) stop("no memory");
    return (uint8_t *)memory;
}

static void release(uint8_t *block, size_t bytes, size_t align)
{
    (void)bytes;
    (void)align;
    free(block);
}
#endif

static const struct harness_cases *given_cases(int count, char **arguments)
{
#ifdef HARNESS_LOADS
    void *const library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    const void *const found = library == NULL ? NULL : dlsym(library, "harness_cases");
    if (found == NULL) stop(count == 2 ? dlerror() : "it takes one argument");
    return (const struct harness_cases *)found;
#else
    (void)count;
    (void)arguments;
    return &harness_cases;
#endif
}

int main(int count, char **arguments)
{
    const struct harness_cases *const cases = given_cases(count, arguments);
    size_t number;
    for (number = 0; number < cases->count; number++) {
        const struct harness_case *const c = &cases->first[number];
        uint8_t **const block = (uint8_t **)calloc((size_t)c->blocks, sizeof *block);
        int i;
        if (block == NULL) stop("no memory");
        for (i = 0; i < c->blocks; i++) {
            block[i] = allocate(c->bytes[i], c->align[i]);
            if (fread(block[i], 1, c->bytes[i], stdin) != c->bytes[i]) stop("stdin ends too early");
        }
        for (i = 0; i < c->blocks; i++)
            if (c->strings >> i & 1u) to_pointers(c, block, i);
        c->call(block);
        for (i = 0; i < c->blocks; i++)
            if (c->strings >> i & 1u) from_pointers(c, block, i);
        for (i = 0; i < c->blocks; i++) {
            fwrite(block[i], 1, c->bytes[i], stdout);
            release(block[i], c->bytes[i], c->align[i]);
        }
        free(block);
    }
    return 0;
}
