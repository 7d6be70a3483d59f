#ifndef ADDER_KERNELS_H
#define ADDER_KERNELS_H

void adder_kernel(float *a, const float *b, const float *w);

#endif
