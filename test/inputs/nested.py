"""Writes MLIR that nests: nested.py KIND DEPTH."""

import sys


def regions(depth: int) -> str:
    return "func.func @f() {\n" + "scf.execute_region {\n" * depth + "scf.yield\n}\n" * depth + "return\n}\n"


def generic(depth: int) -> str:
    end = '"scf.yield"() : () -> ()}, {}) : (i1) -> ()\n'
    return "func.func @f(%c: i1) {\n" + '"scf.if"(%c) ({\n' * depth + end * depth + "return\n}\n"


def _aliases(depth: int) -> str:
    chain = "".join(f"#a{number} = [#a{number - 1}]\n" for number in range(1, depth))
    return f"#a0 = []\n{chain}module attributes {{test.a = #a{depth - 1}}} {{}}\n"


KINDS = {
    "regions": regions,
    "generic": generic,
    "modules": lambda depth: "module {\n" * depth + "}\n" * depth,
    "brackets": lambda depth: f"module attributes {{test.a = {'[' * depth}{']' * depth}}} {{}}\n",
    "dictionaries": lambda depth: f"module attributes {{test.a = {'{a = ' * depth}1{'}' * depth}}} {{}}\n",
    "types": lambda depth: f"func.func private @f({'tuple<' * depth}i32{'>' * depth})\n",
    "functions": lambda depth: f"func.func private @f({'(' * depth}i32{') -> ()' * depth})\n",
    "locations": lambda depth: f"module {{}} loc({'callsite(' * depth}unknown{' at unknown)' * depth})\n",
    "affine": lambda depth: f"#m = affine_map<(d0) -> ({'(' * depth}d0{')' * depth})>\n",
    "minus": lambda depth: f"#m = affine_map<(d0) -> ({'-' * depth}d0)>\n",
    "sum": lambda depth: f"#m = affine_map<(d0, d1) -> (d0{' + d1 + d0' * (depth // 2)})>\n",
    "aliases": _aliases,
    # Brackets in strings and comments, short nests in a row and arrows do not nest.
    "texts": lambda depth: f'module attributes {{test.a = "{"[" * depth}"}} {{}} // {"(" * depth}\n',
    "side by side": lambda depth: f"module attributes {{test.a = [{', '.join(['[[-1, -2]]'] * depth)}]}} {{}}\n",
    "arrows": lambda depth: "".join(f"func.func private @f{number}(i32) -> i32\n" for number in range(depth)),
}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](int(sys.argv[2])), end="")
