enum { DMA_IRQ_0 = 11 };
void irq_set_exclusive_handler(unsigned number, void (*handler)(void));
void irq_set_enabled(unsigned number, bool on);
