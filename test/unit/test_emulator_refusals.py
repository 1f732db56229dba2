"""What the emulator does not execute: the message names the op, its location and what is taken."""

import numpy as np
import pytest

from foreign_kernels import launch
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.core.module_kernel import ModuleKernel
from stepladder.emulator.ptx.arguments import from_texts
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

RND = "#nvvm.fp_rnd_mode"
HALVES = "vector<4x4xi8>, vector<4x4xi8>, vector<2x2xi32>"
KERNELS = {
    "gpu.launch inside of a kernel: expected a launch of the host": """
        gpu.launch blocks(%i, %iy, %iz) in (%hx = %c1, %hy = %c1, %hz = %c1)
            threads(%u, %uy, %uz) in (%ix = %c1, %jy = %c1, %jz = %c1) {
          gpu.terminator
        }""",
    "gpu.alloc inside of a kernel: expected an allocation of the host": "%a = gpu.alloc () : memref<4xf32>",
    'with syncscope("agent"): the target has "", "device", "cluster", "block", "singlethread"': """
        %p = llvm.mlir.zero : !llvm.ptr
        %v = llvm.mlir.constant(1 : i32) : i32
        %o = llvm.atomicrmw add %p, %v syncscope("agent") monotonic : !llvm.ptr, i32""",
    "of i8 with k = 64 and selector 1: expected elements of 8 bits or more, and a selector below 1": f"""
        %a = arith.constant dense<0> : vector<4x4xi8>
        %d = arith.constant dense<0> : vector<2x2xi32>
        %m = arith.constant dense<0> : vector<2xi16>
        %e = nvgpu.mma.sp.sync(%a, %a, %d) metadata(%m) {{mmaShape = [16, 8, 64], sparsitySelector = 1 : i32}}
            : ({HALVES}) -> vector<2x2xi32>""",
    "with the rounding rz: expected rn": f"""
        %a = arith.constant 1.0 : f32
        %r = nvvm.convert.f32x2.to.f16x2 %a, %a {{rnd = {RND}<rz>}} : vector<2xf16>""",
    "with random bits, as stochastic rounding has: expected the rounding rn": f"""
        %a = arith.constant 1.0 : f32
        %k = arith.constant 1 : i32
        %r = nvvm.convert.f32x2.to.f16x2 %a, %a, %k {{rnd = {RND}<rs>}} : vector<2xf16>""",
    "with the rounding rz, or with saturation: expected rna or rn, and none": f"""
        %a = arith.constant 1.0 : f32
        %r = nvvm.convert.float.to.tf32 %a {{rnd = {RND}<rz>}}""",
    "with the rounding rn, or with saturation: expected rna or rn, and none": f"""
        %a = arith.constant 1.0 : f32
        %r = nvvm.convert.float.to.tf32 %a {{rnd = {RND}<rn>, sat = #nvvm.sat_mode<satfinite>}}""",
    "without nan and abs": """
        %a = arith.constant 1.0 : f32
        %m = arith.constant -1 : i32
        %r = nvvm.redux.sync fmin %a, %m {abs = true} : f32 -> f32""",
    "in mode im2col": """
        %s = llvm.mlir.zero : !llvm.ptr<3>
        %p = llvm.mlir.zero : !llvm.ptr
        %i = arith.constant 0 : i32
        nvvm.cp.async.bulk.tensor.reduce %p, %s, box[%i, %i, %i] {redKind = #nvvm.tma_redux_kind<add>,
            mode = #nvvm.tma_store_mode<im2col>} : !llvm.ptr, !llvm.ptr<3>""",
    "which no GPU before sm_100 has": """
        %s = llvm.mlir.zero : !llvm.ptr<3>
        %p = llvm.mlir.zero : !llvm.ptr<1>
        %i = arith.constant 16 : i32
        %m = arith.constant 1 : i16
        nvvm.cp.async.bulk.global.shared.cta %p, %s, %i byte_mask = %m : !llvm.ptr<1>, !llvm.ptr<3>""",
}
HOSTS = {
    "tensor.reshape makes a [3, 2] of a [4]": """
        %t = tensor.empty() : tensor<4xf32>
        %s = arith.constant dense<[3, 2]> : tensor<2xi64>
        %d = tensor.reshape %t(%s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>""",
    "tensor.cast makes a [5] of a [4]": """
        %t = tensor.empty() : tensor<4xf32>
        %d = tensor.cast %t : tensor<4xf32> to tensor<?xf32>
        %e = tensor.cast %d : tensor<?xf32> to tensor<5xf32>""",
    "tensor.expand_shape makes a [2, 3] of a [4]": """
        %t = tensor.empty() : tensor<4xf32>
        %d = tensor.cast %t : tensor<4xf32> to tensor<?xf32>
        %c = arith.constant 3 : index
        %e = tensor.expand_shape %d [[0, 1]] output_shape [2, %c] : tensor<?xf32> into tensor<2x?xf32>""",
    "tensor.dim asks for dimension 2 of 1": """
        %t = tensor.empty() : tensor<4xf32>
        %c1 = arith.constant 1 : index
        %i = arith.addi %c1, %c1 : index
        %d = tensor.dim %t, %i : tensor<4xf32>""",
    "tensor.pad adds [-1] elements before and [2] after its source: expected none below 0": """
        %t = tensor.empty() : tensor<4xf32>
        %c = arith.constant -1 : index
        %z = arith.constant 0.0 : f32
        %d = tensor.pad %t low[%c] high[2] {
        ^bb0(%i: index):
          tensor.yield %z : f32
        } : tensor<4xf32> to tensor<?xf32>""",
    "tensor.extract_slice with a stride of 0: expected 1 or more": """
        %t = tensor.empty() : tensor<4xf32>
        %c = arith.constant 0 : index
        %d = tensor.extract_slice %t[0] [2] [%c] : tensor<4xf32> to tensor<2xf32>""",
    "ub.poison of this type: expected numbers, and memrefs, vectors and tensors of static shape": (
        "%p = ub.poison : !llvm.struct<(i32)>"
    ),
    "inline PTX may declare registers only": """
        %p = llvm.inline_asm "{ .shared .b32 x; }", "=r" : () -> i32""",
}


def refused(text: str) -> StepladderError:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        emulation = Emulation(parse_payload(text, "p.mlir"), "main")
        emulation.run(emulation.random_inputs(0))
    return caught.value


@pytest.mark.parametrize("message", KERNELS)
def test_what_kernels_may_not_have(message: str) -> None:
    error = refused(launch(f"{KERNELS[message]}\ngpu.terminator", threads=32))
    assert message in error.message and (error.location or "").startswith("p.mlir:")


@pytest.mark.parametrize("message", HOSTS)
def test_what_hosts_may_not_have(message: str) -> None:
    error = refused(f"func.func @main() {{{HOSTS[message]}\n return }}")
    assert message in error.message and (error.location or "").startswith("p.mlir:")


def test_an_argument_that_no_input_is_given_for() -> None:
    with mlir_context(), pytest.raises(StepladderError, match="which no input can be given for"):
        Emulation(parse_payload("func.func @main(%p: !llvm.ptr) { return }", "p.mlir")).check_inputs([np.zeros(1)])


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("!gpu.async.token", "the parameter 0 of type !gpu.async.token, which no argument can be given for"),
        ("memref<4x4xf32, strided<[8, ?]>>", "memref of strides [8, '?']: all or none are to be dynamic"),
    ],
)
def test_parameters_that_no_argument_is_given_for(parameter: str, message: str) -> None:
    text = f"gpu.module @m {{ gpu.func @k(%p: {parameter}) kernel {{ gpu.return }} }}"
    with mlir_context(), pytest.raises(StepladderError) as caught:
        kernel = ModuleKernel(parse_payload(text, "p.mlir"), "k", "p.mlir")
        kernel.bound(from_texts(["4x4xf32"]), Launch((1, 1, 1), (32, 1, 1)))
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("8x8xf32[8]", "argument '8x8xf32[8]' has a box of 1 dimensions, and 2 itself"),
        ("8x0xf32", "argument '8x0xf32' has a size of 0: sizes are integers from 1"),
        ("300:i8", "argument '300:i8' does not fit i8, which goes from -128 to 255"),
    ],
)
def test_arguments_that_are_none(argument: str, message: str) -> None:
    with pytest.raises(StepladderError) as caught:
        from_texts([argument])
    assert message in caught.value.message
