"""Typed access to the fields of a JSON object; every refusal names the field by its path from the top."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import TypeVar

from stepladder.runtime.errors import StepladderError

_T = TypeVar("_T")
_SHOWN = 60  # characters of a value in a message


class Fields:
    """A JSON object of a manifest or of another file.

    Args:
        data: what JSON made of it.
        location: the file, for messages.
        prefix: path of the object from the top of the file; empty for the whole of it.
        what: the file holds, for messages.

    Raises:
        StepladderError: `data` is no object.
    """

    def __init__(self, data: object, location: str, prefix: str = "", what: str = "manifest") -> None:
        self.location = location
        self.prefix = prefix
        if not isinstance(data, dict):
            raise StepladderError(
                f"{f'field {prefix!r}' if prefix else f'the {what}'} must be an object, got {show(data)}",
                location=location,
            )
        self.data = data

    def error(self, name: str, problem: str) -> StepladderError:
        """Returns the refusal of a field; `problem` follows its name.

        Args:
            name: of the field, in this object.
            problem: what is wrong, as a predicate: "must be an object".
        """
        return StepladderError(f"field '{self._path(name)}' {problem}", location=self.location)

    def string(self, name: str, accepted: Collection[str] = (), default: str | None = None) -> str:
        """Returns a string, one of `accepted` if given; `default`, if given, where the field is missing.

        Args:
            name: of the field.
            accepted: the strings that it may be; any where it is empty.
            default: value of a missing field; None if the field is required.

        Raises:
            StepladderError: the field is missing, of another type, or not one of `accepted`.
        """
        if default is not None and name not in self.data:
            return default
        value = self._get(name, str, "a string")
        if accepted and value not in accepted:
            raise self.error(name, f"must be one of {', '.join(accepted)}, got {show(value)}")
        return value

    def boolean(self, name: str, default: bool | None = None) -> bool:
        """Returns true or false; `default`, if given, where the field is missing.

        Args:
            name: of the field.
            default: value of a missing field; None if the field is required.

        Raises:
            StepladderError: the field is missing or of another type.
        """
        if default is not None and name not in self.data:
            return default
        return self._get(name, bool, "true or false")

    def integer(self, name: str, minimum: int = 0) -> int:
        """Returns an integer of at least `minimum`.

        Args:
            name: of the field.
            minimum: the least integer that is accepted.

        Raises:
            StepladderError: the field is missing, of another type, or below `minimum`.
        """
        value = self._get(name, int, "an integer")
        if value < minimum:
            raise self.error(name, f"must be at least {minimum}, got {show(value)}")
        return value

    def number(self, name: str) -> float:
        """Returns a finite number.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing, or no finite number.
        """
        value = self.data.get(name)
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return value
        raise self.error(name, f"must be a number, got {show(value)}" if name in self.data else "is missing")

    def knobs(self, name: str) -> dict[str, int | str]:
        """Returns an object whose values are values of knobs: integers, true, false or strings.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing or no object, or one of its values is something else.
        """
        fields = self.object(name)
        for key, value in fields.data.items():
            if not isinstance(value, int | str):
                raise fields.error(key, f"must be the value of a knob, got {show(value)}")
        return fields.data

    def extents(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """Returns a list of positive integers, `count` of them if given.

        Args:
            name: of the field.
            count: how many integers; None for any number of them.

        Raises:
            StepladderError: the field is missing, or another list.
        """
        return self._integers(name, count, 1, "positive integers")

    def integers(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """Returns a list of integers of at least 0, `count` of them if given.

        Args:
            name: of the field.
            count: how many integers; None for any number of them.

        Raises:
            StepladderError: the field is missing, or another list.
        """
        return self._integers(name, count, 0, "integers of at least 0")

    def _integers(self, name: str, count: int | None, least: int, description: str) -> tuple[int, ...]:
        """Returns a list of integers of at least `least`, which messages call `description`."""
        value = self._get(name, list, f"a list of {description}")
        if any(type(item) is not int or item < least for item in value) or (count is not None and len(value) != count):
            expected = f"a list of {description}" if count is None else f"{count} {description}"
            raise self.error(name, f"must be {expected}, got {show(value)}")
        return tuple(value)

    def lists(self, name: str) -> list[list]:
        """Returns a list of lists, whose entries are not looked at.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing, or has an entry that is no list.
        """
        value = self._get(name, list, "a list of lists")
        if not all(isinstance(item, list) for item in value):
            raise self.error(name, f"must be a list of lists, got {show(value)}")
        return value

    def triple(self, name: str) -> tuple[int, int, int]:
        """Returns a list of three positive integers.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing, or another list.
        """
        x, y, z = self.extents(name, 3)
        return x, y, z

    def strings(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Returns a list of strings; `default`, if given, where the field is missing.

        Args:
            name: of the field.
            default: value of a missing field; None if the field is required.

        Raises:
            StepladderError: the field is missing and has no default, or it is another list.
        """
        if default is not None and name not in self.data:
            return default
        value = self._get(name, list, "a list of strings")
        if not all(isinstance(item, str) for item in value):
            raise self.error(name, f"must be a list of strings, got {show(value)}")
        return tuple(value)

    def object(self, name: str) -> Fields:
        """Returns an object within this one.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing or no object.
        """
        return Fields(self._get(name, dict, "an object"), self.location, self._path(name))

    def objects(self, name: str) -> list[Fields]:
        """Returns a list of objects.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing, no list, or has an entry that is no object.
        """
        value = self._get(name, list, "a list of objects")
        return [Fields(item, self.location, f"{self._path(name)}[{i}]") for i, item in enumerate(value)]

    def string_map(self, name: str) -> dict[str, str]:
        """Returns an object whose values are all strings.

        Args:
            name: of the field.

        Raises:
            StepladderError: the field is missing or no object, or one of its values is no string.
        """
        fields = self.object(name)
        return {key: fields.string(key) for key in fields.data}

    def _path(self, name: str) -> str:
        return f"{self.prefix}.{name}" if self.prefix else name

    def _get(self, name: str, kind: type[_T], description: str) -> _T:
        if name not in self.data:
            raise self.error(name, "is missing")
        value = self.data[name]
        # JSON's true is an int to isinstance.
        if type(value) is not kind:
            raise self.error(name, f"must be {description}, got {show(value)}")
        return value


def parse_object(content: bytes, location: str, what: str, cause: str) -> Fields:
    """Returns the fields of a file that holds a JSON object, none of them looked at.

    Args:
        content: of the file.
        location: the file, for messages.
        what: it should hold, for messages.
        cause: why it may hold something else, which ends messages.

    Raises:
        StepladderError: it holds something else.
    """
    try:
        data = json.loads(content.decode())
        if rb"\ud" in content.lower():  # half of a surrogate pair alone is JSON, and no text that can be printed
            json.dumps(data, ensure_ascii=False).encode()
        return Fields(data, location, what=what)
    except UnicodeEncodeError:
        raise StepladderError(f"a text has half of a surrogate pair; {cause}", location=location) from None
    except UnicodeDecodeError:
        raise StepladderError(f"not UTF-8 text; {cause}", location=location) from None
    except json.JSONDecodeError as error:
        raise StepladderError(
            f"not valid JSON ({error.msg}); {cause}", location=f"{location}:{error.lineno}:{error.colno}"
        ) from None
    except RecursionError:
        raise StepladderError(f"JSON nested too deeply to be a {what}; {cause}", location=location) from None
    except ValueError as error:  # a number of more digits than Python converts
        raise StepladderError(f"not a {what} ({error}); {cause}", location=location) from None


def show(value: object) -> str:
    """Returns `value` as JSON, cut to a length that fits a message.

    Args:
        value: that JSON has.
    """
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
