void vTaskDelay(uint32_t ticks);
uint8_t *pxTaskGetStackStart(void *task);
