"""Rules for the buffers and the launches of a function (`function`), read from a file or built."""

from __future__ import annotations

import json

from stepladder.runtime.bundle.column_buffers import check_pitch, is_pitched
from stepladder.runtime.bundle.fields import Fields
from stepladder.runtime.bundle.function import (
    ALIGNMENT,
    SCHEMA_VERSION_EMPTY,
    SCHEMA_VERSION_PARTS,
    SCHEMA_VERSION_PLACED,
    VECTOR,
    FunctionBuffer,
    FunctionBundle,
    FunctionManifest,
    Launch,
    accesses,
    part_alignment,
)
from stepladder.runtime.bundle.preceding_kernels import check_launch
from stepladder.runtime.bundle.written_bytes import is_written, note_written

ADDRESS_SPACE = 2**49  # bytes that addresses of a GPU reach

# Memory that kernels write before others read it, and kinds of buffers that are parts of others.
_WRITTEN = ("workspace", "result")
_PARTS = ("part", "result_part")


def check_function(bundle: FunctionBundle, fields: Fields | None = None) -> None:
    """Checks the launches of a function: that operands fit their buffers, and that what is read has been written.

    Args:
        bundle: what was read, or made.
        fields: what its manifest was read from; those of the manifest itself if None.

    Raises:
        StepladderError: the first field that does not hold.
    """
    manifest = bundle.manifest
    if fields is None:
        fields = Fields(json.loads(json.dumps(manifest.to_json())), str(bundle.path))
    if manifest.workspace > ADDRESS_SPACE:
        raise fields.error("workspace", f"must be at most {ADDRESS_SPACE} bytes, got {manifest.workspace}")
    for buffer, item in zip(manifest.buffers, fields.objects("buffers")):
        _check_buffer(manifest, buffer, item)
    _check_parts(manifest, fields)
    memory = _Memory(bundle)
    for launch, item in zip(manifest.launches, fields.objects("launches")):
        if launch.kernel is not None:
            check_launch(launch.kernel, manifest.target, item.object("kernel"))
        elif bundle.matmul(launch).manifest.target != manifest.target:
            raise item.error("folder", f"has a kernel for another target than {manifest.target}")
        memory.run(launch, item)
    missing = memory.unwritten_results()
    if missing:
        raise fields.error("launches", f"must write {missing[0]}, got no launch that does")


class _Memory:
    """Which buffers of a function hold what, while its launches run one after the other."""

    def __init__(self, bundle: FunctionBundle) -> None:
        self._bundle = bundle
        self._manifest = bundle.manifest
        self._aliases, self._homes = self._manifest.aliases, self._manifest.homes
        self._written: set[int] = set()
        self._taken: set[int] = set()  # arguments whose memory a result has taken

    def run(self, launch: Launch, fields: Fields) -> None:
        """Checks the operands of a launch, and notes what it writes. Raises StepladderError for one that does not
        fit."""
        expected = accesses(self._bundle, launch)
        if set(expected) != set(launch.operands):
            raise fields.error(
                "operands", f"must be of the roles {', '.join(expected)}, got {', '.join(launch.operands)}"
            )
        operands = fields.object("operands")
        for role, (type_, count, access) in expected.items():
            problem = self._problem(launch, launch.operands[role], type_, count, access)
            if problem:
                raise operands.error(role, problem)
        for role, (_, _, access) in expected.items():
            if access != "read":
                self._note_written(launch.operands[role])

    def _problem(self, launch: Launch, number: int, type_: str, count: int, access: str) -> str:
        """Returns why a buffer is no operand of `count` elements of a type, or an empty string."""
        if number >= len(self._manifest.buffers):
            return f"is {number}, and 'buffers' has {len(self._manifest.buffers)} entries"
        buffer = self._manifest.buffers[number]
        named = f"is {number}, {buffer.name}, "
        if buffer.element_type != type_ or buffer.bytes != FunctionBuffer("", 0, type_, (count,)).bytes:
            return f"{named}and the kernel takes {count} of {type_}"
        if buffer.strides is not None:
            if access == "read" or not is_pitched(buffer, self._bundle, launch):
                return f"{named}which the kernel does not write by its pitch"
            access = "write"  # what is between its rows stays
        is_read = access != "write"
        if is_read and buffer.memory[0] in _WRITTEN and not is_written(self._manifest, number, self._written):
            return f"{named}which no kernel before has written"
        if self._homes.get(number, number) in self._taken:
            return f"{named}whose memory a result has taken before"
        if access != "read" and buffer.kind in ("argument", "constant", "part"):
            return f"{named}which a kernel writes"
        return ""

    def _note_written(self, number: int) -> None:
        note_written(self._manifest, number, self._written)
        home = self._homes.get(number, number)
        if home in self._aliases:
            self._taken.add(self._aliases[home])

    def unwritten_results(self) -> list[str]:
        """Returns the names of results that no launch has written."""
        return [
            buffer.name
            for number, buffer in self._manifest.of_kind("result")
            if not is_written(self._manifest, number, self._written)
            and self._aliases.get(number) not in self._taken  # the rest stays as it is
        ]


def _check_buffer(manifest: FunctionManifest, buffer: FunctionBuffer, fields: Fields) -> None:
    """Checks the pitch of a buffer, its place in the workspace and whose memory it takes."""
    if 0 in buffer.shape and manifest.schema_version < SCHEMA_VERSION_EMPTY:
        raise fields.error("shape", f"has no elements, which requires schema_version {SCHEMA_VERSION_EMPTY}")
    if buffer.strides is not None:
        check_pitch(manifest, buffer, fields)
    alignment = VECTOR if manifest.schema_version >= SCHEMA_VERSION_PLACED else ALIGNMENT
    if buffer.kind == "workspace" and (buffer.offset % alignment or buffer.offset + buffer.bytes > manifest.workspace):
        raise fields.error(
            "offset",
            f"must be a multiple of {alignment}, with {buffer.bytes} bytes inside of {manifest.workspace}, got "
            f"{buffer.offset}",
        )
    if buffer.aliases is not None:
        _check_alias(manifest, buffer, fields)


def _check_parts(manifest: FunctionManifest, fields: Fields) -> None:
    """Checks that parts are inside of an argument, a constant or a result of their types, at addresses that kernels
    accept."""
    matmuls = [launch for launch in manifest.launches if launch.kernel is None or launch.grouped]
    matmul_operands = {number for launch in matmuls for number in launch.operands.values()}
    inputs = {item.number: item for kind in ("argument", "constant") for _, item in manifest.of_kind(kind)}
    results = {item.number: item for _, item in manifest.of_kind("result")}
    for place, (part, item) in enumerate(zip(manifest.buffers, fields.objects("buffers"))):
        if part.kind not in _PARTS:
            continue
        version, name, wholes = {
            "part": (SCHEMA_VERSION_PARTS, "an argument or a constant", inputs),
            "result_part": (SCHEMA_VERSION_PLACED, "a result", results),
        }[part.kind]
        if manifest.schema_version < version:
            raise item.error("kind", f"is '{part.kind}', which requires schema_version {version}")
        whole = wholes.get(part.number)
        if whole is None or whole.element_type != part.element_type:
            raise item.error("number", f"must be of {name} of {part.element_type}, got {part.number}")
        alignment = part_alignment(part.bytes, is_multiplied=place in matmul_operands)
        if part.offset % alignment or part.offset + part.bytes > whole.bytes:
            raise item.error(
                "offset",
                f"must be a multiple of {alignment}, with {part.bytes} bytes inside of {whole.bytes}, got "
                f"{part.offset}",
            )


def _check_alias(manifest: FunctionManifest, result: FunctionBuffer, fields: Fields) -> None:
    """Checks that a result takes the memory of an argument like it, and no other one does."""
    arguments = [item for _, item in manifest.of_kind("argument") if item.number == result.aliases]
    aliasing = [item for item in manifest.buffers if item.aliases == result.aliases]
    is_like = len(arguments) == 1 and (arguments[0].element_type, arguments[0].shape) == (
        result.element_type,
        result.shape,
    )
    if result.kind != "result" or not is_like or len(aliasing) != 1:
        raise fields.error(
            "aliases", f"must be of a result, an argument of its type and shape for it alone, got {result.aliases}"
        )
