void vTaskDelay(uint32_t ticks);
uint8_t *pxTaskGetStackStart(void *task);
int xTaskCreate(void (*task)(void *), const char *name, uint32_t stack, void *given, unsigned priority, void **made);
