/* Calls of Arm's driver for Ethos-U (ethos-u-core-driver), which the program links; it is declared here as that has it. */
#ifndef MCC_ETHOSU_DRIVER_H
#define MCC_ETHOSU_DRIVER_H

#define MCC_ETHOSU_MOST 16 /* inputs and outputs of a region */

typedef struct mcc_ethosu_region {
    int ins, outs;
    size_t places[MCC_ETHOSU_MOST]; /* of inputs, then of outputs, in the scratch */
    size_t sizes[MCC_ETHOSU_MOST];  /* bytes */
#ifdef MCC_STAND_IN
    int (*compute)(const void *const *inputs, void *const *results);
#endif
} mcc_ethosu_region;

#ifdef MCC_STAND_IN
/* In the place of the driver: it looks at what a driver would, and has the core compute the region in the scratch. */
struct ethosu_driver {
    int reserved;
};

static struct ethosu_driver *ethosu_reserve_driver(void)
{
    static struct ethosu_driver one;
    one.reserved = 1;
    return &one;
}

static void ethosu_release_driver(struct ethosu_driver *drv)
{
    drv->reserved = 0;
}

static int ethosu_invoke_v3(struct ethosu_driver *drv, const void *commands, const int bytes, uint64_t *const bases,
                            const size_t *sizes, const int count, void *user)
{
    const mcc_ethosu_region *region = (const mcc_ethosu_region *)user;
    const void *inputs[MCC_ETHOSU_MOST];
    void *results[MCC_ETHOSU_MOST];
    uint8_t *scratch = (uint8_t *)(uintptr_t)bases[1];
    if (!drv->reserved || bytes < 16 || memcmp(commands, "COP1", 4) != 0 || count != 2) return -1;
    if ((uintptr_t)commands % 16 != 0 || bases[0] % 16 != 0 || bases[1] % 16 != 0) return -1;
    for (int i = 0; i < region->ins + region->outs; ++i) {
        if (region->places[i] + region->sizes[i] > sizes[1]) return -1;
        if (i < region->ins) {
            inputs[i] = scratch + region->places[i];
        } else {
            results[i - region->ins] = scratch + region->places[i];
        }
    }
    return region->compute(inputs, results);
}
#else
struct ethosu_driver;
MCC_EXTERN struct ethosu_driver *ethosu_reserve_driver(void);
MCC_EXTERN void ethosu_release_driver(struct ethosu_driver *drv);
MCC_EXTERN int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
                                uint64_t *const base_addr, const size_t *base_addr_size, const int num_base_addr,
                                void *user_arg);
#endif

/* Operands: the inputs, the command stream, the weights. The driver calls ethosu_flush_dcache and
 * ethosu_invalidate_dcache, which a program with a data cache defines. */
static int mcc_ethosu_run(const mcc_external *call, const mcc_ethosu_region *region)
{
    const mcc_operand *commands = &call->operands[region->ins], *weights = &call->operands[region->ins + 1];
    uint8_t *scratch = (uint8_t *)call->workspace;
    uint64_t bases[2];
    size_t sizes[2];
    struct ethosu_driver *drv = ethosu_reserve_driver();
    int status;
    if (drv == NULL) return -1;
    bases[0] = (uint64_t)(uintptr_t)weights->data;
    bases[1] = (uint64_t)(uintptr_t)scratch;
    sizes[0] = (size_t)weights->shape[0];
    sizes[1] = call->workspace_bytes;
    for (int i = 0; i < region->ins; ++i) {
        (void)memcpy(scratch + region->places[i], call->operands[i].data, region->sizes[i]);
    }
    status = ethosu_invoke_v3(drv, commands->data, (int)commands->shape[0], bases, sizes, 2, (void *)(uintptr_t)region);
    ethosu_release_driver(drv);
    if (status != 0) return status;
    for (int i = 0; i < region->outs; ++i) {
        const int n = region->ins + i;
        (void)memcpy(call->results[i].data, scratch + region->places[n], region->sizes[n]);
    }
    return 0;
}

#endif
