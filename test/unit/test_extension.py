"""The ops of the `tc` dialect on small payloads, and what they share."""

import pytest

from stepladder.extension import Dialect, Handle
from stepladder.extension.lib import arithmetic, control_flow, dialect, launches, memory
from stepladder.mlir.bindings import interpreter, ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import mlir_context

LAUNCH = """
module {{
  memref.global "private" @split_k_workspace : memref<1xf32>
  func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {{
      %tile = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
      scf.for %k = %c0 to {upper} step %c1 {{
        linalg.matmul ins(%a, %b : memref<64x64xf16>, memref<64x64xf16>)
          outs(%tile : memref<64x64xf32, #gpu.address_space<workgroup>>)
      }}
      linalg.copy ins(%tile : memref<64x64xf32, #gpu.address_space<workgroup>>) outs(%c : memref<64x64xf32>)
      gpu.terminator
    }}
    return
  }}
}}
"""
SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%module: !transform.any_op {{transform.readonly}}) {{
    {op} : (!transform.any_op) -> ()
    transform.yield
  }}
}}
"""
SPLIT = '"tc.split_k"(%module) {{splits = 2 : i64, threads = 128 : i64, workspace = "{}"}}'


def apply(payload: str, op: str) -> ir.Module:
    """Applies a transform op to a payload, in the current context."""
    module, script = ir.Module.parse(payload), ir.Module.parse(SCRIPT.format(op=op))
    main = next(iter(script.body.operations))
    interpreter.apply_named_sequence(module, main, script)
    return module


def test_split_k_avoids_the_symbols_of_the_payload() -> None:
    with mlir_context():
        module = apply(LAUNCH.format(upper="%c4"), SPLIT.format("memory"))
        names = [ir.StringAttr(op.attributes["sym_name"]).value for op in walk(module, "memref.global")]
        assert sorted(names) == ["split_k_semaphores", "split_k_workspace", "split_k_workspace_0"]
        (used,) = {
            str(op.attributes["name"])
            for op in walk(module, "memref.get_global")
            if "split_k_workspace" in str(op.attributes["name"])
        }
        assert used == "@split_k_workspace_0"


@pytest.mark.parametrize(
    "upper, workspace, message",
    [
        ("%n", "memory", "tc.split_k: the bounds of the loop over k are not constant"),
        ("%c4", "nowhere", "tc.split_k: workspace = 'nowhere' is none of cluster, registers, memory"),
        ("%c1", "memory", "tc.split_k: k has 1 steps, and 2 splits of 1 steps leave some splits empty"),
    ],
)
def test_split_k_refuses(upper: str, workspace: str, message: str) -> None:
    with mlir_context():
        with pytest.raises(ValueError) as raised:
            apply(LAUNCH.format(upper=upper), SPLIT.format(workspace))
        assert message in str(raised.value)


@pytest.mark.parametrize(
    "op, message",
    [
        (
            '"tc.split_k"(%module) {splits = 16 : i64, threads = 128 : i64, workspace = "cluster"}',
            "tc.split_k: a cluster of 16 blocks; portable clusters have at most 8",
        ),
        (
            '"tc.form_clusters"(%module) {rows = 4 : i64, columns = 5 : i64}',
            "tc.form_clusters: a cluster of 4 x 5 blocks; clusters have at most 16",
        ),
        (
            '"tc.convert_to_warpgroup_mma"(%module)',
            "tc.convert_to_warpgroup_mma: its operands are not loaded by TMA",
        ),
        (
            '"tc.reinterpret_elements"(%module) {old = tensor<4xf32>, new = f32}',
            "tc.reinterpret_elements: tensor<4xf32> is no type of elements; accepted: integers and floating-point",
        ),
    ],
)
def test_ops_refuse_what_requirements_of_their_steps_keep_from_them(op: str, message: str) -> None:
    with mlir_context():
        with pytest.raises(ValueError) as raised:
            apply(LAUNCH.format(upper="%c64"), op)
        assert message in str(raised.value)


def test_matmuls_are_outlined_to_a_module() -> None:
    op = """%f = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.outline_matmuls"(%f) {pairs = 0 : i64, dequantizing = 0 : i64, columns = 0 : i64}"""
    with mlir_context():
        with pytest.raises(ValueError) as raised:
            apply(LAUNCH.format(upper="%c64"), op)
        assert "tc.outline_matmuls: the op is a func.func; accepted: the module" in str(raised.value)


@pytest.mark.parametrize(
    "body, message",
    [
        ("", "expected one gpu.launch, found 0"),
        (
            """%c1 = arith.constant 1 : index
            gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) { gpu.terminator }""",
            "expected one linalg.matmul in the launch, found 0",
        ),
    ],
)
def test_convert_to_warpgroup_mma_refuses(body: str, message: str) -> None:
    with mlir_context():
        with pytest.raises(ValueError) as raised:
            apply(f"func.func @f() {{ {body} return }}", '"tc.convert_to_warpgroup_mma"(%module)')
        assert f"tc.convert_to_warpgroup_mma: {message}" in str(raised.value)


def test_bounds_and_sizes_are_read_where_they_are_constant() -> None:
    with mlir_context():
        module = ir.Module.parse(LAUNCH.format(upper="%n"))
        (loop,) = walk(module, "scf.for")
        launch = launches.find_launch(module.operation)
        assert control_flow.constant_bounds(loop) is None
        assert launches.launch_sizes(launch, launches.GRID) == [4, 1, 1]
        assert launches.launch_sizes(launch, launches.BLOCK) == [64, 1, 1]
        assert launches.launch_sizes(launch, launches.CLUSTER) == [1, 1, 1]
        assert control_flow.enclosing_loops(walk(loop, "linalg.matmul")[0]) == [loop]
        with ir.InsertionPoint(loop), loop.location:
            loop.operands[1] = arithmetic.index(8)
        assert control_flow.constant_bounds(loop) == (0, 8, 1)


def test_a_view_is_traced_to_its_alloc() -> None:
    with mlir_context():
        module = ir.Module.parse(LAUNCH.format(upper="%c4"))
        (alloc,) = walk(module, "memref.alloc")
        with ir.InsertionPoint.after(alloc), alloc.location:
            view = memory.subview(memory.subview(alloc.results[0], [32, 0], [32, 64]), [0, 8], [16, 8])
        assert memory.alloc_of(view) == alloc
        strides, offset = ir.MemRefType(view.type).get_strides_and_offset()
        assert (strides, offset) == ([64, 1], 32 * 64 + 8)
        assert memory.alloc_of(walk(module, "linalg.matmul")[0].operands[0]) is None


MARKED = 'func.func @f(%a: !transform.any_op) {{ "own.mark"(%a) {{{}}} : (!transform.any_op) -> () return }}'


def _dialect_with_op(requires: str) -> type[Dialect]:
    """Returns a new dialect `own`, whose op requires an attribute."""

    class Own(Dialect, name="own"):
        pass

    class Mark(Own.Operation, name="mark"):
        target: Handle

        def verify_invariants(self) -> bool:
            return requires in self.attributes

    return Own


def test_another_dialect_of_the_same_name_is_loaded_by_its_own_classes() -> None:
    """What a process keeps of a dialect belongs to its classes: an op has the verifier and the class of the last."""
    before = dialect.registered()
    for requires in ("a", "a", "b", "a"):
        own = _dialect_with_op(requires)
        try:
            dialect.register_dialect(own)
            for _ in range(2):
                with mlir_context():
                    accepted = MARKED.format(requires)
                    op = walk(ir.Module.parse(accepted), "own.mark")[0]
                    assert type(op.opview) is own.operations[0]
                    with pytest.raises(ir.MLIRError):
                        ir.Module.parse(MARKED.format("c"))
        finally:
            dialect.restore(before)
