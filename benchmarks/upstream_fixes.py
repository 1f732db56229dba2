"""Fixes of LLVM's integration tests: for each test, patterns and their replacements.

A finding in a test is confirmed if the fixed copy has no finding and still passes the checks of the test.
"""

from __future__ import annotations

# An initialized mbarrier is neither visible to TMA nor, without a barrier, ordered before its use by other threads.
_READY = "\nnvvm.fence.mbarrier.init\ngpu.barrier\n"
_INITIALIZED = (r"((?:[ ]*nvgpu\.mbarrier\.init[^\n]*\n)+)(?![ ]*(?://[^\n]*\n)?[ ]*nvvm\.fence)", rf"\1{_READY}")
# All threads initialize an mbarrier, which one thread may.
_ONCE = (
    "\n%initializing = gpu.thread_id x\n%zeroth = arith.constant 0 : index\n"
    "%initializes = arith.cmpi eq, %initializing, %zeroth : index\nscf.if %initializes {\n"
)
_INITIALIZED_ONCE = (_INITIALIZED[0], rf"{_ONCE}\1}}{_READY}")
# Products are stored by some threads and read by others.
_STORED = (r"(nvgpu\.warpgroup\.mma\.store[^\n]*\n)", r"\1gpu.barrier\n")
_FENCED = r"\1nvvm.fence_mbarrier_init()\n\1gpu.barrier()\n"

_IN_LOOP = (
    r"(b_tma\.prefetch\(\)\n)(        scf\.yield_\(\[\]\)\n)(\n    return mbar_group)",
    r"\1        nvvm.fence_mbarrier_init()\n\2    gpu.barrier()\n\3",
)

FIXES: dict[str, list[tuple[str, str]]] = {
    "alloc-host-shared.mlir": [
        # Element 1 of one.
        (r"memref<1xi32>", "memref<2xi32>")
    ],
    "tma_load_128x128_stride_noswizzle.mlir": [
        (r"(nvgpu\.mbarrier\.init[^\n]*\n)(\s*\})", r"\1nvvm.fence.mbarrier.init\n\2\ngpu.barrier")
    ],
    "tma_load_128x64_swizzle128b.mlir": [
        _INITIALIZED_ONCE,
        # A box of 128 x 64 f16 is 16384 bytes.
        (r"expect_tx %9\[%c0\], %c8192", "expect_tx %9[%c0], %box_bytes"),
        (r"(%c-1_i32 = arith\.constant[^\n]*\n)", r"\1%box_bytes = arith.constant 16384 : index\n"),
    ],
    "tma_load_64x64_swizzle128b.mlir": [_INITIALIZED_ONCE],
    "tma_load_64x8_8x128_noswizzle.mlir": [
        _INITIALIZED_ONCE,
        # Shared memory is read before anything is written to it.
        (
            r"(%11 = memref\.load %7\[%c0, %c0\])",
            r"%zero = arith.constant 0.0 : f32\nmemref.store %zero, %7[%c0, %c0] : memref<64x8xf32, 3>\n"
            r"memref.store %zero, %8[%c0, %c0] : memref<8x128xf32, 3>\n"
            r"nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}\n\1",
        ),
    ],
    "gemm_f32_f16_f16_128x128x128.mlir": [_INITIALIZED_ONCE, _STORED],
    "gemm_pred_f32_f16_f16_128x128x128.mlir": [
        _INITIALIZED,
        _STORED,
        # The members of a shuffle are a mask, not how many there are.
        (r"shfl\.sync idx %i32,", "shfl.sync idx %everybody,"),
        (r"([ ]*%canonical_warp_idx = )", r"%everybody = arith.constant -1 : i32\n\1"),
    ],
    "tma_load_64x8_8x128_noswizzle-transform.mlir": [_INITIALIZED_ONCE],
    "Ch2.py": [(r"([ ]*)(mbar_group\[0\]\.init\([^\n]*\n)", r"\1\2" + _FENCED)],
    "Ch3.py": [
        (r"([ ]*)(mbar_group\[0\]\.init\([^\n]*\n)", r"\1\2" + _FENCED),
        # The product waits for all groups but the latest, which is its own.
        (r"([ ]*)(D\.store_accumulator)", r"\1nvvm.wgmma_wait_group_sync_aligned(0)\n\1\2"),
    ],
    "matmul.py": [
        (r"( +)gpu\.barrier\(\)\n(?=\n +# GPU Step)", r"\1nvvm.fence_mbarrier_init()\n\1gpu.barrier()\n"),
        # A thread of each warpgroup initializes the mbarriers, which one thread may.
        (r"(nvgpu\.mbarrier_init\([^\n]*predicate=)wgPrimaryThread", r"\1producerPrimaryThread"),
        # The consumer releases a stage, and stores the accumulators, while products are in flight.
        (r"( +)if num_stages == 1:\n +p_arrive", r"\1nvvm.WgmmaWaitGroupSyncOp(0)\n\g<0>"),
    ],
    "Ch4.py": [_IN_LOOP],
    "Ch5.py": [_IN_LOOP],
}

# Tests whose faults are in what their schedule makes of them.
FIXED_SCHEDULED = {"tma_load_64x8_8x128_noswizzle-transform.mlir"}

# Tests whose faults are in a file that they import, by where it lies.
FIXED_FILES = {"matmul.py": "tools/matmulBuilder.py"}
