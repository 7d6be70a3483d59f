/* The runtime's inline functions as loops over arrays, all of one type, so that numpy can call them. */
#include "mcc_init.h"
#include "mcc_lanes.h"
#include "mcc_math.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DECLARE(name) void t_##name(const void *, const void *, void *, mcc_index);
#define UNARY(name, in, out)                                                                                           \
    DECLARE(name)                                                                                                      \
    void t_##name(const void *a, const void *b, void *r, mcc_index n)                                                  \
    {                                                                                                                  \
        mcc_index i;                                                                                                   \
        (void)b;                                                                                                       \
        for (i = 0; i < n; i++) ((out *)r)[i] = mcc_##name(((const in *)a)[i]);                                        \
    }
#define BINARY(name, type)                                                                                             \
    DECLARE(name)                                                                                                      \
    void t_##name(const void *a, const void *b, void *r, mcc_index n)                                                  \
    {                                                                                                                  \
        mcc_index i;                                                                                                   \
        for (i = 0; i < n; i++) ((type *)r)[i] = mcc_##name(((const type *)a)[i], ((const type *)b)[i]);               \
    }

#define INTEGER(T, type)                                                                                               \
    BINARY(add_##T, type) BINARY(sub_##T, type) BINARY(mul_##T, type) BINARY(div_##T, type) BINARY(mod_##T, type)      \
    BINARY(fmod_##T, type) BINARY(pow_##T, type) BINARY(shl_##T, type) BINARY(shr_##T, type) BINARY(min_##T, type)     \
    BINARY(max_##T, type) UNARY(neg_##T, type, type) UNARY(abs_##T, type, type) UNARY(sign_##T, type, type)
INTEGER(i8, int8_t)
INTEGER(i16, int16_t)
INTEGER(i32, int32_t)
INTEGER(i64, int64_t)
INTEGER(u8, uint8_t)
INTEGER(u16, uint16_t)
INTEGER(u32, uint32_t)
INTEGER(u64, uint64_t)

#define LANES(T, type) BINARY(lane_div_##T, type) BINARY(lane_mod_##T, type) BINARY(lane_fmod_##T, type)
LANES(i8, int8_t)
LANES(i16, int16_t)
LANES(i32, int32_t)
LANES(i64, int64_t)
LANES(u8, uint8_t)
LANES(u16, uint16_t)
LANES(u32, uint32_t)
UNARY(lane_round_even_f32, float, float)

#define MIXED(name, in, with, out)                                                                                     \
    DECLARE(name)                                                                                                      \
    void t_##name(const void *a, const void *b, void *r, mcc_index n)                                                  \
    {                                                                                                                  \
        mcc_index i;                                                                                                   \
        for (i = 0; i < n; i++) ((out *)r)[i] = mcc_##name(((const in *)a)[i], ((const with *)b)[i]);                  \
    }
MIXED(fixed_product, int32_t, int64_t, int64_t)
MIXED(fixed_round, int64_t, uint8_t, int32_t)
MIXED(shift_even, int32_t, int32_t, int32_t)
MIXED(even_shift, uint64_t, uint8_t, uint32_t)
MIXED(f32_near_i8, float, int32_t, int8_t)
MIXED(f32_near_u8, float, int32_t, uint8_t)
MIXED(f32_near_i16, float, int32_t, int16_t)
MIXED(f32_near_u16, float, int32_t, uint16_t)

/* The root, and behind it how far it was moved. */
DECLARE(inverse_root)
void t_inverse_root(const void *a, const void *b, void *r, mcc_index n)
{
    mcc_index i;
    (void)b;
    for (i = 0; i < n; i++) {
        int moved;
        ((int32_t *)r)[i] = mcc_inverse_root(((const uint64_t *)a)[i], &moved);
        ((int32_t *)r)[n + i] = moved;
    }
}

#define FLOAT(T, type)                                                                                                 \
    BINARY(min_##T, type) BINARY(max_##T, type) BINARY(mod_##T, type) BINARY(fmod_##T, type)                           \
    UNARY(sign_##T, type, type) UNARY(erf_##T, type, type) UNARY(round_even_##T, type, type)                           \
    UNARY(T##_to_bool, type, uint8_t) UNARY(T##_to_i8, type, int8_t) UNARY(T##_to_i16, type, int16_t)                  \
    UNARY(T##_to_i32, type, int32_t) UNARY(T##_to_i64, type, int64_t) UNARY(T##_to_u8, type, uint8_t)                  \
    UNARY(T##_to_u16, type, uint16_t) UNARY(T##_to_u32, type, uint32_t) UNARY(T##_to_u64, type, uint64_t)
FLOAT(f32, float)
FLOAT(f64, double)

#define NARROW(N, type)                                                                                                \
    UNARY(N##_to_f32, type, float) UNARY(f32_to_##N, float, type) UNARY(f64_to_##N, double, type)
NARROW(f16, uint16_t)
NARROW(bf16, uint16_t)
NARROW(f4e2m1, uint8_t)
UNARY(f8e8m0_to_f32, uint8_t, float)
UNARY(f32_to_f8e8m0, float, uint8_t)

#define FLOAT8(N) NARROW(N, uint8_t) UNARY(f32_to_##N##_sat, float, uint8_t) UNARY(f64_to_##N##_sat, double, uint8_t)
FLOAT8(f8e4m3fn)
FLOAT8(f8e4m3fnuz)
FLOAT8(f8e5m2)
FLOAT8(f8e5m2fnuz)

#define PACKED(P, type)                                                                                                \
    DECLARE(load_##P)                                                                                                  \
    void t_load_##P(const void *a, const void *b, void *r, mcc_index n)                                                \
    {                                                                                                                  \
        mcc_index i;                                                                                                   \
        (void)b;                                                                                                       \
        for (i = 0; i < n; i++) ((type *)r)[i] = mcc_load_##P((const uint8_t *)a, i);                                  \
    }                                                                                                                  \
    DECLARE(store_##P)                                                                                                 \
    void t_store_##P(const void *a, const void *b, void *r, mcc_index n)                                               \
    {                                                                                                                  \
        mcc_index i;                                                                                                   \
        (void)b;                                                                                                       \
        for (i = 0; i < n; i++) mcc_store_##P((uint8_t *)r, i, ((const type *)a)[i]);                                  \
    }
PACKED(i4, int8_t)
PACKED(u4, uint8_t)
PACKED(i2, int8_t)
PACKED(u2, uint8_t)

int t_blob_open(const void *blob, size_t bytes, const uint8_t *identity, size_t need, size_t align, ptrdiff_t *data_offset);
int t_blob_open(const void *blob, size_t bytes, const uint8_t *identity, size_t need, size_t align, ptrdiff_t *data_offset)
{
    const uint8_t *data;
    const mcc_status status = mcc_blob_open(blob, bytes, identity, need, align, &data);
    *data_offset = status == MCC_OK ? data - (const uint8_t *)blob : -1;
    return (int)status;
}

uint32_t t_crc32(uint32_t crc, const uint8_t *p, size_t count);
uint32_t t_crc32(uint32_t crc, const uint8_t *p, size_t count)
{
    return mcc_crc32_of_many(crc, p, count);
}

int t_check_arena(const void *arena, size_t bytes, size_t need, size_t align);
int t_check_arena(const void *arena, size_t bytes, size_t need, size_t align)
{
    return (int)mcc_check_arena(arena, bytes, need, align);
}

const char *t_status_text(int status);
const char *t_status_text(int status) { return mcc_status_text((mcc_status)status); }

#ifdef __cplusplus
}
#endif
