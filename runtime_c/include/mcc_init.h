/* mcc_init.h - the checks that <model>_init makes before a model is used: the arena fits, the blob is whole and the
 * right one. Included by <model>.c only. SPEC.md describes the blob bit by bit; it is used in place, never copied or
 * written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_INIT_H
#define MCC_INIT_H

#include <string.h>

#include "mcc.h"

#define MCC_BLOB_MAGIC 0x4243434Du /* "MCCB" */
#define MCC_BLOB_VERSION 1u
#define MCC_BLOB_HEADER_BYTES 64u
#define MCC_BLOB_ENTRY_BYTES 24u
#define MCC_BLOB_IDENTITY_BYTES 16u

/* True if `address` is a multiple of `align`, a power of two. */
MCC_INLINE int mcc_is_aligned(const void *address, size_t align)
{
    return ((uintptr_t)address & (uintptr_t)(align - 1u)) == 0u;
}

/* The arena holds `need` bytes and lies at a multiple of `align`. A model that needs none accepts a null pointer. */
MCC_INLINE mcc_status mcc_check_arena(const void *arena, size_t bytes, size_t need, size_t align)
{
    if (need == 0u) return MCC_OK;
    if (arena == NULL) return MCC_ERR_NULL;
    if (bytes < need) return MCC_ERR_ARENA_SIZE;
    return mcc_is_aligned(arena, align) ? MCC_OK : MCC_ERR_ARENA_ALIGN;
}

/* Where the tensors of a model begin in its arena: behind the first canary. */
MCC_INLINE uint8_t *mcc_tensors(void *arena)
{
#ifdef MCC_CANARY
    return (uint8_t *)arena + MCC_CANARY_BYTES;
#else
    return (uint8_t *)arena;
#endif
}

/* Fills the canaries before and behind the tensors, before a run. */
MCC_INLINE void mcc_set_canaries(uint8_t *tensors, size_t bytes)
{
#ifdef MCC_CANARY
    (void)memset(tensors - MCC_CANARY_BYTES, 0xC5, MCC_CANARY_BYTES);
    (void)memset(tensors + bytes, 0xC5, MCC_CANARY_BYTES);
#else
    (void)tensors;
    (void)bytes;
#endif
}

/* After a run: are they as they were? */
MCC_INLINE mcc_status mcc_check_canaries(const uint8_t *tensors, size_t bytes)
{
#ifdef MCC_CANARY
    size_t i;
    for (i = 0; i < MCC_CANARY_BYTES; i++)
        if (tensors[bytes + i] != 0xC5u || (tensors - MCC_CANARY_BYTES)[i] != 0xC5u) return MCC_ERR_CANARY;
#else
    (void)tensors;
    (void)bytes;
#endif
    return MCC_OK;
}

MCC_INLINE int mcc_is_little_endian(void)
{
    const uint16_t one = 1u;
    uint8_t first;
    (void)memcpy(&first, &one, 1u);
    return first == 1u;
}

/* Header fields are assembled from bytes: the blob need not be aligned for them to be read. */
MCC_INLINE uint32_t mcc_read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

MCC_INLINE uint64_t mcc_read_u64(const uint8_t *p)
{
    return (uint64_t)mcc_read_u32(p) | (uint64_t)mcc_read_u32(&p[4]) << 32;
}

/* CRC-32 as in zip, PNG and Ethernet, continued from `crc` (0 to start); half a byte at a time: a small table. */
MCC_INLINE uint32_t mcc_crc32(uint32_t crc, const uint8_t *p, size_t count)
{
#ifdef MCC_CRC32
    return MCC_CRC32(crc, p, count);
#else
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    size_t i;
    crc = ~crc;
    for (i = 0; i < count; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15u];
        crc = crc >> 4 ^ table[crc & 15u];
    }
    return ~crc;
#endif
}

/* The same for many bytes, four at a time: a byte after the other where MCC_CRC_TABLE asks for that, else all at once
 * where 512 bytes of tables do not matter. Line k of these is what half a byte comes to after k more of zero. */
MCC_INLINE uint32_t mcc_crc32_of_many(uint32_t crc, const uint8_t *p, size_t count)
{
    size_t whole = 0; /* of words */
#if defined(MCC_CRC_TABLE) && !defined(MCC_CRC32)
    static const uint32_t table[256] = {
        0x00000000u, 0x77073096u, 0xEE0E612Cu, 0x990951BAu, 0x076DC419u, 0x706AF48Fu, 0xE963A535u, 0x9E6495A3u,
        0x0EDB8832u, 0x79DCB8A4u, 0xE0D5E91Eu, 0x97D2D988u, 0x09B64C2Bu, 0x7EB17CBDu, 0xE7B82D07u, 0x90BF1D91u,
        0x1DB71064u, 0x6AB020F2u, 0xF3B97148u, 0x84BE41DEu, 0x1ADAD47Du, 0x6DDDE4EBu, 0xF4D4B551u, 0x83D385C7u,
        0x136C9856u, 0x646BA8C0u, 0xFD62F97Au, 0x8A65C9ECu, 0x14015C4Fu, 0x63066CD9u, 0xFA0F3D63u, 0x8D080DF5u,
        0x3B6E20C8u, 0x4C69105Eu, 0xD56041E4u, 0xA2677172u, 0x3C03E4D1u, 0x4B04D447u, 0xD20D85FDu, 0xA50AB56Bu,
        0x35B5A8FAu, 0x42B2986Cu, 0xDBBBC9D6u, 0xACBCF940u, 0x32D86CE3u, 0x45DF5C75u, 0xDCD60DCFu, 0xABD13D59u,
        0x26D930ACu, 0x51DE003Au, 0xC8D75180u, 0xBFD06116u, 0x21B4F4B5u, 0x56B3C423u, 0xCFBA9599u, 0xB8BDA50Fu,
        0x2802B89Eu, 0x5F058808u, 0xC60CD9B2u, 0xB10BE924u, 0x2F6F7C87u, 0x58684C11u, 0xC1611DABu, 0xB6662D3Du,
        0x76DC4190u, 0x01DB7106u, 0x98D220BCu, 0xEFD5102Au, 0x71B18589u, 0x06B6B51Fu, 0x9FBFE4A5u, 0xE8B8D433u,
        0x7807C9A2u, 0x0F00F934u, 0x9609A88Eu, 0xE10E9818u, 0x7F6A0DBBu, 0x086D3D2Du, 0x91646C97u, 0xE6635C01u,
        0x6B6B51F4u, 0x1C6C6162u, 0x856530D8u, 0xF262004Eu, 0x6C0695EDu, 0x1B01A57Bu, 0x8208F4C1u, 0xF50FC457u,
        0x65B0D9C6u, 0x12B7E950u, 0x8BBEB8EAu, 0xFCB9887Cu, 0x62DD1DDFu, 0x15DA2D49u, 0x8CD37CF3u, 0xFBD44C65u,
        0x4DB26158u, 0x3AB551CEu, 0xA3BC0074u, 0xD4BB30E2u, 0x4ADFA541u, 0x3DD895D7u, 0xA4D1C46Du, 0xD3D6F4FBu,
        0x4369E96Au, 0x346ED9FCu, 0xAD678846u, 0xDA60B8D0u, 0x44042D73u, 0x33031DE5u, 0xAA0A4C5Fu, 0xDD0D7CC9u,
        0x5005713Cu, 0x270241AAu, 0xBE0B1010u, 0xC90C2086u, 0x5768B525u, 0x206F85B3u, 0xB966D409u, 0xCE61E49Fu,
        0x5EDEF90Eu, 0x29D9C998u, 0xB0D09822u, 0xC7D7A8B4u, 0x59B33D17u, 0x2EB40D81u, 0xB7BD5C3Bu, 0xC0BA6CADu,
        0xEDB88320u, 0x9ABFB3B6u, 0x03B6E20Cu, 0x74B1D29Au, 0xEAD54739u, 0x9DD277AFu, 0x04DB2615u, 0x73DC1683u,
        0xE3630B12u, 0x94643B84u, 0x0D6D6A3Eu, 0x7A6A5AA8u, 0xE40ECF0Bu, 0x9309FF9Du, 0x0A00AE27u, 0x7D079EB1u,
        0xF00F9344u, 0x8708A3D2u, 0x1E01F268u, 0x6906C2FEu, 0xF762575Du, 0x806567CBu, 0x196C3671u, 0x6E6B06E7u,
        0xFED41B76u, 0x89D32BE0u, 0x10DA7A5Au, 0x67DD4ACCu, 0xF9B9DF6Fu, 0x8EBEEFF9u, 0x17B7BE43u, 0x60B08ED5u,
        0xD6D6A3E8u, 0xA1D1937Eu, 0x38D8C2C4u, 0x4FDFF252u, 0xD1BB67F1u, 0xA6BC5767u, 0x3FB506DDu, 0x48B2364Bu,
        0xD80D2BDAu, 0xAF0A1B4Cu, 0x36034AF6u, 0x41047A60u, 0xDF60EFC3u, 0xA867DF55u, 0x316E8EEFu, 0x4669BE79u,
        0xCB61B38Cu, 0xBC66831Au, 0x256FD2A0u, 0x5268E236u, 0xCC0C7795u, 0xBB0B4703u, 0x220216B9u, 0x5505262Fu,
        0xC5BA3BBEu, 0xB2BD0B28u, 0x2BB45A92u, 0x5CB36A04u, 0xC2D7FFA7u, 0xB5D0CF31u, 0x2CD99E8Bu, 0x5BDEAE1Du,
        0x9B64C2B0u, 0xEC63F226u, 0x756AA39Cu, 0x026D930Au, 0x9C0906A9u, 0xEB0E363Fu, 0x72076785u, 0x05005713u,
        0x95BF4A82u, 0xE2B87A14u, 0x7BB12BAEu, 0x0CB61B38u, 0x92D28E9Bu, 0xE5D5BE0Du, 0x7CDCEFB7u, 0x0BDBDF21u,
        0x86D3D2D4u, 0xF1D4E242u, 0x68DDB3F8u, 0x1FDA836Eu, 0x81BE16CDu, 0xF6B9265Bu, 0x6FB077E1u, 0x18B74777u,
        0x88085AE6u, 0xFF0F6A70u, 0x66063BCAu, 0x11010B5Cu, 0x8F659EFFu, 0xF862AE69u, 0x616BFFD3u, 0x166CCF45u,
        0xA00AE278u, 0xD70DD2EEu, 0x4E048354u, 0x3903B3C2u, 0xA7672661u, 0xD06016F7u, 0x4969474Du, 0x3E6E77DBu,
        0xAED16A4Au, 0xD9D65ADCu, 0x40DF0B66u, 0x37D83BF0u, 0xA9BCAE53u, 0xDEBB9EC5u, 0x47B2CF7Fu, 0x30B5FFE9u,
        0xBDBDF21Cu, 0xCABAC28Au, 0x53B39330u, 0x24B4A3A6u, 0xBAD03605u, 0xCDD70693u, 0x54DE5729u, 0x23D967BFu,
        0xB3667A2Eu, 0xC4614AB8u, 0x5D681B02u, 0x2A6F2B94u, 0xB40BBE37u, 0xC30C8EA1u, 0x5A05DF1Bu, 0x2D02EF8Du,
    };
    whole = count / 4u * 4u;
    crc = ~crc;
    for (size_t i = 0; i < whole; i += 4u) {
        crc ^= mcc_read_u32(&p[i]);
        crc = crc >> 8 ^ table[crc & 255u];
        crc = crc >> 8 ^ table[crc & 255u];
        crc = crc >> 8 ^ table[crc & 255u];
        crc = crc >> 8 ^ table[crc & 255u];
    }
    crc = ~crc;
#elif UINTPTR_MAX > 0xFFFFFFFFu && !defined(MCC_CRC32)
    static const uint32_t table[8][16] = {
        {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
         0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu},
        {0x00000000u, 0x77073096u, 0xEE0E612Cu, 0x990951BAu, 0x076DC419u, 0x706AF48Fu, 0xE963A535u, 0x9E6495A3u,
         0x0EDB8832u, 0x79DCB8A4u, 0xE0D5E91Eu, 0x97D2D988u, 0x09B64C2Bu, 0x7EB17CBDu, 0xE7B82D07u, 0x90BF1D91u},
        {0x00000000u, 0x4AC21251u, 0x958424A2u, 0xDF4636F3u, 0xF0794F05u, 0xBABB5D54u, 0x65FD6BA7u, 0x2F3F79F6u,
         0x3B83984Bu, 0x71418A1Au, 0xAE07BCE9u, 0xE4C5AEB8u, 0xCBFAD74Eu, 0x8138C51Fu, 0x5E7EF3ECu, 0x14BCE1BDu},
        {0x00000000u, 0x191B3141u, 0x32366282u, 0x2B2D53C3u, 0x646CC504u, 0x7D77F445u, 0x565AA786u, 0x4F4196C7u,
         0xC8D98A08u, 0xD1C2BB49u, 0xFAEFE88Au, 0xE3F4D9CBu, 0xACB54F0Cu, 0xB5AE7E4Du, 0x9E832D8Eu, 0x87981CCFu},
        {0x00000000u, 0x1C26A370u, 0x384D46E0u, 0x246BE590u, 0x709A8DC0u, 0x6CBC2EB0u, 0x48D7CB20u, 0x54F16850u,
         0xE1351B80u, 0xFD13B8F0u, 0xD9785D60u, 0xC55EFE10u, 0x91AF9640u, 0x8D893530u, 0xA9E2D0A0u, 0xB5C473D0u},
        {0x00000000u, 0x01C26A37u, 0x0384D46Eu, 0x0246BE59u, 0x0709A8DCu, 0x06CBC2EBu, 0x048D7CB2u, 0x054F1685u,
         0x0E1351B8u, 0x0FD13B8Fu, 0x0D9785D6u, 0x0C55EFE1u, 0x091AF964u, 0x08D89353u, 0x0A9E2D0Au, 0x0B5C473Du},
        {0x00000000u, 0x5019579Fu, 0xA032AF3Eu, 0xF02BF8A1u, 0x9B14583Du, 0xCB0D0FA2u, 0x3B26F703u, 0x6B3FA09Cu,
         0xED59B63Bu, 0xBD40E1A4u, 0x4D6B1905u, 0x1D724E9Au, 0x764DEE06u, 0x2654B999u, 0xD67F4138u, 0x866616A7u},
        {0x00000000u, 0xB8BC6765u, 0xAA09C88Bu, 0x12B5AFEEu, 0x8F629757u, 0x37DEF032u, 0x256B5FDCu, 0x9DD738B9u,
         0xC5B428EFu, 0x7D084F8Au, 0x6FBDE064u, 0xD7018701u, 0x4AD6BFB8u, 0xF26AD8DDu, 0xE0DF7733u, 0x58631056u},
    };
    whole = count / 4u * 4u;
    crc = ~crc;
    for (size_t i = 0; i < whole; i += 4u) {
        const uint32_t word = crc ^ mcc_read_u32(&p[i]);
        crc = table[7][word & 15u] ^ table[6][word >> 4 & 15u] ^ table[5][word >> 8 & 15u] ^
              table[4][word >> 12 & 15u] ^ table[3][word >> 16 & 15u] ^ table[2][word >> 20 & 15u] ^
              table[1][word >> 24 & 15u] ^ table[0][word >> 28];
    }
    crc = ~crc;
#endif
    return mcc_crc32(crc, &p[whole], count - whole);
}

/* Checks a blob of `bytes` bytes from its first to its last, and sets `*data` to its data section. `identity` is that
 * of the generated code; a blob of any other model is refused. `need` and `align` are the length and the alignment of
 * the data that the code was made for: what the header says of them is not trusted. */
MCC_INLINE mcc_status mcc_blob_open(const void *blob, size_t bytes, const uint8_t identity[MCC_BLOB_IDENTITY_BYTES],
                                    size_t need, size_t align, const uint8_t **data)
{
    const uint8_t *const b = (const uint8_t *)blob;
    uint64_t total, table_end, data_offset, data_bytes;
    size_t i;

    if (blob == NULL || identity == NULL || data == NULL) return MCC_ERR_NULL;
    *data = NULL;
    if (!mcc_is_little_endian()) return MCC_ERR_BLOB_BYTE_ORDER;
    if (bytes < MCC_BLOB_HEADER_BYTES) return MCC_ERR_BLOB_SIZE;
    if (mcc_read_u32(b) != MCC_BLOB_MAGIC) return MCC_ERR_BLOB_MAGIC;
    if (mcc_read_u32(&b[4]) != (MCC_BLOB_VERSION | (uint32_t)MCC_BLOB_HEADER_BYTES << 16)) return MCC_ERR_BLOB_VERSION;

    total = mcc_read_u64(&b[8]);
    data_offset = mcc_read_u64(&b[32]);
    data_bytes = mcc_read_u64(&b[40]);
    table_end = MCC_BLOB_HEADER_BYTES + (uint64_t)MCC_BLOB_ENTRY_BYTES * mcc_read_u32(&b[52]);
    if (total != bytes || data_offset > total || data_bytes != total - data_offset || table_end > data_offset)
        return MCC_ERR_BLOB_SIZE;

#ifndef MCC_NO_CRC
    /* The first checksum covers all up to the data, except itself; so no byte is left out. */
    if (mcc_crc32(mcc_crc32(0u, b, 60u), &b[MCC_BLOB_HEADER_BYTES], (size_t)data_offset - MCC_BLOB_HEADER_BYTES) !=
        mcc_read_u32(&b[60]))
        return MCC_ERR_BLOB_CRC;
#endif
    for (i = 0; i < MCC_BLOB_IDENTITY_BYTES; i++)
        if (b[16u + i] != identity[i]) return MCC_ERR_BLOB_IDENTITY;
    if (data_bytes != need) return MCC_ERR_BLOB_SIZE;
    if (mcc_read_u32(&b[48]) != align || !mcc_is_aligned(&b[(size_t)data_offset], align)) return MCC_ERR_BLOB_ALIGN;
#ifndef MCC_NO_CRC
    if (mcc_crc32_of_many(0u, &b[(size_t)data_offset], (size_t)data_bytes) != mcc_read_u32(&b[56])) {
        return MCC_ERR_BLOB_CRC;
    }
#endif
    *data = &b[(size_t)data_offset];
    return MCC_OK;
}

#endif /* MCC_INIT_H */
