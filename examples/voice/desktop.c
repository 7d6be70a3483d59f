/* desktop.c - tells when there is voice in what comes through a pipe: samples of 16 bits, little endian, 8000 a second. */
#include <stdio.h>
#include "hear.h"

static hearing h;

int main(void)
{
    unsigned char bytes[2 * VOICE_HOP];
    unsigned long samples = 0;
    mcc_status status = hear_start(&h);

    while (status == MCC_OK && fread(bytes, 2, VOICE_HOP, stdin) == VOICE_HOP) {
        const int before = h.heard;
        int16_t *const x = hear_samples(&h);
        size_t k;
        for (k = 0; k < VOICE_HOP; k++) {
            const int value = bytes[2 * k] | bytes[2 * k + 1] << 8;
            x[k] = (int16_t)(value < 0x8000 ? value : value - 0x10000);
        }
        samples += VOICE_HOP;
        status = hear_push(&h);
        if (h.heard != before) {
            printf("%s %.2f s\n", h.heard ? "voice from" : "to", (double)samples / RATE);
            fflush(stdout);
        }
    }
    if (status != MCC_OK) fprintf(stderr, "%s\n", mcc_status_text(status));
    return status != MCC_OK;
}
