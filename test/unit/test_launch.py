"""Which image runs where, and what the launcher asks of the driver. A recorded driver stands in for the GPU's."""

import ctypes
import dataclasses
import gc
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import make_descriptor, make_manifest, make_problem
from stepladder.runtime import tensor_map as tma
from stepladder.runtime.bundle import Argument, Bundle, read_bundle, write_bundle
from stepladder.runtime.errors import BAD_INPUT, FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import (
    CudaError,
    Device,
    DeviceExecutor,
    MatmulBuffers,
    device_ordinal,
    image_for,
)
from stepladder.verify.check import check_matmul
from stepladder.verify.inputs import exact_inputs


class Names:
    """An enumeration of the driver's: every attribute is its own name."""

    def __getattr__(self, name):
        return name


class Result(int):
    """A CUresult; failures are given to the fake driver as text instead."""

    CUDA_SUCCESS = 0


class FakeDriver:
    """Answers the driver's calls as a GPU would, with device memory in a dictionary; `errors` makes calls fail."""

    ATTRIBUTES = {
        "COMPUTE_CAPABILITY_MAJOR": 9,
        "COMPUTE_CAPABILITY_MINOR": 0,
        "MULTIPROCESSOR_COUNT": 132,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    }
    CUresult = Result
    CUdevice_attribute = CUfunction_attribute = CUstream_flags = CUstreamCaptureMode = CUlaunchAttributeID = Names()
    CUlaunchConfig = SimpleNamespace

    def __init__(self, errors=None, static_shared_memory=0, cluster=(0, 0, 0), capability=(9, 0)):
        self.errors = errors or {}
        self.static_shared_memory = static_shared_memory
        self.cluster = dict(zip(("WIDTH", "HEIGHT", "DEPTH"), cluster))
        self.ATTRIBUTES = self.ATTRIBUTES | dict(
            zip(("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR"), capability)
        )
        self.calls = []
        self.encoded = []
        self._encode_tiled = tma.ENCODE_TILED(self.encode_tiled)
        self.results = {
            "cuDeviceGetCount": lambda: 1,
            "cuDeviceGet": lambda ordinal: ordinal,
            "cuDeviceGetName": lambda length, device: b"Fake H200\0\0",
            "cuDeviceGetAttribute": lambda name, device: self.ATTRIBUTES[name.removeprefix("CU_DEVICE_ATTRIBUTE_")],
            "cuStreamCreate": lambda flags: 77,
            "cuModuleLoadData": lambda address: 5,
            "cuModuleGetFunction": lambda module, name: 6,
            "cuFuncGetAttribute": self.function_attribute,
            "cuOccupancyMaxActiveClusters": lambda function, config: 66,
            "cuGetProcAddress": lambda name, version, flags: ctypes.cast(self._encode_tiled, ctypes.c_void_p).value,
            "cuMemAlloc": lambda size: 4096,
            "cuGetErrorName": lambda error: str(error).encode(),
            "cuGetErrorString": lambda error: b"it went wrong",
        }

    def CUlaunchAttribute(self):
        return SimpleNamespace(value=SimpleNamespace())

    def function_attribute(self, name, function):
        if "CLUSTER" in name:
            return self.cluster[name.rpartition("_")[2]]
        return self.static_shared_memory if "SHARED" in name else 40

    def encode_tiled(self, tensor_map, kind, rank, address, shape, strides, box, steps, *modes):
        """cuTensorMapEncodeTiled as C calls it; marks the bytes that it should write, and no others."""
        self.encoded.append(
            {
                "kind": kind,
                "address": address,
                "shape": shape[:rank],
                "strides": strides[: rank - 1],
                "box": box[:rank],
                "steps": steps[:rank],
                "modes": list(modes),
                "map": tensor_map,
            }
        )
        ctypes.memset(tensor_map, len(self.encoded), 128)
        return next(iter(self.errors.get("cuTensorMapEncodeTiled", [])), 0)

    def __getattr__(self, function):
        if not function.startswith("cu"):
            raise AttributeError(function)

        def call(*arguments):
            self.calls.append((function, *arguments))
            failures = self.errors.get(function, [])
            if failures and (error := failures.pop(0)):
                return (error,)
            return (0, *([self.results[function](*arguments)] if function in self.results else []))

        return call

    def called(self, function):
        return [arguments for name, *arguments in self.calls if name == function]


@pytest.fixture
def bundle(tmp_path):
    def make(**changes):
        write_bundle(tmp_path / "matmul.bundle", make_manifest(**changes), b"cubin", "ptx", {})
        return read_bundle(tmp_path / "matmul.bundle")

    return make


@pytest.fixture
def unread_bundle(tmp_path):
    """Bundles that were never on disk: of what reading refuses, launching refuses what the GPU cannot do."""

    def make(**changes):
        return Bundle(tmp_path / "matmul.bundle", make_manifest(**changes), b"cubin", "ptx")

    return make


@pytest.mark.parametrize(
    "target, capability, image",
    [
        ("sm_80", (8, 0), "cubin"),
        ("sm_80", (8, 6), "cubin"),
        ("sm_86", (8, 9), "cubin"),
        ("sm_80", (9, 0), "ptx"),
        ("sm_89", (9, 0), "ptx"),
        ("sm_75", (12, 0), "ptx"),
        ("sm_90a", (9, 0), "cubin"),
        ("sm_120", (12, 1), "cubin"),
    ],
)
def test_image_for(target, capability, image):
    assert image_for(target, capability, "card") == image


@pytest.mark.parametrize(
    "target, capability",
    [
        ("sm_90a", (10, 0)),
        ("sm_90a", (8, 0)),
        ("sm_90", (8, 9)),
        ("sm_86", (8, 0)),
        ("sm_120", (10, 0)),
    ],
)
def test_wrong_gpu(target, capability):
    with pytest.raises(StepladderError, match="nothing was executed") as caught:
        image_for(target, capability, "card X")
    assert caught.value.status == NOT_EXECUTED
    assert target in caught.value.message and "card X" in caught.value.message


@pytest.mark.parametrize("target", ["gfx90a", "sm_9", "sm_90x", "90"])
def test_target_that_is_none(target):
    with pytest.raises(StepladderError, match="not of the form") as caught:
        image_for(target, (9, 0), "card")
    assert caught.value.status == BAD_INPUT


def test_device_variable(monkeypatch):
    monkeypatch.setenv("STEPLADDER_DEVICE", "2")
    assert device_ordinal() == 2
    with pytest.raises(StepladderError, match="there is no GPU 2: the driver shows 1; nothing was executed") as caught:
        Device(driver=FakeDriver())
    assert caught.value.status == NOT_EXECUTED
    monkeypatch.setenv("STEPLADDER_DEVICE", "first")
    with pytest.raises(StepladderError, match="STEPLADDER_DEVICE must be the ordinal of a GPU"):
        device_ordinal()


def test_no_gpu():
    message = "no usable NVIDIA GPU.*CUDA_ERROR_NO_DEVICE.*nothing was executed"
    with pytest.raises(StepladderError, match=message) as caught:
        Device(driver=FakeDriver({"cuInit": ["CUDA_ERROR_NO_DEVICE"]}))
    assert caught.value.status == NOT_EXECUTED


def test_cubin_that_runs(bundle, capsys):
    device = Device(driver=FakeDriver())
    assert device.load(bundle(target="sm_90a")).source == "cubin"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("refusal", ["CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU"])
def test_falls_back_to_ptx_and_says_so(bundle, capsys, refusal):
    device = Device(driver=FakeDriver({"cuModuleLoadData": [refusal]}))
    assert device.load(bundle(target="sm_90a")).source == "ptx"
    note = f"does not take the cubin ({refusal}); the driver compiles the bundle's PTX instead"
    assert note in capsys.readouterr().err


def test_goes_straight_to_ptx_on_a_later_gpu(bundle, capsys):
    driver = FakeDriver()
    assert Device(driver=driver).load(bundle(target="sm_80")).source == "ptx"
    assert len(driver.called("cuModuleLoadData")) == 1
    assert "the cubin is for sm_80, and Fake H200 is 9.0" in capsys.readouterr().err


def test_neither_image_loads(bundle):
    errors = ["CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"]
    device = Device(driver=FakeDriver({"cuModuleLoadData": errors}))
    with pytest.raises(StepladderError, match="refuses the PTX too .CUDA_ERROR_UNSUPPORTED_PTX_VERSION") as caught:
        device.load(bundle(target="sm_90a"))
    assert caught.value.status == NOT_EXECUTED


def test_other_load_errors_are_not_hidden_by_the_fallback(bundle):
    device = Device(driver=FakeDriver({"cuModuleLoadData": ["CUDA_ERROR_OUT_OF_MEMORY"]}))
    with pytest.raises(CudaError, match="cuModuleLoadData failed: CUDA_ERROR_OUT_OF_MEMORY .it went wrong."):
        device.load(bundle(target="sm_90a"))


@pytest.mark.parametrize(
    "static, dynamic, asked",
    [(0, 48 * 1024, False), (1024, 47 * 1024, False), (1024, 48 * 1024, True), (0, 100_000, True)],
)
def test_opts_in_to_large_shared_memory(bundle, static, dynamic, asked):
    driver = FakeDriver(static_shared_memory=static)
    Device(driver=driver).load(bundle(target="sm_90a", static_shared_memory=static, dynamic_shared_memory=dynamic))
    wanted = ["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic]
    assert [arguments[1:] for arguments in driver.called("cuFuncSetAttribute")] == ([wanted] if asked else [])


def test_more_shared_memory_than_the_gpu_has(unread_bundle):
    device = Device(driver=FakeDriver())
    message = "needs 232449 bytes of shared memory.*Fake H200 has at most 232448"
    with pytest.raises(StepladderError, match=message) as caught:
        device.load(unread_bundle(target="sm_90a", static_shared_memory=1, dynamic_shared_memory=232448))
    assert caught.value.status == NOT_EXECUTED


def tma_changes(problem=None, **fields):
    """Changes to a manifest: A and B through descriptors, C by a pointer between them."""
    problem = problem or make_problem()
    arguments = (
        Argument("B", "b", problem.b_type, problem.b_shape, "read", descriptor=1),
        Argument("C", "c", problem.c_type, (problem.m, problem.n), "readwrite"),
        Argument("A", "a", problem.a_type, problem.a_shape, "read", descriptor=0),
    )
    return dict(
        target="sm_90a",
        arguments=arguments,
        tma_descriptors=(
            make_descriptor("a", problem.a_shape, problem.a_type, **fields),
            make_descriptor("b", problem.b_shape, problem.b_type, **fields),
        ),
    )


@pytest.mark.parametrize(
    "changes, feature",
    [
        (tma_changes(), "TMA descriptors"),
        ({"cluster": (2, 1, 1), "grid": (2, 1, 1)}, "thread-block clusters"),
        ({"dependent_launch": True}, "dependent launches"),
    ],
)
def test_what_only_hopper_has(unread_bundle, changes, feature):
    read = unread_bundle(**changes | {"target": "sm_80"})
    with pytest.raises(StepladderError) as caught:
        Device(driver=FakeDriver(capability=(8, 9))).load(read)
    assert caught.value.message == (
        f"'{read.path}' needs {feature}, which GPUs of compute capability 9.0 and later "
        "have, and Fake H200 is 8.9; nothing was executed"
    )
    assert caught.value.status == NOT_EXECUTED


def test_pointers_and_descriptors_mix(bundle):
    """The driver gets an address for each parameter: of 8 bytes for a pointer, of 128 aligned ones for a descriptor."""
    driver = FakeDriver()
    addresses = iter([0x1000, 0x2000, 0x3000])
    driver.results["cuMemAlloc"] = lambda size: next(addresses)
    launched = []

    def launch(*arguments):
        b, c, a = (ctypes.c_uint64 * 3).from_address(arguments[9])
        launched.append((ctypes.string_at(a, 128), ctypes.string_at(b, 128), ctypes.c_uint64.from_address(c).value))
        assert a % 64 == b % 64 == 0

    driver.results["cuLaunchKernel"] = launch
    device = Device(driver=driver)
    problem = make_problem(64, 192, 128)
    read = bundle(problem=problem, **tma_changes(problem, swizzle="128b", l2_promotion="256b"))
    enqueue = MatmulBuffers(device, problem).launcher(device.load(read), read)
    enqueue()
    enqueue()
    # B comes first in the kernel's list, so that its descriptor is encoded first.
    assert launched == [(b"\2" * 128, b"\1" * 128, 0x3000)] * 2
    assert [(made["address"], made["shape"], made["strides"]) for made in driver.encoded] == [
        (0x2000, [192, 128], [384]),
        (0x1000, [128, 64], [256]),
    ]
    assert driver.called("cuGetProcAddress") == [[b"cuTensorMapEncodeTiled", 12000, 0]] * 2
    # The driver reads the host's copies at every launch.
    kept = {item.address for item in gc.get_objects() if isinstance(item, tma.TensorMap)}
    assert {made["map"] for made in driver.encoded} <= kept


@pytest.mark.parametrize(
    "element, kind", [("f16", 6), ("bf16", 9), ("f32", 7), ("i32", 3), ("i8", 0), ("f8E4M3FN", 0), ("f8E5M2", 0)]
)
def test_encoded_parameters(element, kind):
    """All lists innermost first, strides in bytes, modes by the driver's numbers (those of cuda.h)."""
    driver = FakeDriver()
    device = Device(driver=driver)
    size = 4 if element.endswith("32") else 2 if element.endswith("16") else 1
    buffer = device.allocate(3 * 5 * 64 * size)
    made = tma.encode(
        device,
        make_descriptor(
            "a",
            (3, 5, 64),
            element,
            box=(1, 4, 32 // size),
            interleave="16b",
            swizzle="64b",
            l2_promotion="128b",
            oob_fill="nan",
        ),
        buffer,
    )
    encoded = driver.encoded[0]
    assert encoded.pop("kind") == kind
    assert made.address % 128 == 0
    assert encoded == {
        "address": 4096,
        "shape": [64, 5, 3],
        "strides": [64 * size, 5 * 64 * size],
        "box": [32 // size, 4, 1],
        "steps": [1, 1, 1],
        "modes": [1, 2, 2, 1],
        "map": made.address,
    }


def test_numbers_of_the_driver():
    real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    kinds = {
        "i8": "UINT8",
        "f8E4M3FN": "UINT8",
        "f8E5M2": "UINT8",
        "i32": "INT32",
        "f16": "FLOAT16",
        "f32": "FLOAT32",
        "bf16": "BFLOAT16",
    }
    fills = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}
    for table, kind, prefix, spell in (
        (tma.DATA_TYPES, "CUtensorMapDataType", "DATA_TYPE", kinds.get),
        (tma.INTERLEAVES, "CUtensorMapInterleave", "INTERLEAVE", str.upper),
        (tma.SWIZZLES, "CUtensorMapSwizzle", "SWIZZLE", str.upper),
        (
            tma.L2_PROMOTIONS,
            "CUtensorMapL2promotion",
            "L2_PROMOTION",
            lambda name: "NONE" if name == "none" else f"L2_{name.upper()}",
        ),
        (tma.OOB_FILLS, "CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL", fills.get),
    ):
        for name, number in table.items():
            assert number == int(getattr(getattr(real, kind), f"CU_TENSOR_MAP_{prefix}_{spell(name)}"))


@pytest.mark.parametrize(
    "fields, address, message",
    [
        (
            {"element_type": "f64"},
            4096,
            "element type 'f64' is none of TMA's: i8, f8E4M3FN, f8E5M2, i32, f16, f32, bf16",
        ),
        ({}, 4104, "the buffer's address 0x1008 is not a multiple of 16"),
        ({"shape": (64, 2**32 + 1)}, 4096, "shape [64, 4294967297] has an extent above 2^32"),
        ({"strides": (136,)}, 4096, "strides [136] must be multiples of 16 bytes below 2^40"),
        ({"strides": (2**40,)}, 4096, "strides [1099511627776] must be multiples of 16 bytes below 2^40"),
        ({"box": (257, 64)}, 4096, "box [257, 64] has an extent above 256"),
        ({"box": (64, 4)}, 4096, "the innermost extent of box [64, 4] is 8 bytes, which is not a multiple of 16"),
        (
            {"swizzle": "64b", "box": (64, 40)},
            4096,
            "the innermost extent of box [64, 40] is 80 bytes, more than the 64 of swizzle 64b",
        ),
        ({"shape": (65, 64)}, 4096, "its tensor ends at byte 8320, and the buffer has 8192"),
        ({"strides": (144,)}, 4096, "its tensor ends at byte 9200, and the buffer has 8192"),
    ],
)
def test_descriptors_that_cannot_be_encoded(fields, address, message):
    driver = FakeDriver()
    driver.results["cuMemAlloc"] = lambda size: address
    device = Device(driver=driver)
    descriptor = dataclasses.replace(make_descriptor("b", (64, 64)), **fields)
    with pytest.raises(StepladderError) as caught:
        tma.encode(device, descriptor, device.allocate(64 * 64 * 2))
    assert caught.value.message == f"the TMA descriptor of B cannot be encoded: {message}; nothing was executed"
    assert driver.encoded == []


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": (1, 64), "strides": (128,)},
        {"box": (256, 64)},
        {"box": (64, 256)},
        {"swizzle": "128b", "box": (64, 64)},
        {"shape": (32, 32)},
    ],
)
def test_descriptors_at_the_limits(fields):
    driver = FakeDriver()
    device = Device(driver=driver)
    tma.encode(device, dataclasses.replace(make_descriptor("b", (64, 64)), **fields), device.allocate(64 * 64 * 2))
    assert len(driver.encoded) == 1


def test_descriptor_that_the_driver_refuses():
    device = Device(driver=FakeDriver({"cuTensorMapEncodeTiled": [1]}))
    with pytest.raises(CudaError, match="cuTensorMapEncodeTiled for .*box=.64, 64.*failed: 1 .it went wrong."):
        tma.encode(device, make_descriptor("a", (64, 64)), device.allocate(8192))


def test_driver_without_descriptors():
    driver = FakeDriver()
    driver.results["cuGetProcAddress"] = lambda *arguments: 0
    device = Device(driver=driver)
    with pytest.raises(StepladderError, match="the driver has no TMA descriptors") as caught:
        tma.encode(device, make_descriptor("a", (64, 64)), device.allocate(8192))
    assert caught.value.status == NOT_EXECUTED


def test_clusters_are_those_compiled_in(bundle):
    """They need nothing at launch; the driver is only asked whether one fits, without extents of its own."""
    driver = FakeDriver(cluster=(2, 1, 1))
    device = Device(driver=driver)
    read = bundle(target="sm_90a", cluster=(2, 1, 1), grid=(6, 4, 1), block=(384, 1, 1), dynamic_shared_memory=200_000)
    MatmulBuffers(device, read.manifest.problem).launcher(device.load(read), read)()
    [[function, config]] = driver.called("cuOccupancyMaxActiveClusters")
    assert function == 6
    assert vars(config) == {
        "gridDimX": 6,
        "gridDimY": 4,
        "gridDimZ": 1,
        "blockDimX": 384,
        "blockDimY": 1,
        "blockDimZ": 1,
        "sharedMemBytes": 200_000,
        "hStream": 77,
    }
    # Shared memory beyond the default is opted in to before that question, or none would fit.
    names = [name for name, *_ in driver.calls]
    assert names.index("cuFuncSetAttribute") < names.index("cuOccupancyMaxActiveClusters")
    assert [arguments[1:] for arguments in driver.called("cuFuncSetAttribute")] == [
        ["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 200_000]
    ]
    assert driver.called("cuLaunchKernel")[0][1:9] == [6, 4, 1, 384, 1, 1, 200_000, 77]


@pytest.mark.parametrize("cluster, opts_in", [((4, 2, 1), False), ((3, 3, 1), True), ((16, 1, 1), True)])
def test_large_clusters_are_opted_in_to(bundle, cluster, opts_in):
    driver = FakeDriver(cluster=cluster)
    Device(driver=driver).load(bundle(target="sm_90a", cluster=cluster, grid=cluster))
    wanted = [["CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1]]
    assert [arguments[1:] for arguments in driver.called("cuFuncSetAttribute")] == (wanted if opts_in else [])


@pytest.mark.parametrize("cluster, grid", [((2, 1, 1), (3, 4, 1)), ((1, 2, 1), (4, 3, 1)), ((1, 1, 2), (2, 2, 1))])
def test_grid_that_is_no_multiple_of_the_cluster(unread_bundle, cluster, grid):
    text = " x ".join(map(str, grid)), " x ".join(map(str, cluster))
    message = f"has a grid of {text[0]} blocks, which is not a multiple of its cluster of {text[1]}; nothing was"
    with pytest.raises(StepladderError, match=message) as caught:
        Device(driver=FakeDriver(cluster=cluster)).load(unread_bundle(target="sm_90a", cluster=cluster, grid=grid))
    assert caught.value.status == NOT_EXECUTED


@pytest.mark.parametrize("compiled", [(0, 0, 0), (1, 2, 1)])
def test_kernel_compiled_for_another_cluster(bundle, compiled):
    text = " x ".join(map(str, compiled))
    message = f"kernel 'matmul' is compiled for clusters of {text} blocks, and the manifest has 2 x 1 x 1; nothing was"
    with pytest.raises(StepladderError, match=message) as caught:
        Device(driver=FakeDriver(cluster=compiled)).load(bundle(target="sm_90a", cluster=(2, 1, 1), grid=(2, 1, 1)))
    assert caught.value.status == NOT_EXECUTED


def test_cluster_that_does_not_fit(bundle):
    driver = FakeDriver(cluster=(16, 1, 1))
    driver.results["cuOccupancyMaxActiveClusters"] = lambda *arguments: 0
    message = "not one cluster of 16 x 1 x 1 blocks, with 200001 bytes of shared memory a block, fits on Fake H200"
    with pytest.raises(StepladderError, match=message) as caught:
        Device(driver=driver).load(
            bundle(
                target="sm_90a",
                cluster=(16, 1, 1),
                grid=(16, 1, 1),
                static_shared_memory=1,
                dynamic_shared_memory=200_000,
            )
        )
    assert caught.value.status == NOT_EXECUTED


def test_dependent_launch(bundle):
    """The attribute goes with every launch, in a capture as outside of one."""
    driver = FakeDriver()
    launched = []

    def launch(config, function, parameters, extra):
        pointers = (ctypes.c_uint64 * 3).from_address(parameters)
        launched.append([ctypes.c_uint64.from_address(pointer).value for pointer in pointers])
        (attribute,) = config.attrs
        assert config.numAttrs == 1
        assert attribute.id == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
        assert attribute.value.programmaticStreamSerializationAllowed == 1
        assert (function, extra, config.hStream, config.sharedMemBytes) == (6, 0, 77, 1024)
        assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (3, 4, 1)
        assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (128, 2, 1)

    driver.results["cuLaunchKernelEx"] = launch
    device = Device(driver=driver)
    read = bundle(target="sm_90a", grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024, dependent_launch=True)
    enqueue = MatmulBuffers(device, read.manifest.problem).launcher(device.load(read), read)
    enqueue()
    driver.results["cuStreamEndCapture"] = driver.results["cuGraphInstantiate"] = lambda *arguments: 1
    device.capture(enqueue, 3)
    assert launched == [[4096] * 3] * 4
    assert driver.called("cuLaunchKernel") == []


def test_parameters_in_the_kernels_order(bundle):
    driver = FakeDriver()
    addresses = iter([0x1000, 0x2000, 0x3000])
    driver.results["cuMemAlloc"] = lambda size: next(addresses)
    launched = []

    def launch(*arguments):
        pointers = (ctypes.c_uint64 * 3).from_address(arguments[9])
        launched.append([ctypes.c_uint64.from_address(pointer).value for pointer in pointers])

    driver.results["cuLaunchKernel"] = launch
    device = Device(driver=driver)
    read = bundle(target="sm_90a", grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024)
    MatmulBuffers(device, read.manifest.problem).launcher(device.load(read), read)()
    assert launched == [[0x3000, 0x1000, 0x2000]]  # the manifest's order is C, A, B
    assert driver.called("cuLaunchKernel")[0][1:9] == [3, 4, 1, 128, 2, 1, 1024, 77]


def test_failed_kernel_is_a_failure(bundle):
    device = Device(driver=FakeDriver({"cuCtxSynchronize": ["CUDA_ERROR_ILLEGAL_ADDRESS"]}))
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        device.synchronize()
    assert caught.value.status == FAILED


def test_capture_ends_when_enqueueing_fails():
    driver = FakeDriver()

    def fail():
        raise CudaError("cuLaunchKernel", "CUDA_ERROR_INVALID_VALUE", "")

    with pytest.raises(CudaError):
        Device(driver=driver).capture(fail, 3)
    assert len(driver.called("cuStreamEndCapture")) == 1


def test_calls_fit_cuda_python(bundle):
    """Every call made above has the number of arguments that the real module takes."""
    import inspect

    real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    driver = FakeDriver(cluster=(2, 1, 1))
    driver.results |= {
        name: lambda *arguments: 1
        for name in (
            "cuEventCreate",
            "cuEventElapsedTime",
            "cuStreamEndCapture",
            "cuGraphInstantiate",
            "cuDriverGetVersion",
            "cuDeviceTotalMem",
            "cuDevicePrimaryCtxRetain",
        )
    }
    driver.ATTRIBUTES |= {"CLOCK_RATE": 1, "MEMORY_CLOCK_RATE": 1, "L2_CACHE_SIZE": 1}
    read = bundle(dynamic_shared_memory=100_000, cluster=(2, 1, 1), grid=(2, 1, 1), **tma_changes())
    dependent = dataclasses.replace(read.manifest, dependent_launch=True)
    with Device(driver=driver) as device, MatmulBuffers(device, read.manifest.problem) as buffers:
        device.describe()
        enqueue = buffers.launcher(device.load(read), read)
        driver.results["cuMemcpyDtoH"] = driver.results["cuMemcpyHtoD"] = lambda *arguments: None
        executor = DeviceExecutor(buffers, enqueue)
        executor.load(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16))
        executor.launch(np.zeros((64, 64), np.float32))
        buffers.launcher(device.load(read), dataclasses.replace(read, manifest=dependent))()
        buffers.c.copy_from(buffers.c)
        graph = device.capture(enqueue, 2)
        device.elapsed_ms(device.record_event(), device.record_event())
        graph.replay()
        graph.free()
    assert len({name for name, *_ in driver.calls}) > 25
    for name, *arguments in driver.calls:
        inspect.signature(getattr(real, name)).bind(*arguments)
    for name in ("COMPUTE_CAPABILITY_MAJOR", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", *driver.ATTRIBUTES):
        assert hasattr(real.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    for name in {arguments[0] for arguments in driver.called("cuFuncGetAttribute")}:
        assert hasattr(real.CUfunction_attribute, name)


def test_launch_configuration_fits_cuda_python(bundle):
    """Its structures take what is put into them."""
    real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    driver = FakeDriver()
    driver.CUlaunchConfig, driver.CUlaunchAttribute = real.CUlaunchConfig, real.CUlaunchAttribute
    driver.CUlaunchAttributeID = real.CUlaunchAttributeID
    driver.results["cuStreamCreate"] = lambda flags: real.CUstream(77)
    device = Device(driver=driver)
    read = bundle(target="sm_90a", grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024, dependent_launch=True)
    MatmulBuffers(device, read.manifest.problem).launcher(device.load(read), read)()
    config = driver.called("cuLaunchKernelEx")[0][0]
    assert (config.gridDimX, config.gridDimY, config.blockDimX, config.sharedMemBytes) == (3, 4, 128, 1024)
    assert int(config.hStream) == 77
    (attribute,) = config.attrs
    assert attribute.id == real.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert attribute.value.programmaticStreamSerializationAllowed == 1


@pytest.mark.gpu
@pytest.mark.parametrize("accumulate", [False, True])
def test_on_a_gpu(tmp_path, accumulate):
    from naive_matmul import write_naive_bundle

    problem = make_problem(96, 128, 80, accumulate=accumulate)
    for products, right in ((80, True), (79, False)):
        write_naive_bundle(tmp_path / "naive", problem, products)
        read = read_bundle(tmp_path / "naive")
        with Device() as device, MatmulBuffers(device, problem) as buffers:
            kernel = device.load(read)
            assert kernel.source == "ptx"
            reports = check_matmul(
                problem, read.expected(), DeviceExecutor(buffers, buffers.launcher(kernel, read)), seed=1
            )
        assert [report.passed for report in reports] == [right, right, True], [r.describe() for r in reports]


@pytest.mark.gpu
def test_hopper_features_on_a_gpu(tmp_path):
    """A descriptor among pointers, clusters and dependent launches; then launches that wait for one another."""
    from naive_matmul import hopper_bundle

    problem = make_problem(96, 128, 80)
    read = hopper_bundle(tmp_path, problem)
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        if device.capability < (9, 0):
            pytest.skip("TMA needs compute capability 9.0")
        with pytest.raises(StepladderError, match="for clusters of 2 x 1 x 1 blocks, and the manifest has 1 x 2 x 1"):
            device.load(hopper_bundle(tmp_path, problem, cluster=(1, 2, 1)))
        enqueue = buffers.launcher(device.load(read), read)
        for report in check_matmul(problem, read.expected(), DeviceExecutor(buffers, enqueue), seed=1):
            assert report.passed, report.describe()
        a, b, c = exact_inputs(problem, 1)
        buffers.a.upload(a)
        buffers.b.upload(b)
        buffers.c.upload(c)
        graph = device.capture(enqueue, 20)
        graph.replay()
        graph.replay()
        got = buffers.c.download(c.shape, c.dtype)
        graph.free()
    assert np.array_equal(got, c + 40 * (a.astype(np.float32) @ b.astype(np.float32)))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "acc_type, compute_type", [("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("i32", "i8")]
)
def test_ceiling_on_a_gpu(acc_type, compute_type):
    from stepladder.measure.ceiling import measure_ceiling

    with Device() as device:
        if device.capability < (8, 0):
            pytest.skip("mma.sync.m16n8k16 needs compute capability 8.0")
        ceiling = measure_ceiling(device, acc_type, compute_type)
    assert sorted(ceiling.tflops_by_warps) == [4, 8, 16]
    assert ceiling.tflops == max(ceiling.tflops_by_warps.values()) > 10
