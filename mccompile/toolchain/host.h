/* host.h - what host.c has for the host, which reads these lines too (host_library.py): no directives. */
size_t mcc_host_model_bytes(void);
int mcc_host_init(void *model, void *const *arenas, const size_t *arena_bytes, const void *weights, size_t weights_bytes);
int mcc_host_run(void *model);
const double *mcc_host_spent(void);
void *mcc_host_input(void *model, int index);
const void *mcc_host_output(const void *model, int index);
int mcc_host_resize(void *model, const ptrdiff_t *sizes);
void mcc_host_output_shape(const void *model, int index, size_t *shape);
int mcc_host_state(void *model, void *to, const void *from);
int mcc_host_advance(void *model);
int mcc_host_place(void *model, int index, void *memory);
const char *mcc_host_status_text(int status);
int mcc_host_learn(void *model, float rate); /* these only with MCC_HOST_LEARN */
int mcc_host_step(void *model, float rate);
float mcc_host_loss(const void *model);
int mcc_host_dump(void *model, const char *path); /* only with MCC_HOST_DUMP */
