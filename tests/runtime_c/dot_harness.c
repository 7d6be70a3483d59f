/* The functions of mcc_dot.h over arrays of n elements, a multiple of 4 * LANES; LANES and
 * MACHINE, the header for so many lanes, come from the command line. */
#include MACHINE

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define I32(name) JOIN(JOIN(JOIN(mcc_, name), _i32x), LANES)
#define I64(name) JOIN(JOIN(JOIN(mcc_, name), _i64x), LANES)
#define VECTOR JOIN(mcc_i32x, LANES)

static void put(int32_t *p, VECTOR v) { (void)memcpy(p, &v, sizeof v); }

/* Sums of four products each, of elements in the machine's form. */
void t_dot(const uint8_t *x, const int8_t *w, int32_t *y, int n);
void t_dot(const uint8_t *x, const int8_t *w, int32_t *y, int n)
{
    for (int i = 0; i < n; i += 4 * LANES) {
        put(y + i / 4, I32(dot)(I32(load)(y + i / 4), I32(dot_form_u8)(I32(load)(x + i)), I32(load)(w + i)));
    }
}

int32_t t_sum_u8(const uint8_t *x, int n);
int32_t t_sum_u8(const uint8_t *x, int n) { return I32(sum_u8)(x, n); }
int32_t t_sum_i8(const int8_t *x, int n);
int32_t t_sum_i8(const int8_t *x, int n) { return I32(sum_i8)(x, n); }

void t_high_sum(const int32_t *sum, const int32_t *a, const int32_t *b, int32_t *y, int n);
void t_high_sum(const int32_t *sum, const int32_t *a, const int32_t *b, int32_t *y, int n)
{
    for (int i = 0; i < n; i += LANES) put(y + i, I32(high_sum)(I32(load)(sum + i), I32(load)(a + i), I32(load)(b + i)));
}

void t_shift_even(const int32_t *sum, int32_t *y, int n);
void t_shift_even(const int32_t *sum, int32_t *y, int n)
{
    for (int i = 0; i < n; i += LANES) put(y + i, I32(shift_even)(I32(load)(sum + i), 5));
}

/* What mcc_quant.h makes of a term; multipliers and addends lie as even lanes, then odd ones. */
void t_fixed(const int32_t *t, const int64_t *m, const int64_t *addend, const uint8_t *shift, int32_t *y, int n);
void t_fixed(const int32_t *t, const int64_t *m, const int64_t *addend, const uint8_t *shift, int32_t *y, int n)
{
    for (int i = 0; i < n; i += LANES) {
        const JOIN(mcc_i64x, LANES) product = I32(fixed_product)(I32(load)(t + i), I64(load)(m + i));
        put(y + i, I64(fixed_round)(I64(add)(product, I64(load)(addend + i)), I32(load_u8)(shift + i)));
    }
}

void t_four_u8(const uint8_t *x, uint8_t *y, int n);
void t_four_u8(const uint8_t *x, uint8_t *y, int n)
{
    for (int i = 0; i < n; i += 4 * LANES) I32(store_four_u8)(y + i, I32(load_four_u8)(x + i));
}
void t_four_i8(const int8_t *x, int8_t *y, int n);
void t_four_i8(const int8_t *x, int8_t *y, int n)
{
    for (int i = 0; i < n; i += 4 * LANES) I32(store_four_i8)(y + i, I32(load_four_i8)(x + i));
}

void t_saturated(const int32_t *x, uint8_t *unsigned_y, int8_t *signed_y, int n);
void t_saturated(const int32_t *x, uint8_t *unsigned_y, int8_t *signed_y, int n)
{
    for (int i = 0; i < n; i += LANES) {
        I32(store_saturated_u8)(unsigned_y + i, I32(load)(x + i));
        I32(store_saturated_i8)(signed_y + i, I32(load)(x + i));
    }
}
