/* classify.c - a Linux program that maps the weights from their file: nothing is read before it is needed, and
 * processes that run the same network share the pages.
 *
 *     classify digits.mcb PICTURE...     a picture is a file of 64 float32 in 0..1 (8 rows of 8)
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digits.h"

static MCC_ALIGNED(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES];

/* A file as memory that can only be read; NULL and a message where that cannot be. */
static const void *mapped(const char *path, size_t *bytes)
{
    struct stat about;
    const void *memory = NULL;
    const int file = open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0) {
        *bytes = (size_t)about.st_size;
        memory = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) memory = NULL;
    }
    if (file >= 0) (void)close(file);
    if (memory == NULL) fprintf(stderr, "cannot map %s\n", path);
    return memory;
}

int main(int argc, char **argv)
{
    digits_model model;
    size_t bytes = 0;
    int i;
    mcc_status status;
    const void *const weights = argc > 1 ? mapped(argv[1], &bytes) : NULL;
    if (weights == NULL) {
        fprintf(stderr, "usage: %s digits.mcb PICTURE...\n", argv[0]);
        return 2;
    }
    /* Pages begin at multiples of 4096, so the blob is aligned. Its size, identity and checksums are checked here. */
    status = digits_init(&model, arena, sizeof arena, weights, bytes);
    for (i = 2; i < argc && status == MCC_OK; i++) {
        size_t size = 0;
        const void *const picture = mapped(argv[i], &size);
        if (picture == NULL || size != DIGITS_INPUT_IMAGE_BYTES) return 2;
        /* The picture is mapped as well, and the network reads it from there. */
        status = digits_set_input_image(&model, (const float *)picture);
        if (status == MCC_OK) status = digits_run(&model);
        if (status == MCC_OK) printf("%s: %d\n", argv[i], (int)digits_output_scores(&model)[0]);
    }
    if (status != MCC_OK) fprintf(stderr, "%s\n", mcc_status_text(status));
    return status == MCC_OK ? 0 : 1;
}
