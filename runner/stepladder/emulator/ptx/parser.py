"""A parser of PTX, as LLVM's NVPTX back end and MLIR's NVVM ops print it.

Source: PTX ISA, "Syntax", "State Spaces, Types, and Variables", "Directives".
"""

from __future__ import annotations

import re

from stepladder.emulator.ptx import syntax
from stepladder.emulator.ptx.tokens import INTEGERS, Reader, Token, float_bits, integer_of

NEWEST = 9  # version of PTX that is known: minor ones add instructions, and unknown ones are refused
_SPACES = (".global", ".shared", ".local", ".const", ".param", ".shared::cta", ".tex")
_LINKING = (".extern", ".visible", ".weak", ".common")
_LISTS = (".calltargets", ".callprototype", ".pragma", ".loc", ".file", ".section", ".alias")


class Parser(Reader):
    """Reads modules, functions and statements."""

    # Modules.

    def module(self) -> syntax.Module:
        """Returns a file."""
        self._directive(".version", "PTX begins with its .version")
        version = self._version()
        self._directive(".target", "PTX has a .target behind its .version")
        target = self.kind("name").text
        while self.has(","):
            self.kind("name")
        if self.has(".address_size") and self.integer() != 64:
            raise self.error("addresses of 32 bits are not supported: compile for .address_size 64")
        variables, functions = [], []
        while self.next.kind != "end":
            item = self._top()
            if isinstance(item, syntax.Function):
                functions.append(item)
            elif item is not None:
                variables.append(item)
        return syntax.Module(version, target, tuple(variables), tuple(functions))

    def _directive(self, name: str, message: str) -> None:
        if not self.has(name):
            raise self.error(f"{message}, and here is '{self.next.text[:40] or 'the end'}'")

    def _version(self) -> tuple[int, int]:
        token = self.kind("decimal")
        major, minor = (int(part or "0") for part in token.text.split("."))
        if major > NEWEST:
            raise self.error(
                f"PTX {major}.{minor} is newer than {NEWEST}.x, the newest that the emulator supports", token
            )
        return major, minor

    def _top(self) -> syntax.Function | syntax.Variable | None:
        start = self.next
        is_external = False
        while self.next.text in _LINKING:
            is_external |= self.take().text == ".extern"
        if self.next.text in (".entry", ".func"):
            return self._function(is_kernel=self.take().text == ".entry")
        if self.next.text in _SPACES:
            (variable,) = self._variables(is_external=is_external)
            return variable
        if self.next.text in _LISTS:
            self._skip_line(start)
            return None
        raise self.error(f"unknown directive '{self.next.text}'")

    def _skip_line(self, start: Token) -> None:
        """Skips a directive without effect: its line, or the braces after it."""
        if self.has(".section"):
            self.take()
            self._skip_braces()
            return
        line = self.source.place(start.start)[0]
        while self.next.kind != "end" and self.source.place(self.next.start)[0] == line:
            self.take()

    def _skip_braces(self) -> None:
        self.want("{")
        depth = 1
        while depth and self.next.kind != "end":
            text = self.take().text
            depth += (text == "{") - (text == "}")

    def _function(self, *, is_kernel: bool) -> syntax.Function:
        results = self._parameters() if not is_kernel and self.next.text == "(" else ()
        token = self.kind("name")
        line, column = self.source.place(token.start)
        parameters = self._parameters() if self.next.text == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while self.next.kind == "directive":
            start = self.take()
            if start.text in _LISTS:
                self.place -= 1
                self._skip_line(start)
                continue
            directives[start.text[1:]] = self.integers()
        body = None if self.has(";") else self.block()
        return syntax.Function(token.text, is_kernel, parameters, directives, body, line, column, results)

    def _parameters(self) -> tuple[syntax.Variable, ...]:
        parameters = []
        self.want("(")
        while not self.has(")"):
            if self.has(".reg"):
                type_, token = self.kind("directive"), self.kind("name")
                parameters.append(syntax.Variable("reg", type_.text[1:], token.text))
            else:
                parameters += self._variables(ends=False)
            self.has(",")
        return tuple(parameters)

    def _variables(self, *, is_external: bool = False, ends: bool = True) -> list[syntax.Variable]:
        space = self.kind("directive").text[1:].split("::")[0]
        alignment, type_ = 0, ""
        while self.next.kind == "directive":
            text = self.take().text
            if text == ".align":
                # After .ptr, it is the alignment of the memory that a parameter points to.
                alignment = self.integer() if not type_ else (self.integer(), alignment)[1]
            elif text == ".attribute":
                while not self.has(")"):
                    self.take()
            elif re.fullmatch(r"\.([subf]\d+(x2)?|pred|bf16(x2)?|v[248])", text):
                type_ = text[1:] if not type_.startswith("v") else f"{type_}.{text[1:]}"
        variables = []
        while True:
            token = self.kind("name")
            line, column = self.source.place(token.start)
            count = self._extents()
            values = self._initial() if self.has("=") else ()
            variables.append(
                syntax.Variable(space, type_, token.text, alignment, count, values, is_external, line, column)
            )
            if not ends or not self.has(","):
                break
        if ends:
            self.want(";")
        return variables

    def _extents(self) -> int | None:
        count = None
        while self.has("["):
            size = 0 if self.next.text == "]" else self.integer()
            self.want("]")
            count = size if count is None else count * size
        return count

    def _initial(self) -> tuple[int | syntax.Place, ...]:
        initial_values: list[int | syntax.Place] = []
        depth = 0
        while True:
            if self.has("{"):
                depth += 1
            elif self.has("}"):
                depth -= 1
            elif self.next.kind in ("bits", "decimal"):
                initial_values.append(float_bits(self.take())[0])
            elif self.next.kind == "name":
                initial_values.append(self._address())
            else:
                initial_values.append(self.integer())
            if not depth:
                return tuple(initial_values)
            self.has(",")

    def _address(self) -> syntax.Place:
        name = self.take().text
        if name == "generic" and self.has("("):  # all addresses are generic
            name = self.take().text
            self.want(")")
        return syntax.Place(name, self.integer() if self.has("+") else 0)

    # Statements.

    def block(self) -> syntax.Block:
        """Returns statements in braces."""
        self.want("{")
        body = []
        while not self.has("}"):
            if self.next.kind == "end":
                raise self.error("a '}' is missing")
            body += self._items()
        return syntax.Block(tuple(body))

    def fragment(self) -> syntax.Block:
        """Returns statements without braces around them, up to the end: the text of inline PTX."""
        body = []
        while self.next.kind != "end":
            body += self._items()
        return syntax.Block(tuple(body))

    def _items(self) -> list[syntax.Item]:
        token = self.next
        if token.text == "{":
            return [self.block()]
        if token.text == ";":
            self.take()
            return []
        if token.text == ".reg":
            return [self._registers()]
        if token.text in (*_SPACES, *_LINKING):
            while self.next.text in _LINKING:
                self.take()
            return list(self._variables())
        if token.text in _LISTS:
            self._skip_line(token)
            return []
        if token.text == ".branchtargets":
            self.take()
            return [syntax.BranchTargets(self._operands())]
        if token.kind == "name" and self.tokens[self.place + 1].text == ":":
            self.take()
            self.take()
            return [syntax.Label(token.text)]
        return [self._statement()]

    def _registers(self) -> syntax.Registers:
        start = self.next
        self.want(".reg")
        type_ = self.kind("directive").text[1:]
        if re.fullmatch(r"v[248]", type_):
            raise self.error("registers of vectors are not supported")
        names = []
        while True:
            name, count = self.kind("name").text, 0
            if self.has("<"):
                count = self.integer()
                self.want(">")
            names.append((name, count))
            if not self.has(","):
                break
        self.want(";")
        return syntax.Registers(type_, tuple(names), *self.source.place(start.start))

    def _statement(self) -> syntax.Statement:
        guard = None
        if self.has("@"):
            is_negated = self.has("!")
            guard = syntax.Guard(syntax.Name(self.kind("name").text), is_negated)
        start = self.kind("name")
        opcode = [start.text]
        while self.next.kind == "directive":
            opcode.append(self.take().text[1:])
        return syntax.Statement(tuple(opcode), self._operands(), guard, *self.source.place(start.start))

    def _operands(self) -> tuple[syntax.Operand, ...]:
        operands = []
        while not self.has(";"):
            if self.next.kind == "end":
                raise self.error("a ';' is missing")
            operands.append(self._operand())
            if self.next.text not in (",", ";"):
                raise self.error(f"expected ',' or ';', got '{self.next.text or 'the end'}'")
            self.has(",")
        return tuple(operands)

    def _operand(self) -> syntax.Operand:
        if self.has("{"):
            return syntax.Vector(self._until("}"))
        if self.has("["):
            return syntax.Address(self._until("]"))
        if self.has("("):  # of a call
            return syntax.Vector(self._until(")"))
        if self.has("!"):
            return syntax.Negated(self._simple())
        first = self._simple()
        return syntax.Pair(first, self._simple()) if self.has("|") else first

    def _until(self, end: str) -> tuple[syntax.Operand, ...]:
        operands = []
        while not self.has(end):
            operands.append(self._operand())
            if self.next.text not in (",", end):
                raise self.error(f"expected ',' or '{end}', got '{self.next.text or 'the end'}'")
            self.has(",")
        return tuple(operands)

    def _simple(self) -> syntax.Operand:
        token = self.next
        if token.text == "_":
            self.take()
            return syntax.Sink()
        if token.kind == "name":
            return self._with_offset(self._name())
        sign = -1 if self.has("-") else 1
        if self.next.kind not in (*INTEGERS, "bits", "decimal"):
            raise self.error(f"expected an operand, got '{self.next.text or 'the end'}'")
        if self.next.kind in ("bits", "decimal"):
            value, width = float_bits(self.take())
            return syntax.Number(value ^ (1 << (width - 1) if sign < 0 else 0), width)
        return syntax.Number(sign * integer_of(self.kind(*INTEGERS)))

    def _name(self) -> syntax.Name:
        token = self.take()
        member = ""
        if self.next.kind == "directive" and self.next.start == token.start + len(token.text):
            member = self.take().text[1:]
        return syntax.Name(token.text, member)

    def _with_offset(self, base: syntax.Operand) -> syntax.Operand:
        offset, has_offset = 0, False
        while self.next.text in ("+", "-"):
            sign = 1 if self.take().text == "+" else -1
            offset += sign * self.integer()
            has_offset = True
        return syntax.Offset(base, offset) if has_offset and offset else base


def parse(text: str, name: str) -> syntax.Module:
    """Returns a file of PTX.

    Args:
        text: of the file.
        name: of the file, for locations.

    Raises:
        StepladderError: text that is no PTX, or of a version that is not known; the message has the location.
    """
    return Parser(text, name).module()


def parse_fragment(text: str, name: str) -> syntax.Block:
    """Returns the statements of inline PTX; errors as for `parse`.

    Args:
        text: PTX without a function around it.
        name: of the text, for messages.
    """
    return Parser(text, name).fragment()
