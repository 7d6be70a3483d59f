"""A flash of two slots in C, for programs of tests that save what they learned."""

# Writes no byte more once `power`, which counts bytes, is used up.
SLOTS = """
static uint8_t flash[2][NET_SLOT_BYTES];
static long power;
static int put(uint8_t *to, uint8_t value) { if (power-- <= 0) return 1; *to = value; return 0; }
static int read_slot(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes)
{
    (void)user;
    memcpy(to, &flash[slot][at], bytes);
    return 0;
}
static int erase(void *user, uint32_t slot)
{
    (void)user;
    for (size_t i = 0; i < NET_SLOT_BYTES; ++i) if (put(&flash[slot][i], 0xFF)) return 1;
    return 0;
}
static int write(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes)
{
    (void)user;
    for (size_t i = 0; i < bytes; ++i) if (put(&flash[slot][at + i], ((const uint8_t *)from)[i])) return 1;
    return 0;
}
static const mcc_store store = {read_slot, erase, write, NULL};
"""
