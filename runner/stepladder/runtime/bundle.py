"""The bundle: the folder that a build leaves on disk, and all that a launch needs.

    BUNDLE/kernel.cubin    machine code for `target`
    BUNDLE/kernel.ptx      the text it was assembled from; the launcher's fallback
    BUNDLE/manifest.json   how to launch it, what it computes and how it was made (`Manifest`)
    BUNDLE/reference.json  what the payload computes (`reference.Program`), which the kernel's numbers are compared with
    BUNDLE/ir/             the IR after each step

A bundle is self-contained and is only ever replaced as a whole. The manifest holds the SHA-256 of every other file, so
that a truncated copy or an edited kernel is refused rather than launched.

Files and fields that came later are optional, and the schema version stays: a bundle without `reference.json` is read,
its numbers are compared with those of the manifest's problem, and the commands that do so note that.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from stepladder.runtime.errors import StepladderError
from stepladder.verify.reference import REFERENCE, Program, from_text, matmul_program

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
CUBIN = "kernel.cubin"
PTX = "kernel.ptx"

ROLES = ("a", "b", "c")
ACCESSES = ("read", "write", "readwrite")
LAYOUTS = ("row", "column")
INTERLEAVES = ("none", "16b", "32b")
SWIZZLES = ("none", "32b", "64b", "128b")
L2_PROMOTIONS = ("none", "64b", "128b", "256b")
OOB_FILLS = ("zero", "nan")

# What a TMA descriptor can have.
TMA_DIMENSIONS = 5


@dataclass(frozen=True)
class Argument:
    """One kernel parameter that stands for a row-major buffer in global memory: a bare pointer or a TMA descriptor.

    Attributes:
        name: the parameter's name, for messages.
        role: which operand of the matmul it is: `a`, `b` or `c`.
        element_type: MLIR's name of the element type.
        shape: extents of the buffer, outermost first; a column-major operand is a row-major buffer of its transpose, so
            that a column-major A (m x k) has the shape (k, m).
        access: `read`, `write` or `readwrite`.
        descriptor: None for a pointer; else the index in `Manifest.tma_descriptors` of the descriptor that the kernel
            takes by value (128 bytes, 64-byte aligned, `__grid_constant__`).
    """

    name: str
    role: str
    element_type: str
    shape: tuple[int, ...]
    access: str
    descriptor: int | None = None


@dataclass(frozen=True)
class TmaDescriptor:
    """How a buffer is seen through a TMA descriptor: the parameters of cuTensorMapEncodeTiled, but the base address.

    Dimensions are listed outermost first, as in MLIR; the driver wants the innermost first.

    Attributes:
        role: whose buffer begins at the base address: `a`, `b` or `c`.
        element_type: MLIR's name of the element type.
        shape: extents of the tensor in global memory, in elements; 1 to 5 of them.
        strides: bytes from one index to the next, of every dimension but the innermost, which is contiguous.
        box: extents of what one copy moves, in elements.
        element_strides: step within the box of every dimension, in elements: always 1.
        interleave: `none`, `16b` or `32b`.
        swizzle: span of the permutation of 16-byte chunks in shared memory: `none`, `32b`, `64b` or `128b`.
        l2_promotion: size of what is fetched into the L2 cache: `none`, `64b`, `128b` or `256b`.
        oob_fill: what is read outside of the tensor: `zero` or `nan`.
    """

    role: str
    element_type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: str = "none"
    oob_fill: str = "zero"


@dataclass(frozen=True)
class Problem:
    """C = AB + C in place (`accumulate`), or C = AB; A is m x k, B is k x n, C is m x n and row-major.

    Attributes:
        m, n, k: extents in elements.
        a_type, b_type, c_type: element types as stored.
        acc_type: element type in which products are summed.
        accumulate: whether C is read as well as written.
        kind: always `matmul`.
        a_layout, b_layout: `row`, or `column` for an operand stored as the row-major buffer of its transpose.
        compute_type: type that A and B are multiplied in: `a_type`, or `tf32` for f32 on tensor cores. None, when made,
            stands for `a_type`.
    """

    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    acc_type: str
    c_type: str
    accumulate: bool
    kind: str = "matmul"
    a_layout: str = "row"
    b_layout: str = "row"
    compute_type: str | None = None

    def __post_init__(self) -> None:
        if self.compute_type is None:
            object.__setattr__(self, "compute_type", self.a_type)

    @property
    def a_shape(self) -> tuple[int, int]:
        """Extents of A's buffer, outermost first: (m, k), or (k, m) where A is column-major."""
        return (self.m, self.k) if self.a_layout == "row" else (self.k, self.m)

    @property
    def b_shape(self) -> tuple[int, int]:
        """Extents of B's buffer, outermost first: (k, n), or (n, k) where B is column-major."""
        return (self.k, self.n) if self.b_layout == "row" else (self.n, self.k)

    @property
    def flops(self) -> int:
        """Arithmetic operations of one product, of floating-point numbers or integers: 2 m n k."""
        return 2 * self.m * self.n * self.k

    def describe(self) -> str:
        """Returns one line for people, for example `C = AB + C, 128 x 256 x 64, f16 x f16 -> f32 (f32 sums)`.

        Products in another type than the operands' and operands that are not row-major are mentioned too:
        `..., f32 x f32 -> f32 (tf32 products, f32 sums), A column-major`.
        """
        formula = "C = AB + C" if self.accumulate else "C = AB"
        products = "" if self.compute_type == self.a_type else f"{self.compute_type} products, "
        columns = [name for name, layout in (("A", self.a_layout), ("B", self.b_layout)) if layout == "column"]
        layouts = f", {' and '.join(columns)} column-major" if columns else ""
        return (
            f"{formula}, {self.m} x {self.n} x {self.k}, {self.a_type} x {self.b_type} -> {self.c_type} "
            f"({products}{self.acc_type} sums){layouts}"
        )


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` holds; the fields are those of the file.

    Attributes:
        kernel_name: entry point in the cubin and the PTX.
        target: GPU architecture of the cubin, for example `sm_90a`.
        arguments: in the order of the kernel's parameters.
        problem: what the kernel computes.
        grid, block, cluster: extents x, y, z, in blocks, threads and blocks; the cluster is compiled into the kernel.
        static_shared_memory, dynamic_shared_memory: bytes a block.
        registers: registers a thread.
        spills: bytes of spill `stores` and `loads` a thread.
        pipeline: name of the pipeline.
        steps: names of the steps that ran, in order.
        without: names of the steps left out.
        knobs: value of every knob.
        tool_versions: version of every tool in the build.
        files: SHA-256 in hexadecimal by path relative to the bundle; filled in by `write_bundle`.
        tma_descriptors: the TMA descriptors that arguments refer to.
        dependent_launch: whether the kernel begins by waiting for the one before it (`griddepcontrol.wait`), so that it
            may be started while that one ends (programmatic dependent launch).
        schema_version: version of this layout.
    """

    kernel_name: str
    target: str
    arguments: tuple[Argument, ...]
    problem: Problem
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_memory: int
    dynamic_shared_memory: int
    registers: int
    spills: dict[str, int]
    pipeline: str
    steps: tuple[str, ...]
    without: tuple[str, ...] = ()
    knobs: dict[str, Any] = field(default_factory=dict)
    tool_versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    tma_descriptors: tuple[TmaDescriptor, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    dependent_launch: bool = False
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON data, the schema version first."""
        data = asdict(self)
        return {"schema_version": data.pop("schema_version"), **data}


@dataclass(frozen=True)
class Bundle:
    """A bundle read and verified.

    Attributes:
        path: the folder.
        manifest: its manifest.
        cubin: content of `kernel.cubin`.
        ptx: content of `kernel.ptx`.
        reference: what the payload computes; None for a bundle without `reference.json`.
    """

    path: Path
    manifest: Manifest
    cubin: bytes
    ptx: str
    reference: Program | None = None

    def expected(self) -> Program:
        """Returns what the kernel must compute: the payload, else, with a note, the manifest's problem."""
        if self.reference is not None:
            return self.reference
        print(
            f"note: '{self.path}' has no {REFERENCE}, as bundles had before it: the expected numbers are those of "
            f"the problem in its {MANIFEST}",
            file=sys.stderr,
        )
        return matmul_program(self.manifest.problem)


def write_bundle(
    path: str | os.PathLike[str],
    manifest: Manifest,
    cubin: bytes,
    ptx: str,
    ir: Mapping[str, str],
    reference: Program | None = None,
) -> None:
    """Writes a bundle, all or nothing, replacing the bundle at `path` if there is one.

    Args:
        path: the folder to make; its parent folders are made too.
        manifest: `files` is ignored: it is computed here.
        cubin: machine code.
        ptx: PTX text.
        ir: text of every dump by file name.
        reference: what the payload computes.

    Raises:
        StepladderError: the place cannot be written, or `path` is there and is no bundle.
    """
    path = Path(path)
    contents = {CUBIN: cubin, PTX: ptx.encode()} | {f"ir/{name}": text.encode() for name, text in ir.items()}
    if reference is not None:
        contents[REFERENCE] = reference.to_text().encode()
    data = manifest.to_json()
    data["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())}
    contents[MANIFEST] = (json.dumps(data, indent=2) + "\n").encode()

    if path.is_symlink() or (path.exists() and not (path / MANIFEST).is_file()):
        raise StepladderError(f"'{path}' is there and is not a bundle; it is left as it is. Name another output")
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        fresh = temporary / "new"
        for name, content in contents.items():
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        # A folder cannot be renamed over a folder with files in it: the old bundle moves out of the way first.
        if path.exists():
            path.rename(temporary / "old")
        fresh.rename(path)
    except OSError as error:
        # A file where a folder should be made is "File exists" to mkdir, which says little to a user.
        reason = "Not a directory" if isinstance(error, FileExistsError) else error.strerror or error
        raise StepladderError(f"cannot write bundle '{path}': {reason}") from error
    finally:
        if temporary is not None:
            _restore(temporary / "old", path)
            shutil.rmtree(temporary, ignore_errors=True)


def _restore(old: Path, path: Path) -> None:
    """Puts the old bundle back if writing stopped between the two renames."""
    if old.exists() and not path.exists():
        old.rename(path)


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Reads and verifies the bundle at `path`.

    Raises:
        StepladderError: a file is missing, unreadable, truncated or edited, or a field of the manifest is missing or of
            the wrong type; the message names the file or the field.
    """
    path = Path(path)
    if not path.is_dir():
        raise StepladderError(f"no bundle at '{path}': " + ("not a folder" if path.exists() else "no such folder"))
    manifest = _parse_manifest(path / MANIFEST)
    for name in (CUBIN, PTX):
        if name not in manifest.files:
            raise StepladderError(f"field 'files' does not list '{name}'", location=str(path / MANIFEST))
    contents = {name: _read_verified(path, name, digest) for name, digest in manifest.files.items()}
    reference = (
        from_text(contents[REFERENCE].decode(errors="replace"), str(path / REFERENCE))
        if REFERENCE in contents
        else None
    )
    return Bundle(path, manifest, contents[CUBIN], contents[PTX].decode(), reference)


def _read_verified(path: Path, name: str, digest: str) -> bytes:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise StepladderError(
            f"field 'files' names '{name}', which is outside the bundle", location=str(path / MANIFEST)
        )
    content = _read(path / name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise StepladderError(
            f"bundle file '{path / name}' is truncated or was edited: its SHA-256 is not the one in "
            f"{MANIFEST}; compile it again"
        )
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StepladderError(f"bundle file '{path}' is missing") from None
    except OSError as error:
        raise StepladderError(f"cannot read bundle file '{path}': {error.strerror or error}") from error


def _parse_manifest(path: Path) -> Manifest:
    try:
        data = json.loads(_read(path).decode())
    except UnicodeDecodeError:
        raise StepladderError("not UTF-8 text; the bundle is truncated or was edited", location=str(path)) from None
    except json.JSONDecodeError as error:
        raise StepladderError(
            f"not valid JSON ({error.msg}); the bundle is truncated or was edited",
            location=f"{path}:{error.lineno}:{error.colno}",
        ) from None
    fields = _Fields(data, str(path))
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        raise fields.error(
            "schema_version",
            f"is {version}, and this version of stepladder reads {SCHEMA_VERSION}; "
            "compile the bundle again, or use the version that made it",
        )
    descriptors = tuple(_parse_descriptor(item) for item in fields.objects("tma_descriptors"))
    return Manifest(
        schema_version=version,
        kernel_name=fields.string("kernel_name"),
        target=fields.string("target"),
        arguments=tuple(_parse_argument(item, descriptors) for item in fields.objects("arguments")),
        tma_descriptors=descriptors,
        grid=fields.extents("grid", 3),
        block=fields.extents("block", 3),
        cluster=fields.extents("cluster", 3),
        # Came later: kernels of bundles without it do not wait for the one before them.
        dependent_launch=fields.boolean("dependent_launch", default=False),
        static_shared_memory=fields.integer("static_shared_memory"),
        dynamic_shared_memory=fields.integer("dynamic_shared_memory"),
        registers=fields.integer("registers"),
        spills={name: fields.object("spills").integer(name) for name in ("stores", "loads")},
        problem=_parse_problem(fields.object("problem")),
        pipeline=fields.string("pipeline"),
        steps=fields.strings("steps"),
        without=fields.strings("without"),
        knobs=fields.object("knobs").data,
        tool_versions=fields.string_map("tool_versions"),
        files=fields.string_map("files"),
    )


def _parse_argument(fields: _Fields, descriptors: tuple[TmaDescriptor, ...]) -> Argument:
    role = fields.string("role", ROLES)
    return Argument(
        name=fields.string("name"),
        role=role,
        element_type=fields.string("element_type"),
        shape=fields.extents("shape"),
        access=fields.string("access", ACCESSES),
        descriptor=_parse_descriptor_index(fields, role, descriptors),
    )


def _parse_descriptor_index(fields: _Fields, role: str, descriptors: tuple[TmaDescriptor, ...]) -> int | None:
    """Returns an argument's `descriptor`; it came later: arguments without it are pointers."""
    if fields.data.get("descriptor") is None:
        return None
    index = fields.integer("descriptor")
    if index >= len(descriptors):
        raise fields.error("descriptor", f"is {index}, and 'tma_descriptors' has {len(descriptors)}")
    if descriptors[index].role != role:
        raise fields.error(
            "descriptor",
            f"is {index}, and 'tma_descriptors[{index}]' is of role '{descriptors[index].role}', not '{role}'",
        )
    return index


def _parse_descriptor(fields: _Fields) -> TmaDescriptor:
    shape = fields.extents("shape")
    rank = len(shape)
    if not 1 <= rank <= TMA_DIMENSIONS:
        raise fields.error("shape", f"must have 1 to {TMA_DIMENSIONS} dimensions, got {rank}")
    element_strides = fields.extents("element_strides", rank)
    if set(element_strides) != {1}:
        raise fields.error("element_strides", f"must be 1 in every dimension, got {_show(list(element_strides))}")
    return TmaDescriptor(
        role=fields.string("role", ROLES),
        element_type=fields.string("element_type"),
        shape=shape,
        strides=fields.extents("strides", rank - 1),
        box=fields.extents("box", rank),
        element_strides=element_strides,
        interleave=fields.string("interleave", INTERLEAVES),
        swizzle=fields.string("swizzle", SWIZZLES),
        l2_promotion=fields.string("l2_promotion", L2_PROMOTIONS),
        oob_fill=fields.string("oob_fill", OOB_FILLS),
    )


def _parse_problem(fields: _Fields) -> Problem:
    a_type = fields.string("a_type")
    # Layouts and the type of the products came later: bundles without them are row-major, multiplied in A's type.
    return Problem(
        kind=fields.string("kind", ("matmul",)),
        m=fields.integer("m", 1),
        n=fields.integer("n", 1),
        k=fields.integer("k", 1),
        a_type=a_type,
        b_type=fields.string("b_type"),
        acc_type=fields.string("acc_type"),
        c_type=fields.string("c_type"),
        accumulate=fields.boolean("accumulate"),
        a_layout=fields.string("a_layout", LAYOUTS, default="row"),
        b_layout=fields.string("b_layout", LAYOUTS, default="row"),
        compute_type=fields.string("compute_type", (a_type, "tf32") if a_type == "f32" else (a_type,), default=a_type),
    )


class _Fields:
    """Typed access to a JSON object; every refusal names the field by its path from the top of the manifest."""

    def __init__(self, data: Any, location: str, prefix: str = ""):
        self.data = data
        self.location = location
        self.prefix = prefix
        if not isinstance(data, dict):
            raise StepladderError(
                f"{f'field {prefix!r}' if prefix else 'the manifest'} must be an object, got {_show(data)}",
                location=location,
            )

    def error(self, name: str, problem: str) -> StepladderError:
        return StepladderError(f"field '{self._path(name)}' {problem}", location=self.location)

    def string(self, name: str, accepted: tuple[str, ...] = (), default: str | None = None) -> str:
        """Returns a string, one of `accepted` if given; `default`, if given, where the field is missing."""
        if default is not None and name not in self.data:
            return default
        value = self._get(name, str, "a string")
        if accepted and value not in accepted:
            raise self.error(name, f"must be one of {', '.join(accepted)}, got {_show(value)}")
        return value

    def boolean(self, name: str, default: bool | None = None) -> bool:
        """Returns true or false; `default`, if given, where the field is missing."""
        if default is not None and name not in self.data:
            return default
        return self._get(name, bool, "true or false")

    def integer(self, name: str, minimum: int = 0) -> int:
        value = self._get(name, int, "an integer")
        if value < minimum:
            raise self.error(name, f"must be at least {minimum}, got {value}")
        return value

    def extents(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """Returns a list of positive integers, `count` of them if given."""
        value = self._get(name, list, "a list of positive integers")
        if any(type(item) is not int or item < 1 for item in value) or (count is not None and len(value) != count):
            wanted = "a list of positive integers" if count is None else f"{count} positive integers"
            raise self.error(name, f"must be {wanted}, got {_show(value)}")
        return tuple(value)

    def strings(self, name: str) -> tuple[str, ...]:
        value = self._get(name, list, "a list of strings")
        if not all(isinstance(item, str) for item in value):
            raise self.error(name, f"must be a list of strings, got {_show(value)}")
        return tuple(value)

    def object(self, name: str) -> _Fields:
        return _Fields(self._get(name, dict, "an object"), self.location, self._path(name))

    def objects(self, name: str) -> list[_Fields]:
        value = self._get(name, list, "a list of objects")
        return [_Fields(item, self.location, f"{self._path(name)}[{i}]") for i, item in enumerate(value)]

    def string_map(self, name: str) -> dict[str, str]:
        fields = self.object(name)
        return {key: fields.string(key) for key in fields.data}

    def _path(self, name: str) -> str:
        return f"{self.prefix}.{name}" if self.prefix else name

    def _get(self, name: str, kind: type, description: str) -> Any:
        if name not in self.data:
            raise self.error(name, "is missing")
        value = self.data[name]
        # JSON's true is an int to isinstance.
        if type(value) is not kind:
            raise self.error(name, f"must be {description}, got {_show(value)}")
        return value


def _show(value: Any) -> str:
    """Returns `value` as JSON, cut to a length that fits a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
