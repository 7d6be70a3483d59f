#error "the example program is no part of the model"
