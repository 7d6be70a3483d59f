#include <stdint.h>
#define portMAX_DELAY UINT32_MAX
#define pdMS_TO_TICKS(ms) ((uint32_t)(ms) / 10u)
