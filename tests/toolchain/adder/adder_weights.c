#error "running a model on the host reads the blob, it does not compile the weights"
