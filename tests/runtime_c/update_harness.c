/* update_harness.c - slots of a flash that loses its power: behind so many bytes that are erased or written, the next one
 * is left between what it was and what it should be, and nothing is done after that. */
#include "mcc_update.h"

#define BLOB 256u
#define SLOT (MCC_UPDATE_BLOB_AT + BLOB)

void harness_clear(void);
void harness_power(long bytes, unsigned seed);
int harness_install(const uint8_t *update, uint32_t count, uint32_t piece, uint32_t least);
int harness_find(uint32_t least, uint8_t *blob);
uint32_t harness_version(void);
void harness_flip(uint32_t slot, uint32_t at);
int harness_misused(void);

static uint8_t flash[2][SLOT], is_written[2][SLOT];
static long power;
static uint32_t noise, version;
static int misused; /* flash that was written twice, or in pieces that it does not take */

static const uint8_t identity[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* 0: the power is gone. The byte at which it goes has some of its bits. */
static int put(uint8_t *to, uint8_t value)
{
    if (power < 0) return 0;
    if (power-- > 0) {
        *to = value;
        return 1;
    }
    noise = noise * 1664525u + 1013904223u;
    *to = (uint8_t)((*to & (noise >> 24)) | (value & ~(noise >> 24)));
    return 0;
}

static int read_slot(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes)
{
    (void)user;
    if (slot > 1u || at > SLOT || bytes > SLOT - at) return 1;
    (void)memcpy(to, &flash[slot][at], bytes);
    return 0;
}

static int erase(void *user, uint32_t slot)
{
    size_t i;
    (void)user;
    (void)memset(is_written[slot], 0, SLOT);
    for (i = 0u; i < SLOT; i++) {
        if (!put(&flash[slot][i], 0xFFu)) return 1;
    }
    return 0;
}

static int write_slot(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes)
{
    const uint8_t *const p = (const uint8_t *)from;
    size_t i;
    (void)user;
    if (at % 64u != 0u || bytes % 64u != 0u || at > SLOT || bytes > SLOT - at) misused++;
    for (i = 0u; i < bytes; i++) {
        misused += is_written[slot][at + i];
        is_written[slot][at + i] = 1u;
        if (!put(&flash[slot][at + i], p[i])) return 1;
    }
    return 0;
}

/* A signature is all bytes exclusive-ored, 64 times. */
static int is_genuine(void *user, uint32_t slot, uint32_t at, uint32_t bytes, const uint8_t signature[64])
{
    uint8_t all = 0u;
    uint32_t i;
    (void)user;
    for (i = 0u; i < bytes; i++) all ^= flash[slot][at + i];
    for (i = 0u; i < 64u; i++) {
        if (signature[i] != all) return 0;
    }
    return 1;
}

static const mcc_store store = {read_slot, erase, write_slot, NULL};

static mcc_update updates(uint32_t least)
{
    mcc_update u;
    (void)memset(&u, 0, sizeof u);
    u.store = &store;
    u.identity = identity;
    u.blob_bytes = BLOB;
    u.least = least;
    u.is_genuine = is_genuine;
    return u;
}

void harness_clear(void)
{
    (void)memset(flash, 0xFF, sizeof flash);
    (void)memset(is_written, 0, sizeof is_written);
    misused = 0;
    harness_power(1000000L, 1u);
}

void harness_power(long bytes, unsigned seed)
{
    power = bytes;
    noise = seed;
}

int harness_install(const uint8_t *update, uint32_t count, uint32_t piece, uint32_t least)
{
    mcc_update u = updates(least);
    uint32_t at;
    if (mcc_update_begin(&u) != MCC_OK) return (int)u.status;
    for (at = 0u; at < count; at += piece) (void)mcc_update_write(&u, &update[at], count - at < piece ? count - at : piece);
    return (int)mcc_update_end(&u);
}

int harness_find(uint32_t least, uint8_t *blob)
{
    const mcc_update u = updates(least);
    mcc_update_found found;
    const mcc_status status = mcc_update_find(&u, &found);
    if (status != MCC_OK) return (int)status;
    version = found.version;
    (void)memcpy(blob, &flash[found.slot][MCC_UPDATE_BLOB_AT], BLOB);
    return 0;
}

uint32_t harness_version(void) { return version; }

void harness_flip(uint32_t slot, uint32_t at) { flash[slot][at] ^= 1u; }

int harness_misused(void) { return misused; }
