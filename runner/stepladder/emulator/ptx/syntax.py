"""The syntax of PTX: operands, instructions, variables, functions.

`str` of any of them is PTX again, which parses to the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[%$\w]+")


@dataclass(frozen=True)
class Name:
    """A register, a special register, a variable, a function or a label; `member` is what a dot adds (`%tid.x`)."""

    text: str
    member: str = ""

    def __str__(self) -> str:
        return f"{self.text}.{self.member}" if self.member else self.text


@dataclass(frozen=True)
class Number:
    """A literal: an integer, or the bits of a floating-point number of `width` bits (0: an integer)."""

    value: int
    width: int = 0

    def __str__(self) -> str:
        if self.width:
            return f"0{'f' if self.width == 32 else 'd'}{self.value:0{self.width // 4}X}"
        return str(self.value)


@dataclass(frozen=True)
class Offset:
    """A variable's or a register's address plus bytes."""

    base: Operand
    offset: int

    def __str__(self) -> str:
        return f"{self.base}{self.offset:+d}"


@dataclass(frozen=True)
class Address:
    """The operand in brackets: an address, or a tensor map and coordinates."""

    parts: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.parts))}]"


@dataclass(frozen=True)
class Vector:
    """Operands in braces."""

    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.elements))}}}"


@dataclass(frozen=True)
class Pair:
    """Two results of one instruction: `p|q`."""

    first: Operand
    second: Operand

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True)
class Negated:
    """A predicate that is negated: `!p`."""

    operand: Operand

    def __str__(self) -> str:
        return f"!{self.operand}"


@dataclass(frozen=True)
class Sink:
    """A result that is discarded: `_`."""

    def __str__(self) -> str:
        return "_"


Operand = Name | Number | Offset | Address | Vector | Pair | Negated | Sink


@dataclass(frozen=True)
class Guard:
    """The predicate under which an instruction is executed: `@p` or `@!p`."""

    name: Name
    negated: bool = False

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}{self.name} "


@dataclass(frozen=True)
class Statement:
    """An instruction: its opcode in parts, its operands, its guard, and the line and column where it begins."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    line: int = 0
    column: int = 0

    @property
    def mnemonic(self) -> str:
        """The opcode as text."""
        return ".".join(self.opcode)

    def names_read(self) -> set[str]:
        """Returns the names of the registers that it may read, those of its addresses among them."""
        first = str(self.operands[0]) if self.operands and not isinstance(self.operands[0], Name) else ""
        text = " ".join([str(self.guard or ""), first, *map(str, self.operands[1:])])
        return set(_NAME.findall(text))

    def __str__(self) -> str:
        return f"{self.guard or ''}{self.mnemonic}{' ' if self.operands else ''}{', '.join(map(str, self.operands))};"


@dataclass(frozen=True)
class Label:
    """A branch target."""

    name: str

    def __str__(self) -> str:
        return f"{self.name}:"


@dataclass(frozen=True)
class BranchTargets:
    """The labels that a `brx.idx` chooses among; the label before it is its name."""

    labels: tuple[Operand, ...]

    def __str__(self) -> str:
        return f".branchtargets {', '.join(map(str, self.labels))};"


@dataclass(frozen=True)
class Registers:
    """Declared registers of a type: `names`, each with how many a number in angle brackets makes of it (0: itself).

    `line` and `column` are its location.
    """

    type: str
    names: tuple[tuple[str, int], ...]
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f".reg .{self.type} {', '.join(f'{name}<{count}>' if count else name for name, count in self.names)};"


@dataclass(frozen=True)
class Place:
    """An address as an initial value: of a function or a variable, and bytes after its first."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True)
class Variable:
    """A variable or a parameter in memory.

    Attributes:
        space: "global", "shared", "local", "const" or "param".
        type: of an element.
        name: as the program has it.
        alignment: in bytes; 0 where none is stated.
        count: elements, None where there are none in brackets, and 0 where the launch decides.
        values: its initial values: numbers and addresses.
        is_external: whether it is declared only.
        line, column: its location.
    """

    space: str
    type: str
    name: str
    alignment: int = 0
    count: int | None = None
    values: tuple[int | Place, ...] = ()
    is_external: bool = False
    line: int = 0
    column: int = 0

    def declaration(self) -> str:
        """Returns the declaration without its end."""
        linking = ".extern " if self.is_external else ""
        align = f".align {self.alignment} " if self.alignment else ""
        count = "" if self.count is None else f"[{self.count or ''}]"
        values = ""
        if self.values:
            value_list = ", ".join(map(str, self.values))
            values = f" = {value_list}" if self.count is None else f" = {{{value_list}}}"
        return f"{linking}.{self.space} {align}.{self.type} {self.name}{count}{values}"

    def __str__(self) -> str:
        return f"{self.declaration()};"


@dataclass(frozen=True)
class Block:
    """Statements in braces, with registers and labels of their own."""

    body: tuple[Item, ...]

    def __str__(self) -> str:
        return "\n".join(["{", *map(str, self.body), "}"])


Item = Statement | Label | BranchTargets | Registers | Variable | Block


@dataclass(frozen=True)
class Function:
    """A kernel (`.entry`) or a function (`.func`).

    Attributes:
        name: as the program has it.
        is_kernel: whether it is an entry.
        parameters: in order.
        directives: by name, their numbers: `maxntid`, `reqntid`, `reqnctapercluster`, ...
        body: None for a declaration.
        line, column: its location.
        returned: what a function returns, in order.
    """

    name: str
    is_kernel: bool
    parameters: tuple[Variable, ...] = ()
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    body: Block | None = None
    line: int = 0
    column: int = 0
    returned: tuple[Variable, ...] = ()

    def __str__(self) -> str:
        parameters = ", ".join(parameter.declaration() for parameter in self.parameters)
        result_list = f"({', '.join(variable.declaration() for variable in self.returned)}) " if self.returned else ""
        lines = [f".visible {'.entry' if self.is_kernel else '.func'} {result_list}{self.name}({parameters})"]
        lines += [f".{name} {', '.join(map(str, numbers))}" for name, numbers in self.directives.items()]
        return "\n".join([*lines, str(self.body) if self.body is not None else ";"])


@dataclass(frozen=True)
class Module:
    """A file of PTX: its version and target, its variables and its functions."""

    version: tuple[int, int]
    target: str
    variables: tuple[Variable, ...] = ()
    functions: tuple[Function, ...] = ()

    def __str__(self) -> str:
        head = [f".version {self.version[0]}.{self.version[1]}", f".target {self.target}", ".address_size 64"]
        return "\n".join([*head, *map(str, self.variables), *map(str, self.functions)]) + "\n"


def names_in(operand: Operand) -> set[str]:
    """Returns the names in an operand.

    Args:
        operand: of a statement.
    """
    match operand:
        case Name():
            return {operand.text}
        case Offset():
            return names_in(operand.base)
        case Negated():
            return names_in(operand.operand)
        case Pair():
            return names_in(operand.first) | names_in(operand.second)
        case Vector():
            return {name for element in operand.elements for name in names_in(element)}
        case Address():
            return {name for part in operand.parts for name in names_in(part)}
    return set()
