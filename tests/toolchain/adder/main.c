#error "the example program is not a part of the model"
