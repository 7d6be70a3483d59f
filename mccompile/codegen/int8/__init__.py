"""int8 in SIMD and on microcontrollers: dot products, patches, depthwise windows, requantization."""
