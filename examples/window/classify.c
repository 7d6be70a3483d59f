/* classify.c - a Linux program whose weights stay in their file: a thread reads the next piece of it while the network
 * computes, so that a few pieces of the weights are in memory, and never all of them.
 *
 *     classify digits.mcb PICTURE...     a picture is a file of 64 float32 in 0..1 (8 rows of 8)
 */
#include <stdio.h>

#include "digits.h"
#include "mcc_file.h"

static MCC_ALIGNED(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES];

static int classify(digits_model *model, const char *path)
{
    FILE *const picture = fopen(path, "rb");
    size_t read = 0;
    mcc_status status;
    if (picture != NULL) {
        read = fread(digits_input_image(model), 1, DIGITS_INPUT_IMAGE_BYTES, picture);
        fclose(picture);
    }
    if (read != DIGITS_INPUT_IMAGE_BYTES) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    status = digits_run(model);
    if (status != MCC_OK) {
        fprintf(stderr, "%s\n", mcc_status_text(status));
        return 1;
    }
    printf("%s: %u\n", path, (unsigned)digits_output_scores(model)[0]);
    return 0;
}

int main(int argc, char **argv)
{
    mcc_file file;
    mcc_reader reader;
    digits_model model;
    mcc_status status;
    int failed = 0;

    if (argc < 2) return 2;
    if (mcc_file_open(&file, argv[1]) != 0) {
        fprintf(stderr, "cannot read %s\n", argv[1]);
        return 1;
    }
    reader = mcc_file_reader(&file);
    status = digits_init_from(&model, arena, sizeof arena, &reader);
    if (status != MCC_OK) fprintf(stderr, "%s: %s\n", argv[1], mcc_status_text(status));
    for (int i = 2; i < argc && status == MCC_OK; i++) failed |= classify(&model, argv[i]);
    mcc_file_close(&file);
    return status != MCC_OK || failed;
}
