"""The forms that ptxas (CUDA 13.0) accepts for sm_90a, and those for sm_100 that the emulator executes.

`forms` reads the rows. They have the families of instructions that a function decodes by one name (`registry`).
"""

from __future__ import annotations

from collections.abc import Iterable

_8, _16, _32, _64 = "b8|u8|s8", "b16|u16|s16", "b32|u32|s32|f32", "b64|u64|s64|f64"
_ANY = f"{_8}|{_16}|{_32}|{_64}"
_SHORT, _WORDS = f"{_8}|{_16}", f"{_8}|{_16}|{_32}"
_INTEGERS = "u16|s16|u32|s32|u64|s64"
_BITS = "b16|b32|b64"
_HALVES = "f16|f16x2|bf16|bf16x2"
_WIDE = "f32|f64"
_FLOATS = f"{_HALVES}|{_WIDE}"
_FLUSHED = "f16|f16x2|f32"  # take .ftz
_SCOPE = "cta|cluster|gpu|sys"
_SHARED = "shared|shared::cta|shared::cluster"
_OWN = "shared|shared::cta"
_DIRECTED = "rn|rz|rm|rp"
_WHOLE = "rni|rzi|rmi|rpi"


def _joined(heads: Iterable[str], tails: Iterable[str]) -> tuple[str, ...]:
    tails = tuple(tails)
    return tuple(f"{head} {tail}".strip() for head in heads for tail in tails)


# Loads and stores.

_ELEMENTS = (f"[v2] {_ANY}", f"v4 {_WORDS}", f"v8 {_SHORT}", "b128")
_L1 = "[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate]"
_HINTS = f"{_L1} [L2::cache_hint]"
_PREFETCH = "[L2::64B|L2::128B|L2::256B]"
_LOAD_SPACES = f"[global|{_SHARED}|local|const|param|param::entry|param::func]"
_STORE_SPACES = f"[global|{_SHARED}|local|param|param::func]"
_GLOBAL_LOADS = (
    f"[weak] [global] {_HINTS} {_PREFETCH}",
    f"volatile [global] {_PREFETCH}",
    f"relaxed|acquire {_SCOPE} [global] {_HINTS} {_PREFETCH}",
    f"global nc {_HINTS} {_PREFETCH}",
)
_LOADS = (
    f"[weak] {_LOAD_SPACES} [ca|cg|cs|cv|lu]",
    *_GLOBAL_LOADS,
    f"[weak] [global] [ca|cg|cs|cv|lu] [L2::cache_hint] {_PREFETCH}",
    f"volatile {_SHARED}",
    f"relaxed|acquire {_SCOPE} {_SHARED}",
    f"global nc [ca|cg|cs] [L2::cache_hint] {_PREFETCH}",
)
_GLOBAL_STORES = (
    f"[weak] [global] {_HINTS}",
    "volatile [global]",
    f"relaxed|release {_SCOPE} [global] {_HINTS}",
)
_STORES = (
    f"[weak] {_STORE_SPACES} [wb|cg|cs|wt]",
    *_GLOBAL_STORES,
    "[weak] [global] [wb|cg|cs|wt] [L2::cache_hint]",
    f"volatile {_SHARED}",
    f"relaxed|release {_SCOPE} {_SHARED}",
)
_MMIO = f"mmio relaxed sys [global] {_ANY}"

# Atomic updates.

_UPDATES = ("add u32|s32|u64|f32|f64", "min|max u32|s32|u64|s64", "inc|dec u32", "and|or|xor b32|b64")
_EXCHANGE, _SWAP = "exch b32|b64|b128", f"cas {_BITS}|b128"
_OF_HALVES = (f"add noftz {_HALVES}",)
_OF_VECTORS = (f"add|min|max noftz v2|v4 {_HALVES}", "add|min|max noftz v8 f16|bf16", "add v2|v4 f32")


def _atomic(orders: str, updates: Iterable[str]) -> tuple[str, ...]:
    head = f"[{orders}] [{_SCOPE}]"
    return (
        *_joined([f"{head} [global] [L2::cache_hint]", f"{head} [{_SHARED}]"], (*updates, *_OF_HALVES)),
        *_joined([f"{head} [global] [L2::cache_hint]"], _OF_VECTORS),
    )


# Comparisons.

_EQUAL, _ORDER = "eq|ne", "lt|le|gt|ge"
_UNSIGNED, _UNORDERED = "lo|ls|hi|hs", "equ|neu|ltu|leu|gtu|geu|num|nan"
_COMBINE = "[and|or|xor]"


def _compared(sources: dict[str, str], flushed_form: str) -> tuple[str, ...]:
    """Returns the rows of comparisons, by what is compared."""
    floats = f"{_EQUAL}|{_ORDER}|{_UNORDERED}"
    return (
        f"{_EQUAL}|{_ORDER} {_COMBINE} {sources['integers']}",
        f"{_EQUAL} {_COMBINE} {sources['bits']}",
        f"{_UNSIGNED} {_COMBINE} {sources['unsigned']}",
        f"{floats} {_COMBINE} {sources['floats']}",
        f"{floats} {_COMBINE} [ftz] {flushed_form}",
    )


_SETP = _compared(
    {"integers": _INTEGERS, "bits": _BITS, "unsigned": "u16|u32|u64", "floats": _FLOATS},
    _FLUSHED,
)
_TRUTH = "u32|s32|f32|f16|bf16"
_SET = (
    *_compared(
        {
            "integers": f"{_TRUTH} {_INTEGERS}",
            "bits": f"{_TRUTH} {_BITS}",
            "unsigned": f"{_TRUTH} u16|u32|u64",
            "floats": f"{_TRUTH} {_WIDE}",
        },
        "u32|s32|f16 f32",
    ),
    *_joined(
        [f"{_EQUAL}|{_ORDER}|{_UNORDERED} {_COMBINE}"],
        (
            "[ftz] f32 f32",
            "[ftz] u16|s16|u32|s32|f16 f16",
            "bf16 f16",
            "u16|s16|u32|s32|bf16 bf16",
            "[ftz] u32|s32|f16x2 f16x2",
            "u32|s32|bf16x2 bf16x2",
        ),
    ),
)

# Conversions.

_ALL_INTEGERS = f"u8|s8|{_INTEGERS}"
_CVT = (
    f"{_ALL_INTEGERS} {_ALL_INTEGERS}",
    *(
        f"sat {target} {sources}"
        for target, sources in {
            "s8": "s16|s32|s64|u8|u16|u32|u64",
            "u8": "s8|s16|s32|s64|u16|u32|u64",
            "s16": "s32|s64|u16|u32|u64",
            "u16": "s8|s16|s32|s64|u32|u64",
            "s32": "s64|u32|u64",
            "u32": "s8|s16|s32|s64|u64",
            "s64": "u64",
            "u64": "s8|s16|s32|s64",
        }.items()
    ),
    # Floating-point numbers to integers and back.
    f"{_WHOLE} [sat] {_ALL_INTEGERS} f16|f64",
    f"{_WHOLE} [ftz] [sat] {_ALL_INTEGERS} f32",
    f"{_WHOLE} {_INTEGERS} bf16",
    f"{_DIRECTED} [sat] f16|f64 {_ALL_INTEGERS}",
    f"{_DIRECTED} [ftz] [sat] f32 {_ALL_INTEGERS}",
    f"{_DIRECTED} bf16 {_INTEGERS}",
    # To wider ones and to the same type.
    f"[{_WHOLE}] [sat] f16 f16",
    f"[{_WHOLE}] bf16 bf16",
    f"[{_WHOLE}] [ftz] [sat] f32 f32",
    f"[{_WHOLE}] [sat] f64 f64",
    "[ftz] [sat] f32 f16",
    "[sat] f64 f16",
    "[ftz] [sat] f64 f32",
    f"[{_DIRECTED}] f64 bf16",
    f"[{_DIRECTED}] [ftz] f32 bf16",
    f"[{_DIRECTED}] bf16 f16",
    f"[{_DIRECTED}] f16 bf16",
    # To narrower ones.
    f"{_DIRECTED} [ftz] [sat] f32 f64",
    f"{_DIRECTED} [sat] f16 f64",
    f"{_DIRECTED} bf16 f64",
    f"{_DIRECTED} [ftz] [sat] f16 f32",
    f"{_DIRECTED} [ftz] bf16 f32",
    "rn|rz [relu] [satfinite] f16|bf16|f16x2|bf16x2 f32",
    "rn|rz [relu] tf32 f32",
    "rna [satfinite] tf32 f32",
    "rn satfinite [relu] e4m3x2|e5m2x2 f32|f16x2",
    "rn [relu] f16x2 e4m3x2|e5m2x2",
)

# Arithmetic.

_SUM = (
    _INTEGERS,
    f"[rn] {_FLOATS}",
    f"[rn] [ftz] [sat] {_FLUSHED}",
    f"[{_DIRECTED}] {_WIDE}",
    f"[{_DIRECTED}] [ftz] [sat] f32",
    "sat s32",
)
_PRODUCTS = (f"lo|hi {_INTEGERS}", "wide u16|s16|u32|s32")
_FUSED = (
    f"{_DIRECTED} {_WIDE}",
    f"{_DIRECTED} [ftz] [sat] f32",
)
_EXTREME = (
    f"{_INTEGERS}|u16x2|s16x2|f64",
    "relu s32|s16x2",
    f"[ftz] [NaN] {_FLUSHED}",
    f"[ftz] [NaN] xorsign abs {_FLUSHED}",
    "[NaN] bf16|bf16x2",
    "[NaN] xorsign abs bf16|bf16x2",
)
_SIGN = ("s16|s32|s64", _FLOATS, f"[ftz] {_FLUSHED}")
_ROOT = (f"{_DIRECTED} {_WIDE}", f"{_DIRECTED} [ftz] f32", "approx [ftz] f32")
_EXTENDED = ("[cc] u32|s32|u64|s64",)

# Synchronization.

_BARRIERS = ("sync|arrive", "red and|or pred", "red popc u32")
_ARRIVES = (f"[{_SHARED}] b64", f"release|relaxed cta|cluster [{_SHARED}] b64")
_NOT_COMPLETING = (f"noComplete [{_OWN}] b64", f"noComplete release cta [{_OWN}] b64")
_WAITS = (f"[parity] [{_OWN}] b64", f"[parity] acquire|relaxed cta|cluster [{_OWN}] b64")
_TRANSACTIONS = (f"[{_SHARED}] b64", f"relaxed cta|cluster [{_SHARED}] b64")

# Asynchronous copies.

_RANKS, _MODES = "1d|2d|3d|4d|5d", "tile|im2col|tile::gather4|tile::scatter4|im2col_no_offs|im2col::w|im2col::w::128"
_BYTES = "mbarrier::complete_tx::bytes"
_WORD_UPDATES = ("min|max u32|s32", "inc|dec u32", "and|or|xor b32")

FORMS: dict[str, tuple[str, ...]] = {
    "ld": (*_joined(_LOADS, _ELEMENTS), _MMIO),
    "ldu": _joined(["[global]"], (f"[v2] {_ANY}", f"v4 {_WORDS}", "b128")),
    "st": (*_joined(_STORES, _ELEMENTS), _MMIO),
    "atom": (
        *_atomic("relaxed|acquire|release|acq_rel", (*_UPDATES, _EXCHANGE)),
        f"[relaxed|acquire|release|acq_rel] [{_SCOPE}] [global|{_SHARED}] {_SWAP}",
    ),
    "red": _atomic("relaxed|release", _UPDATES),
    "setp": _SETP,
    "set": _SET,
    "selp": (f"{_BITS}|{_INTEGERS}|{_WIDE}",),
    "slct": (f"{_BITS}|{_INTEGERS}|{_WIDE} s32", f"[ftz] {_BITS}|{_INTEGERS}|{_WIDE} f32"),
    "cvt": _CVT,
    "cvt.pack": ("sat u16|s16 s32", "sat u8|s8|u4|s4|u2|s2 s32 b32"),
    "add": (*_SUM, "u16x2|s16x2", "cc u32|s32|u64|s64"),
    "sub": (*_SUM, "cc u32|s32|u64|s64"),
    **dict.fromkeys(("addc", "subc"), _EXTENDED),
    "mul": (
        *_PRODUCTS,
        f"[rn] {_FLOATS}",
        f"[rn] [ftz] [sat] {_FLUSHED}",
        f"[{_DIRECTED}] {_WIDE}",
        f"[{_DIRECTED}] [ftz] [sat] f32",
    ),
    "mad": (*_PRODUCTS, "hi sat s32", *_FUSED, "lo|hi cc u32|s32|u64|s64"),
    "madc": _joined(["lo|hi"], _EXTENDED),
    "fma": (
        *_FUSED,
        "rn [relu] bf16|bf16x2",
        "rn [ftz] [sat] f16|f16x2",
        "rn [ftz] relu f16|f16x2",
    ),
    "div": (_INTEGERS, "approx|full [ftz] f32", f"{_DIRECTED} [ftz] f32", f"{_DIRECTED} f64"),
    "rem": (_INTEGERS,),
    "sad": (_INTEGERS,),
    **dict.fromkeys(("min", "max"), _EXTREME),
    **dict.fromkeys(("abs", "neg"), _SIGN),
    "rcp": (*_ROOT, "approx ftz f64"),
    "sqrt": _ROOT,
    "rsqrt": ("approx [ftz] f32|f64",),
    **dict.fromkeys(("sin", "cos", "lg2"), ("approx [ftz] f32",)),
    "ex2": ("approx [ftz] f32", "approx f16|f16x2", "approx ftz bf16|bf16x2"),
    "tanh": (f"approx f32|{_HALVES}",),
    "copysign": (_WIDE,),
    "testp": (f"finite|infinite|number|notanumber|normal|subnormal {_WIDE}",),
    **dict.fromkeys(("and", "or", "xor", "not"), (f"pred|{_BITS}",)),
    **dict.fromkeys(("cnot", "shl"), (_BITS,)),
    "shr": (f"{_BITS}|{_INTEGERS}",),
    **dict.fromkeys(("popc", "clz", "brev", "bfi"), ("b32|b64",)),
    "bfe": ("u32|s32|u64|s64",),
    "bmsk": ("clamp|wrap b32",),
    "szext": ("clamp|wrap u32|s32",),
    "mul24": ("lo|hi u32|s32",),
    "mad24": ("lo|hi u32|s32", "hi sat s32"),
    "dp4a": ("u32|s32 u32|s32",),
    "dp2a": ("lo|hi u32|s32 u32|s32",),
    "mov": (f"pred|{_BITS}|b128|{_INTEGERS}|{_WIDE}",),
    "bar": _joined(["[cta]"], _BARRIERS),
    "barrier": _joined(["[cta] [aligned]"], _BARRIERS),
    "bar.warp.sync": ("",),
    "barrier.cluster": ("arrive [release|relaxed] [aligned]", "wait [acquire] [aligned]"),
    "membar": ("cta|gl|sys",),
    "fence": (
        f"[sc|acq_rel|acquire|release] {_SCOPE}",
        "acquire sync_restrict::shared::cluster cluster",
        "release sync_restrict::shared::cta cluster",
    ),
    "fence.proxy": (
        "alias",
        "async [global|shared::cta|shared::cluster]",
        f"tensormap::generic acquire|release {_SCOPE}",
        "async::generic acquire sync_restrict::shared::cluster cluster",
        "async::generic release sync_restrict::shared::cta cluster",
    ),
    "fence.mbarrier_init": ("release cluster",),
    **dict.fromkeys(
        ("mbarrier.arrive", "mbarrier.arrive_drop"),
        (*_ARRIVES, *_joined(["expect_tx"], _ARRIVES), *_NOT_COMPLETING),
    ),
    **dict.fromkeys(("mbarrier.test_wait", "mbarrier.try_wait"), _WAITS),
    **dict.fromkeys(("mbarrier.expect_tx", "mbarrier.complete_tx"), _TRANSACTIONS),
    **dict.fromkeys(("mbarrier.init", "mbarrier.inval"), (f"[{_OWN}] b64",)),
    "cp.async": (f"ca|cg {_OWN} global [L2::cache_hint] {_PREFETCH}",),
    "cp.async.bulk": (
        f"shared::cluster global {_BYTES} [multicast::cluster] [L2::cache_hint]",
        f"shared::cta global {_BYTES} [L2::cache_hint]",
        f"shared::cluster shared::cta {_BYTES}",
        "global shared::cta bulk_group [L2::cache_hint]",
    ),
    "cp.async.bulk.tensor": (
        f"{_RANKS} shared::cluster global [{_MODES}] {_BYTES} [multicast::cluster] [L2::cache_hint]",
        f"{_RANKS} shared::cta global [{_MODES}] {_BYTES} [L2::cache_hint]",
        f"{_RANKS} global shared::cta [{_MODES}] bulk_group [L2::cache_hint]",
    ),
    "cp.reduce.async.bulk": (
        *_joined(
            ["global shared::cta bulk_group [L2::cache_hint]"],
            (
                "add u32|s32|u64|f32|f64",
                "add noftz f16|bf16",
                "min|max u32|s32|u64|s64|f16|bf16",
                "inc|dec u32",
                "and|or|xor b32|b64",
            ),
        ),
        *_joined([f"shared::cluster shared::cta {_BYTES}"], ("add u32|s32|u64", *_WORD_UPDATES)),
    ),
    "red.async": _joined([f"relaxed cluster [shared::cluster] {_BYTES}"], ("add u32|s32|u64|s64", *_WORD_UPDATES)),
    "cp.async.mbarrier.arrive": (f"[noinc] [{_OWN}] b64",),
    "shfl.sync": ("up|down|bfly|idx b32",),
    "vote.sync": ("all|any|uni pred", "ballot b32"),
    "match": ("any|all sync b32|b64",),
    "mapa": ("[shared::cluster] u32|s32|u64|s64",),
    "getctarank": ("[shared::cluster] u32|s32|u64|s64",),
    "redux.sync": ("add|min|max u32|s32", "and|or|xor b32"),
}

_L2 = "[L2::evict_last|L2::evict_normal|L2::evict_first]"
_LONG = tuple(f"{_L2} {elements}" for elements in ("v4 b64|u64|s64|f64", f"v8 {_32}"))
# Forms that a target before sm_100 does not have.
FORMS_100: dict[str, tuple[str, ...]] = {
    "ld": _joined(_GLOBAL_LOADS, _LONG),
    "st": _joined(_GLOBAL_STORES, _LONG),
    **dict.fromkeys(("add", "sub", "mul"), (f"[{_DIRECTED}] [ftz] f32x2",)),
    "fma": (f"{_DIRECTED} [ftz] f32x2",),
    "redux.sync": ("min|max [abs] [NaN] f32",),
}
