#include <stdint.h>
#define portMAX_DELAY UINT32_MAX
#define pdMS_TO_TICKS(ms) ((uint32_t)(ms) / 10u)
#define configMAX_PRIORITIES 25
#define pdPASS 1
