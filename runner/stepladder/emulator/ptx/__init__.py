"""PTX: a parser, and the execution of instructions on the machine that the other levels of IR run on.

`tokens` and `parser` make `syntax` of a text. `kernel` makes a program of a module's kernel, `inline` of the PTX in
`llvm.inline_asm` and `nvvm.inline_ptx`, and `nvvm_ops` of ops of nvvm that represent one instruction. `flow` divides
statements into blocks and emits branches; each instruction is decoded by its function in `registry` (the package
`instructions`), by way of a `site.Site`, which has its modifiers and its operands as slots. `scopes` are names,
`variables` memory, `types` the bits of registers as values, `arguments` what a kernel is given.
"""
