#include <stdbool.h>
#include <stdint.h>
typedef struct {
    volatile uint32_t cs, result, fcs, fifo;
} adc_hw_t;
extern adc_hw_t *const adc_hw;
void adc_init(void);
void adc_gpio_init(unsigned pin);
void adc_select_input(unsigned input);
void adc_fifo_setup(bool on, bool dreq, uint16_t threshold, bool error, bool shift);
void adc_set_clkdiv(float divider);
void adc_run(bool on);
