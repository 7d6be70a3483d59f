#include <stdbool.h>
#include <stdint.h>
enum { DMA_SIZE_16 = 1, DREQ_ADC = 36 };
typedef struct {
    uint32_t ctrl;
} dma_channel_config;
typedef struct {
    volatile uint32_t ints0;
} dma_hw_t;
extern dma_hw_t *const dma_hw;
int dma_claim_unused_channel(bool required);
dma_channel_config dma_channel_get_default_config(unsigned channel);
void channel_config_set_transfer_data_size(dma_channel_config *settings, int size);
void channel_config_set_read_increment(dma_channel_config *settings, bool on);
void channel_config_set_write_increment(dma_channel_config *settings, bool on);
void channel_config_set_dreq(dma_channel_config *settings, unsigned dreq);
void dma_channel_configure(unsigned channel, const dma_channel_config *settings, volatile void *to,
                           const volatile void *from, uint32_t count, bool start);
void dma_channel_set_write_addr(unsigned channel, volatile void *to, bool start);
void dma_channel_set_trans_count(unsigned channel, uint32_t count, bool start);
void dma_channel_set_irq0_enabled(unsigned channel, bool on);
