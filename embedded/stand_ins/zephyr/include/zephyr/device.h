#pragma once
#include <stdbool.h>
struct device {
    int id;
};
extern const struct device chosen;
bool device_is_ready(const struct device *device);
#define DEVICE_DT_GET(node) (&(node))
#define DT_CHOSEN(name) chosen
extern const struct device dmic_dev, i2s_rx;
#define DT_NODELABEL(name) name
