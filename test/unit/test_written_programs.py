"""XeTile programs that are written from the RFC's text: the numbers of each level, compared with NumPy's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

import written_chains
import written_layouts
import written_products
import written_scatters
import written_vectors
from combinations import sample
from stepladder.emulator.core.emulation import Emulation
from stepladder.pipeline.codegen import spirv
from stepladder.pipeline.codegen.kernel import find_kernel
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir
from stepladder.verify import opencl
from tile_writer import PROGRAMS
from xetile_programs import FOLDER, small_integers

WRITERS = (written_products, written_chains, written_vectors, written_layouts, written_scatters)
REQUEST = Request("xetile", start="distribute_to_subgroups")
# What has no form in lanes, with a part of the reason.
REFUSED = {
    "i8_product": "A and B must be f16 or bf16",
    "accumulators_f16": "A and B must be f16 or bf16, with f32 accumulators",
    "k_not_divided_k20": "are 88 bytes apart, and 2D block operations need",
    "transpose_of_product": "xetile.transpose of this vector cannot be distributed to lanes",
    "transpose_of_broadcast": "xetile.transpose of this vector cannot be distributed to lanes",
    "transpose_of_broadcast_row": "xetile.transpose of this vector cannot be distributed to lanes",
    "transpose_and_plain_use": "xetile.transpose of this vector cannot be distributed to lanes",
    "transpose_plus_itself": "xetile.transpose of this vector cannot be distributed to lanes",
    "transpose_of_product_one_subgroup_wg": "are 32 bytes apart, and 2D block operations need",
    "pad_b_transposed": "padding of a load whose xetile.transpose is B cannot be distributed to lanes",
    "eight_bit_store": "elements of i8 are loaded as operands of products only",
    "constant_offsets": "xetile.init_tile of a constant that is not a splat cannot be distributed to lanes",
    "f64_tile": "a tile of 64 contiguous elements of f64 has no 2D block operations",
}


def are_alike(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> bool:
    """Returns whether results agree up to the rounding of functions such as exp."""
    return all(
        np.allclose(left.astype(np.float64), right.astype(np.float64), rtol=2e-3 if left.itemsize == 2 else 1e-4)
        for left, right in zip(found, wanted)
    )


@pytest.mark.parametrize("name", sample(sorted(set(PROGRAMS) - set(REFUSED)), 12))
def test_numbers_of_every_level(name: str) -> None:
    writer, reference = PROGRAMS[name]()
    with mlir_context():
        emulation = Emulation(parse_payload(writer.text(), name), "gemm")
        inputs = small_integers(emulation)
        wanted = reference(*(array.copy() for array in inputs))
        run = run_pipeline(writer.text(), name, REQUEST)
        levels = {"work-group": emulation}
        levels |= {step.name: Emulation(parse_payload(step.text, name), "gemm") for step in run.steps}
        for level, executed in levels.items():
            outcome = executed.run(inputs, count=False)
            assert not outcome.findings, level
            assert are_alike(outcome.arguments[-len(wanted) :], wanted), level
        kernel = find_kernel(run.module)
        code = spirv.generate(kernel, use_cache=False)
    if opencl.find_runtime() is None:
        return
    numbers = [parameter.number for parameter in kernel.parameters]
    buffers = [inputs[number].view(np.uint8) for number in numbers]
    after = opencl.run(code.spirv, kernel.name, buffers, kernel.grid, kernel.block)
    found = [
        after[numbers.index(number)].view(inputs[number].dtype).reshape(inputs[number].shape)
        for number in range(len(inputs) - len(wanted), len(inputs))
    ]
    assert are_alike(found, wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_lanes_do_not_do_is_refused_at_the_op(name: str) -> None:
    writer, reference = PROGRAMS[name]()
    with mlir_context():
        emulation = Emulation(parse_payload(writer.text(), name), "gemm")
        inputs = small_integers(emulation)
        wanted = reference(*(array.copy() for array in inputs))
        assert are_alike(emulation.run(inputs, count=False).arguments[-len(wanted) :], wanted)
        with pytest.raises(StepladderError, match=REFUSED[name]):
            run_pipeline(writer.text(), name, REQUEST)


def test_each_writer_adds_its_programs() -> None:
    modules = {write.__module__ for write in PROGRAMS.values()}
    assert modules == {module.__name__ for module in WRITERS}


def test_the_table_of_the_rfc_names_programs_and_messages() -> None:
    """docs/xetile.md says which test has each point of the RFC."""
    root = transforms_dir().parent
    page = (root / "docs" / "xetile.md").read_text()
    wrong = (root / "test" / "xetile" / "wrong.mlir").read_text()
    known = {*PROGRAMS, *(path.stem for path in FOLDER.rglob("*.mlir"))}
    section = page[page.index("## The RFC, point by point") :].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 40
    for row in rows:
        names = set(re.findall(r"`(\w+)`", row[1]))
        assert names and names <= known, row[0]
        assert all(message in wrong for message in re.findall(r'"([^"]+)"', row[2] if len(row) > 2 else "")), row[0]
