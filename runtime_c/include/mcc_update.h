/* mcc_update.h - weights that are exchanged in the field: two slots of the program's flash (mcc_store.h), of which the
 * one that runs is never written. What comes in goes to the other one, and counts from the moment its header is whole:
 * a power cut at any byte leaves what ran before, or all of the new.
 *
 * An update is a signature of 64 bytes, a manifest of 64, and the blob; `mccompile blob --update` writes the last two,
 * which are what is signed. In a slot they lie behind the header, so the blob begins at MCC_UPDATE_BLOB_AT.
 *
 *     manifest     "MCCU", format 1, version, counter, bytes of the blob, CRC-32 of the blob (4 bytes each),
 *                  identity of the code (16), zeros (20), CRC-32 of all that (4); little-endian
 *
 * An update whose counter is lower than that of the weights that run, or than `least`, is refused. So the counter goes
 * up where old weights must not come back; the version says no more than what it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_UPDATE_H
#define MCC_UPDATE_H

#include "mcc_store.h"

#define MCC_UPDATE_MAGIC 0x5543434Du /* "MCCU" */
#define MCC_UPDATE_FORMAT 1u
#define MCC_UPDATE_SIGNATURE_BYTES 64u
#define MCC_UPDATE_MANIFEST_BYTES 64u
#define MCC_UPDATE_HEAD_BYTES (MCC_UPDATE_SIGNATURE_BYTES + MCC_UPDATE_MANIFEST_BYTES)
#define MCC_UPDATE_SIGNED_AT (MCC_STORE_HEADER_BYTES + MCC_UPDATE_SIGNATURE_BYTES) /* in a slot: manifest, then blob */
#define MCC_UPDATE_BLOB_AT (MCC_STORE_HEADER_BYTES + MCC_UPDATE_HEAD_BYTES)
#define MCC_UPDATE_PIECE 64u /* bytes of a write to flash, at a multiple of as many */

/* Weights in a slot. */
typedef struct mcc_update_found {
    uint32_t slot, version, counter, sequence;
} mcc_update_found;

typedef struct mcc_update {
    const mcc_store *store;
    const uint8_t *identity; /* of the code, and how long its blob is: <model>_update.h has both */
    uint32_t blob_bytes;
    uint32_t least; /* the lowest counter that may run: 0, or what the program keeps where nobody can set it back */
    /* Not 0 if `signature` is right for these bytes of a slot. Asked before weights count, and each time that they are
     * looked for. */
    int (*is_genuine)(void *user, uint32_t slot, uint32_t at, uint32_t bytes,
                      const uint8_t signature[MCC_UPDATE_SIGNATURE_BYTES]);
    void *user;
    /* of the update that comes in */
    mcc_status status;
    uint32_t slot, sequence, counter; /* where it goes; what ran before */
    uint32_t at, crc, blob_crc;       /* bytes that came; checksums so far: of all, and of the blob */
    uint32_t wanted_crc;
    uint8_t waiting[MCC_UPDATE_HEAD_BYTES]; /* the head, then a piece at a time */
} mcc_update;

/* All of an update. */
MCC_INLINE uint32_t mcc_update_bytes(const mcc_update *u)
{
    return MCC_UPDATE_HEAD_BYTES + u->blob_bytes;
}

/* Is this the manifest of weights that this code can run? */
MCC_INLINE mcc_status mcc_update_check(const mcc_update *u, const uint8_t *manifest, uint32_t least)
{
    const uint32_t crc_at = MCC_UPDATE_MANIFEST_BYTES - 4u;
    if (mcc_read_u32(manifest) != MCC_UPDATE_MAGIC) return MCC_ERR_BLOB_MAGIC;
    if (mcc_crc32(0u, manifest, crc_at) != mcc_read_u32(&manifest[crc_at])) return MCC_ERR_BLOB_CRC;
    if (mcc_read_u32(&manifest[4]) != MCC_UPDATE_FORMAT) return MCC_ERR_BLOB_VERSION;
    if (memcmp(&manifest[24], u->identity, MCC_BLOB_IDENTITY_BYTES) != 0) return MCC_ERR_BLOB_IDENTITY;
    if (mcc_read_u32(&manifest[16]) != u->blob_bytes) return MCC_ERR_BLOB_SIZE;
    return mcc_read_u32(&manifest[12]) < least ? MCC_ERR_UPDATE_OLD : MCC_OK;
}

/* Asks the program for the signature of what lies in a slot. */
MCC_INLINE mcc_status mcc_update_verify(const mcc_update *u, uint32_t slot)
{
    uint8_t signature[MCC_UPDATE_SIGNATURE_BYTES];
    const uint32_t bytes = MCC_UPDATE_MANIFEST_BYTES + u->blob_bytes;
    if (u->store->read(u->store->user, slot, MCC_STORE_HEADER_BYTES, signature, sizeof signature) != 0)
        return MCC_ERR_STORE;
    return u->is_genuine(u->user, slot, MCC_UPDATE_SIGNED_AT, bytes, signature) ? MCC_OK : MCC_ERR_UPDATE_SIGNATURE;
}

/* Does a slot hold weights that may run? */
MCC_INLINE int mcc_update_is_sound(const mcc_update *u, mcc_update_found *found)
{
    const mcc_store *const s = u->store;
    uint8_t manifest[MCC_UPDATE_MANIFEST_BYTES];
    if (!mcc_store_is_whole(s, found->slot, u->identity, mcc_update_bytes(u), &found->sequence)) return 0;
    if (s->read(s->user, found->slot, MCC_UPDATE_SIGNED_AT, manifest, sizeof manifest) != 0) return 0;
    if (mcc_update_check(u, manifest, u->least) != MCC_OK) return 0;
    found->version = mcc_read_u32(&manifest[8]);
    found->counter = mcc_read_u32(&manifest[12]);
    return mcc_update_verify(u, found->slot) == MCC_OK;
}

/* The weights to run: those that came last, of what is whole, genuine and not too old. MCC_ERR_STORE: neither slot has
 * any. */
MCC_INLINE mcc_status mcc_update_find(const mcc_update *u, mcc_update_found *found)
{
    mcc_update_found slots[2] = {{0u, 0u, 0u, 0u}, {1u, 0u, 0u, 0u}};
    int first, second;
    if (u->store == NULL || u->identity == NULL || u->is_genuine == NULL) return MCC_ERR_NULL;
    first = mcc_update_is_sound(u, &slots[0]);
    second = mcc_update_is_sound(u, &slots[1]);
    if (!first && !second) return MCC_ERR_STORE;
    *found = slots[second && (!first || slots[1].sequence - slots[0].sequence < 0x80000000u)];
    return MCC_OK;
}

/* An update begins to come; one that had begun is forgotten. */
MCC_INLINE mcc_status mcc_update_begin(mcc_update *u)
{
    mcc_update_found runs = {1u, 0u, 0u, 0u};
    u->status = mcc_update_find(u, &runs);
    if (u->status == MCC_ERR_STORE) u->status = MCC_OK; /* nothing is there yet */
    u->slot = 1u - runs.slot;
    u->sequence = runs.sequence + 1u;
    u->counter = runs.counter;
    u->at = 0u;
    u->crc = 0u;
    u->blob_crc = 0u;
    return u->status;
}

/* The first `count` of the bytes that wait go to the slot, where they come last. */
MCC_INLINE mcc_status mcc_update_flush(mcc_update *u, uint32_t count)
{
    const mcc_store *const s = u->store;
    const uint32_t at = MCC_STORE_HEADER_BYTES + u->at - count;
    u->crc = mcc_crc32(u->crc, u->waiting, count);
    if (u->at > MCC_UPDATE_HEAD_BYTES) u->blob_crc = mcc_crc32(u->blob_crc, u->waiting, count);
    return s->write(s->user, u->slot, at, u->waiting, count) == 0 ? MCC_OK : MCC_ERR_STORE;
}

/* The head is whole: nothing is erased for an update that is refused. */
MCC_INLINE mcc_status mcc_update_open(mcc_update *u)
{
    const uint8_t *const manifest = &u->waiting[MCC_UPDATE_SIGNATURE_BYTES];
    const mcc_status status = mcc_update_check(u, manifest, u->counter > u->least ? u->counter : u->least);
    if (status != MCC_OK) return status;
    u->wanted_crc = mcc_read_u32(&manifest[20]);
    if (u->store->erase(u->store->user, u->slot) != 0) return MCC_ERR_STORE;
    return mcc_update_flush(u, MCC_UPDATE_HEAD_BYTES);
}

/* The next bytes of an update, in pieces of any size. Once it has failed it goes on failing, until it begins anew. */
MCC_INLINE mcc_status mcc_update_write(mcc_update *u, const uint8_t *bytes, size_t count)
{
    size_t i;
    for (i = 0u; i < count && u->status == MCC_OK; ++i) {
        if (u->at == mcc_update_bytes(u)) {
            u->status = MCC_ERR_BLOB_SIZE;
        } else if (u->at < MCC_UPDATE_HEAD_BYTES) {
            u->waiting[u->at++] = bytes[i];
            if (u->at == MCC_UPDATE_HEAD_BYTES) u->status = mcc_update_open(u);
        } else {
            u->waiting[u->at++ % MCC_UPDATE_PIECE] = bytes[i];
            if (u->at % MCC_UPDATE_PIECE == 0u) u->status = mcc_update_flush(u, MCC_UPDATE_PIECE);
        }
    }
    return u->status;
}

/* All of it came: the new weights count, if their signature is right. The next call of mcc_update_find finds them. */
MCC_INLINE mcc_status mcc_update_end(mcc_update *u)
{
    if (u->status == MCC_OK && u->at != mcc_update_bytes(u)) u->status = MCC_ERR_BLOB_SIZE;
    if (u->status == MCC_OK && u->blob_crc != u->wanted_crc) u->status = MCC_ERR_BLOB_CRC;
    if (u->status == MCC_OK) u->status = mcc_update_verify(u, u->slot);
    if (u->status == MCC_OK)
        u->status = mcc_store_seal(u->store, u->slot, u->sequence, u->identity, mcc_update_bytes(u), u->crc);
    if (u->status != MCC_OK) return u->status;
    u->status = MCC_ERR_NOT_BEGUN; /* another one begins anew */
    return MCC_OK;
}

#endif
