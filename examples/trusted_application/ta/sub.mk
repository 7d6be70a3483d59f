global-incdirs-y += . ../build/kws ../build/kws/runtime
srcs-y += listener_ta.c
srcs-y += ../build/kws/kws.c ../build/kws/kws_kernels.c ../build/kws/kws_weights.c
