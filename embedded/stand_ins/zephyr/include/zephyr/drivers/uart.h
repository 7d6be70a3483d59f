int uart_poll_in(const struct device *device, unsigned char *byte);
void uart_poll_out(const struct device *device, unsigned char byte);
