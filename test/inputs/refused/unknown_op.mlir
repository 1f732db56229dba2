// An op that no dialect defines.
func.func @f() {
  foo.bar
  return
}
