"""Kernels in PTX that show where the matrix units and TMA of a GPU have which element: one instruction each.

All take addresses of global memory as 64-bit parameters: what they read, and what they write.
"""

from __future__ import annotations

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"
NAME = "kernel"
WARPGROUP = 128
SHARED_BYTES = 96 * 1024
# Where wgmma's B begins in shared memory; A begins at 0.
B_PLACE = 48 * 1024


def _kernel(parameters: list[str], body: str, *, directives: str = "") -> str:
    """Returns a module with one kernel; `parameters` are declarations."""
    return (
        f"{HEADER}.extern .shared .align 1024 .b8 shared[];\n"
        f".visible .entry {NAME}({', '.join(parameters)}) {directives}\n{{\n"
        ".reg .pred p, q;\n.reg .b16 h<8>;\n.reg .b32 t, s, i, n, r<8>;\n.reg .b64 x<8>;\n"
        "mov.u32 t, %tid.x;\nmov.u32 s, shared;\n" + body + "\nret;\n}\n"
    )


def _u64(*names: str) -> list[str]:
    return [f".param .u64 {name}" for name in names]


def _pointer(register: str, parameter: str) -> str:
    return f"ld.param.u64 {register}, [{parameter}];\ncvta.to.global.u64 {register}, {register};\n"


def _copy(label: str, count: int, threads: int, *, to_shared: bool, pointer: str, shared: str = "s") -> str:
    """Returns code by which all threads copy `count` words between global memory and shared memory."""
    load, store = (
        ("ld.global.b32 n, [x7];", "st.shared.b32 [r7], n;")
        if to_shared
        else ("ld.shared.b32 n, [r7];", "st.global.b32 [x7], n;")
    )
    return (
        f"mov.u32 i, t;\n{label}:\nsetp.ge.u32 p, i, {count};\n@p bra {label}_END;\n"
        f"mad.wide.u32 x7, i, 4, {pointer};\nmad.lo.u32 r7, i, 4, {shared};\n{load}\n{store}\n"
        f"add.u32 i, i, {threads};\nbra {label};\n{label}_END:\n"
    )


def _registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{number}" for number in range(count)) + "}"


def _load_registers(prefix: str, count: int, pointer: str, *, bits: int = 32) -> str:
    """Returns code that loads what each thread holds: `count` registers, thread by thread."""
    size = bits // 8
    lines = [f"mad.wide.u32 x7, t, {size * count}, {pointer};\n"]
    lines += [f"ld.global.b{bits} {prefix}{number}, [x7+{size * number}];\n" for number in range(count)]
    return "".join(lines)


def _store_registers(prefix: str, count: int, pointer: str, *, bits: int = 32) -> str:
    size = bits // 8
    lines = [f"mad.wide.u32 x7, t, {size * count}, {pointer};\n"]
    lines += [f"st.global.b{bits} [x7+{size * number}], {prefix}{number};\n" for number in range(count)]
    return "".join(lines)


def ldmatrix(count: int, transposed: bool) -> str:
    """Parameters: 32 rows of 16 bytes; for each thread the row that it gives the address of; out: registers."""
    trans = ".trans" if transposed else ""
    return _kernel(
        _u64("rows", "order", "out"),
        (
            _pointer("x0", "rows")
            + _pointer("x1", "order")
            + _pointer("x2", "out")
            + _copy("IN", 128, 32, to_shared=True, pointer="x0")
            + "bar.sync 0;\n"
            + "mad.wide.u32 x7, t, 4, x1;\nld.global.b32 i, [x7];\nmad.lo.u32 i, i, 16, s;\n"
            + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {_registers('r', count)}, [i];\n"
            + _store_registers("r", count, "x2")
        ),
    )


def stmatrix(count: int, transposed: bool) -> str:
    """Parameters: what each thread holds; the row that it gives the address of; out: 32 rows of 16 bytes."""
    trans = ".trans" if transposed else ""
    clear = "mad.lo.u32 r7, t, 16, s;\n" + "".join(f"st.shared.b32 [r7+{4 * word}], 0;\n" for word in range(4))
    return _kernel(
        _u64("held", "order", "out"),
        (
            _pointer("x0", "held")
            + _pointer("x1", "order")
            + _pointer("x2", "out")
            + clear
            + "bar.sync 0;\n"
            + _load_registers("r", count, "x0")
            + "mad.wide.u32 x7, t, 4, x1;\nld.global.b32 i, [x7];\nmad.lo.u32 i, i, 16, s;\n"
            + f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [i], {_registers('r', count)};\n"
            + "bar.sync 0;\n"
            + _copy("OUT", 128, 32, to_shared=False, pointer="x2")
        ),
    )


def mma_sync(shape: str, types: tuple[str, str, str, str], registers: tuple[int, int, int]) -> str:
    """Parameters: what each thread holds of A, B and C; out: of D.

    Args:
        shape: such as m16n8k16.
        types: of D, A, B and C.
        registers: that a thread has of A, B and C; of 64 bits for f64, else of 32.
    """
    bits, letter = (64, "d") if types[1] == "f64" else (32, "b")
    kind = f".f{bits}" if bits == 64 or types[0] == "f32" else ".b32"
    declared = f".reg .b{bits} a<8>, b<8>;\n.reg {kind} c<8>, d<8>;\n"
    if letter == "d":
        declared = ".reg .f64 a<8>, b<8>, c<8>, d<8>;\n"
    count_a, count_b, count_c = registers
    load = "".join(
        _load_registers(prefix, count, pointer, bits=bits).replace(f".b{bits} c", f"{kind} c").replace(".b64", ".f64")
        for prefix, count, pointer in (("a", count_a, "x0"), ("b", count_b, "x1"), ("c", count_c, "x2"))
    )
    store = _store_registers("d", count_c, "x3", bits=bits).replace(f".b{bits}", kind)
    return _kernel(
        _u64("a_held", "b_held", "c_held", "out"),
        (
            declared
            + _pointer("x0", "a_held")
            + _pointer("x1", "b_held")
            + _pointer("x2", "c_held")
            + _pointer("x3", "out")
            + load
            + f"mma.sync.aligned.{shape}.row.col.{'.'.join(types)} {_registers('d', count_c)}, "
            + f"{_registers('a', count_a)}, {_registers('b', count_b)}, {_registers('c', count_c)};\n"
            + store
        ),
    )


def wgmma(columns: int, k: int, types: tuple[str, str, str], along_k: tuple[bool, bool]) -> str:
    """Parameters: an image of shared memory; descriptors of A and B, counted from its begin; out: registers.

    Args:
        types: of D, A and B.
        along_k: of A and B; only types of 16 bits are read otherwise.
    """
    is_f32 = types[0] == "f32"
    registers = columns // 4 if types[0] == "f16" else columns // 2
    kind = ".f32" if is_f32 else ".b32"
    sixteen = types[1] in ("f16", "bf16")
    modes = "".join(f", {int(not along)}" for along in along_k) if sixteen else ""
    signs = "" if types[0] == "s32" else ", 1, 1"
    zeros = "".join(
        f"mov{kind if is_f32 else '.b32'} d{number}, {'0f00000000' if is_f32 else '0'};\n"
        for number in range(registers)
    )
    base = "cvt.u64.u32 x7, s;\nand.b64 x7, x7, 0x3FFFF;\nshr.u64 x7, x7, 4;\n"
    descriptors = "".join(
        f"ld.param.u64 {register}, [{name}];\nadd.u64 {register}, {register}, x7;\n"
        for register, name in (("x2", "a_descriptor"), ("x3", "b_descriptor"))
    )
    return _kernel(
        _u64("image", "a_descriptor", "b_descriptor", "out"),
        (
            f".reg {kind} d<{registers}>;\n"
            + _pointer("x0", "image")
            + _pointer("x1", "out")
            + _copy("IN", SHARED_BYTES // 4, WARPGROUP, to_shared=True, pointer="x0")
            + "fence.proxy.async;\nbar.sync 0;\n"
            + base
            + descriptors
            + zeros
            + "setp.ne.b32 p, 0, 0;\nwgmma.fence.sync.aligned;\n"
            + f"wgmma.mma_async.sync.aligned.m64n{columns}k{k}.{'.'.join(types)} "
            + f"{_registers('d', registers)}, x2, x3, p"
            + f"{signs}{modes};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
            + _store_registers("d", registers, "x1").replace(".b32", kind)
        ),
        directives=".maxntid 128, 1, 1",
    )


_MAP = ".param .align 64 .b8 map[128]"


def tma_load(bytes_: int, place: int, words: int, *, multicast: bool = False) -> str:
    """Parameters: a descriptor; column and row of the box; an image of shared memory; out: it afterwards, and whether
    the mbarrier's phase ended, a word.

    Args:
        bytes_: of the expect_tx.
        place: of the box in shared memory; the mbarrier stands behind the image.
        words: of the image.
        multicast: whether the first of two blocks in a cluster loads for both; each writes its own image.
    """
    mask = "mov.u16 h0, 3;\n" if multicast else ""
    to = ".multicast::cluster" if multicast else ""
    sync = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" if multicast else "bar.sync 0;\n"
    rank = "mov.u32 r6, %ctaid.x;\n"
    return _kernel(
        [_MAP, *_u64("column", "row", "image", "out")],
        (
            _pointer("x0", "image")
            + _pointer("x1", "out")
            + rank
            + f"mad.wide.u32 x1, r6, {4 * words + 4}, x1;\nld.param.u32 r0, [column];\nld.param.u32 r1, [row];\n"
            + _copy("IN", words, WARPGROUP, to_shared=True, pointer="x0")
            + f"add.u32 r2, s, {4 * words};\nadd.u32 r3, s, {place};\nsetp.ne.u32 q, t, 0;\n"
            + "@!q mbarrier.init.shared.b64 [r2], 1;\n@!q fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
            + sync
            + f"@!q mbarrier.arrive.expect_tx.shared.b64 x3, [r2], {bytes_};\n"
            + sync
            + "mov.u64 x4, map;\ncvta.param.u64 x4, x4;\nsetp.eq.u32 p, r6, 0;\nsetp.eq.and.u32 p, t, 0, p;\n"
            + mask
            + f"@p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes{to} "
            + "[r3], [x4, {r0, r1}], "
            + f"[r2]{', h0' if multicast else ''};\n"
            # A phase that does not end must not hold the GPU.
            + "mov.u32 i, 0;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 p, [r2], 0;\n@p bra DONE;\nadd.u32 i, i, 1;\n"
            + "setp.lt.u32 p, i, 100000;\n@p bra WAIT;\nsetp.ne.u32 p, 0, 0;\nDONE:\nselp.u32 r5, 1, 0, p;\n"
            + f"@!q st.global.b32 [x1+{4 * words}], r5;\n"
            + _copy("OUT", words, WARPGROUP, to_shared=False, pointer="x1")
            + sync
        ),
        directives=".reqnctapercluster 2, 1, 1" if multicast else "",
    )


def tma_store(place: int, words: int, *, add: bool) -> str:
    """Parameters: a descriptor; column and row of the box; an image of shared memory, whose box is stored or added."""
    op = (
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile"
        if add
        else "cp.async.bulk.tensor.2d.global.shared::cta.tile"
    )
    return _kernel(
        [_MAP, *_u64("column", "row", "image")],
        (
            _pointer("x0", "image")
            + "ld.param.u32 r0, [column];\nld.param.u32 r1, [row];\n"
            + _copy("IN", words, WARPGROUP, to_shared=True, pointer="x0")
            + "fence.proxy.async;\nbar.sync 0;\nsetp.eq.u32 q, t, 0;\n@!q bra END;\n"
            + f"add.u32 r3, s, {place};\nmov.u64 x4, map;\ncvta.param.u64 x4, x4;\n"
            + f"{op}.bulk_group [x4, {{r0, r1}}], [r3];\n"
            + "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n"
        ),
    )
