/* classify.c - a Linux program whose weights stay in their file: a thread reads the next piece of it while the network
 * computes, so that a few pieces of the weights are in memory, and never all of them.
 *
 *     classify digits.mcb PICTURE...     a picture is a file of 64 float32 in 0..1 (8 rows of 8)
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "digits.h"

static MCC_ALIGNED(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES];

/* What the thread is asked for: one piece at a time. */
struct source {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int file, asked, failed;
    uint8_t *to;
    uint64_t from;
    size_t bytes;
};

static void *read_pieces(void *user)
{
    struct source *const s = user;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->asked) pthread_cond_wait(&s->changed, &s->lock);
        if (s->bytes == 0u) break; /* the end */
        pthread_mutex_unlock(&s->lock);
        for (size_t done = 0; done < s->bytes && !s->failed;) {
            const ssize_t got = pread(s->file, s->to + done, s->bytes - done, (off_t)(s->from + done));
            if (got > 0) done += (size_t)got;
            s->failed = got <= 0;
        }
        pthread_mutex_lock(&s->lock);
        s->asked = 0;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int wait(void *user)
{
    struct source *const s = user;
    pthread_mutex_lock(&s->lock);
    while (s->asked) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return s->failed;
}

static int begin(void *user, void *to, uint64_t from, size_t bytes)
{
    struct source *const s = user;
    if (wait(s) != 0) return 1;
    pthread_mutex_lock(&s->lock);
    s->to = to;
    s->from = from;
    s->bytes = bytes;
    s->asked = 1;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

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
    static struct source source = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, -1, 0, 0, NULL, 0u, 0u};
    const mcc_reader reader = {begin, wait, &source};
    digits_model model;
    pthread_t thread;
    mcc_status status;
    int failed = 0;

    if (argc < 2) return 2;
    source.file = open(argv[1], O_RDONLY);
    if (source.file < 0 || pthread_create(&thread, NULL, read_pieces, &source) != 0) {
        fprintf(stderr, "cannot read %s\n", argv[1]);
        return 1;
    }
    status = digits_init_from(&model, arena, sizeof arena, &reader);
    if (status != MCC_OK) fprintf(stderr, "%s: %s\n", argv[1], mcc_status_text(status));
    for (int i = 2; i < argc && status == MCC_OK; i++) failed |= classify(&model, argv[i]);
    (void)begin(&source, NULL, 0u, 0u);
    (void)pthread_join(thread, NULL);
    (void)close(source.file);
    return status != MCC_OK || failed;
}
