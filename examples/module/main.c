/* main.c - firmware that knows no network: it takes modules as they come, refuses what is damaged or for another core,
 * and asks each what goes in and what comes out. Here they come as files, from the debugger. */
#include "mcc_module_functions.h"
#include "words.h"

void say(const char *text); /* startup.c: to the debugger */
void leave(int failed);

static const mcc_module_functions functions = MCC_MODULE_GIVEN;
static MCC_ALIGNED(64) uint8_t slot[64u << 10]; /* where modules lie; it could be flash */
static MCC_ALIGNED(64) uint8_t memory[32u << 10];

static uintptr_t semihost(uintptr_t operation, const void *block)
{
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static size_t receive(const char *name)
{
    const uintptr_t opened[3] = {(uintptr_t)name, 1u, strlen(name)};
    uintptr_t read[3] = {0u, (uintptr_t)slot, sizeof slot};
    read[0] = semihost(0x01u, opened);
    return sizeof slot - semihost(0x06u, read);
}

static mcc_status take(const char *name, mcc_module *m)
{
    const size_t bytes = receive(name);
    mcc_status status = mcc_module_open(m, slot, bytes, &functions);
    if (status == MCC_OK) status = mcc_module_init(m, memory, sizeof memory);
    say(name);
    say(": ");
    say(status == MCC_OK ? "taken" : mcc_status_text(status));
    say("\n");
    return status;
}

/* How many of the words it hears wrongly. */
static int hear(const mcc_module *m)
{
    int wrong = 0;
    uint8_t word;
    for (word = 0; word < sizeof words / sizeof words[0]; word++) {
        (void)memcpy(mcc_module_input(m, 0u), words[word], sizeof words[word]);
        if (mcc_module_run(m) != MCC_OK) return -1;
        wrong += *(const uint8_t *)mcc_module_output(m, 0u) != word;
    }
    return wrong;
}

/* The class of a blank picture: 0 to 9. */
static int see(const mcc_module *m)
{
    (void)memset(mcc_module_input(m, 0u), 0, mcc_module_tensor_at(m, 0u)->bytes);
    if (mcc_module_run(m) != MCC_OK) return -1;
    return *(const uint8_t *)mcc_module_output(m, 0u);
}

int main(void)
{
    mcc_module m;
    int failed = take("kws/kws.mcm", &m) != MCC_OK || hear(&m) != 0;
    if (!failed) say("  every word is heard\n");
    failed |= take("digits/digits.mcm", &m) != MCC_OK || see(&m) < 0;
    failed |= take("half.mcm", &m) != MCC_ERR_MODULE_SIZE;
    leave(failed);
    return 0;
}
