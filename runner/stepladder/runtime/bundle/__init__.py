"""The bundle: the folder that a build writes, with all that a launch needs.

    BUNDLE/kernel.cubin    machine code for `target`
    BUNDLE/kernel.ptx      the text it was assembled from; the launcher's fallback
    BUNDLE/manifest.json   how to launch it, what it computes and how it was made (`Manifest`)
    BUNDLE/reference.json  what the payload computes, which the kernel's results are compared with
    BUNDLE/ir/             the IR after each step
    BUNDLE/front/          machine code and PTX of kernels that are launched before this one, where there are any

The bundle of a function with several matmuls has the same outside, and a bundle of each matmul in it (`function`).

A bundle is self-contained. The manifest holds the SHA-256 of every other file, so that a truncated copy or an edited
kernel is refused rather than launched. A bundle without `reference.json` is read; its results are compared with those
of the manifest's problem, and the commands that do so note that. A build over a bundle replaces the files that its
manifest lists and keeps all others.
"""

from stepladder.runtime.bundle.function import (
    FunctionBuffer,
    FunctionBundle,
    FunctionManifest,
    Launch,
    PlainCode,
    PlainKernel,
    schema_version_of,
)
from stepladder.runtime.bundle.function_files import (
    is_function,
    parse_function_manifest,
    read_any,
    read_function,
    write_function,
)
from stepladder.runtime.bundle.function_rules import check_function
from stepladder.runtime.bundle.manifest import (
    CUBIN,
    MANIFEST,
    PTX,
    SCHEMA_VERSION,
    SCHEMA_VERSION_SEVERAL,
    SCHEMA_VERSION_VALUES,
    WORKSPACE_ROLES,
    Argument,
    Bundle,
    FrontKernel,
    Manifest,
    TmaDescriptor,
    Workspace,
)
from stepladder.runtime.bundle.manifest_reading import parse_manifest
from stepladder.runtime.bundle.reading import read_bundle, read_launch
from stepladder.runtime.bundle.reference_reading import parse_reference
from stepladder.runtime.bundle.writing import check_output, write_bundle
from stepladder.runtime.problem import Problem

__all__ = [
    "CUBIN",
    "MANIFEST",
    "PTX",
    "SCHEMA_VERSION",
    "SCHEMA_VERSION_SEVERAL",
    "SCHEMA_VERSION_VALUES",
    "WORKSPACE_ROLES",
    "Argument",
    "Bundle",
    "FrontKernel",
    "FunctionBuffer",
    "FunctionBundle",
    "FunctionManifest",
    "Launch",
    "Manifest",
    "PlainCode",
    "PlainKernel",
    "Problem",
    "TmaDescriptor",
    "Workspace",
    "check_function",
    "check_output",
    "is_function",
    "parse_function_manifest",
    "parse_manifest",
    "parse_reference",
    "read_any",
    "read_bundle",
    "read_function",
    "read_launch",
    "schema_version_of",
    "write_bundle",
    "write_function",
]
