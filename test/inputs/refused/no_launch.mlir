// No launch to pack the shared memory of.
func.func @f() {
  return
}
