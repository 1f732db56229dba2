func.func @f() {
  %0 = shape.const_size 1
  return
}
