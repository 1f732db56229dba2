"""The bundle: the folder that a build leaves on disk, and all that a launch needs.

    BUNDLE/kernel.cubin    machine code for `target`
    BUNDLE/kernel.ptx      the text it was assembled from; the launcher's fallback
    BUNDLE/manifest.json   how to launch it, what it computes and how it was made (`Manifest`)
    BUNDLE/ir/             the IR after each step

A bundle is self-contained. The manifest holds the SHA-256 of every other file, so that a truncated copy or an edited
kernel is refused rather than launched. A build over a bundle replaces the files that its manifest lists and keeps all
others.
"""

from stepladder.runtime.bundle.manifest import (
    CUBIN,
    MANIFEST,
    PTX,
    SCHEMA_VERSION,
    Argument,
    Bundle,
    Manifest,
    Problem,
    TmaDescriptor,
)
from stepladder.runtime.bundle.reading import read_bundle
from stepladder.runtime.bundle.writing import check_output, write_bundle

__all__ = [
    "CUBIN",
    "MANIFEST",
    "PTX",
    "SCHEMA_VERSION",
    "Argument",
    "Bundle",
    "Manifest",
    "Problem",
    "TmaDescriptor",
    "check_output",
    "read_bundle",
    "write_bundle",
]
