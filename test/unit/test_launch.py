"""Which image runs where, and what the launcher asks of the driver. A recorded driver stands in for the GPU's."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import make_manifest, make_problem
from stepladder.bundle import read_bundle, write_bundle
from stepladder.check import check_matmul
from stepladder.errors import BAD_INPUT, FAILED, NOT_EXECUTED, StepladderError
from stepladder.launch import CudaError, Device, DeviceExecutor, MatmulBuffers, device_ordinal, image_for


class Names:
    """An enumeration of the driver's: every attribute is its own name."""

    def __getattr__(self, name):
        return name


class FakeDriver:
    """Answers the driver's calls as a GPU would, with device memory in a dictionary; `errors` makes calls fail."""

    ATTRIBUTES = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132,
                  "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448}
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUdevice_attribute = CUfunction_attribute = CUstream_flags = CUstreamCaptureMode = Names()

    def __init__(self, errors=None, static_shared_memory=0):
        self.errors = errors or {}
        self.static_shared_memory = static_shared_memory
        self.calls = []
        self.results = {
            "cuDeviceGetCount": lambda: 1,
            "cuDeviceGet": lambda ordinal: ordinal,
            "cuDeviceGetName": lambda length, device: b"Fake H200\0\0",
            "cuDeviceGetAttribute": lambda name, device: self.ATTRIBUTES[name.removeprefix("CU_DEVICE_ATTRIBUTE_")],
            "cuStreamCreate": lambda flags: 77,
            "cuModuleLoadData": lambda address: 5,
            "cuModuleGetFunction": lambda module, name: 6,
            "cuFuncGetAttribute": lambda name, function: self.static_shared_memory if "SHARED" in name else 40,
            "cuMemAlloc": lambda size: 4096,
            "cuGetErrorName": lambda error: error.encode(),
            "cuGetErrorString": lambda error: b"it went wrong",
        }

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


@pytest.mark.parametrize("target, capability, image", [
    ("sm_80", (8, 0), "cubin"), ("sm_80", (8, 6), "cubin"), ("sm_86", (8, 9), "cubin"), ("sm_80", (9, 0), "ptx"),
    ("sm_89", (9, 0), "ptx"), ("sm_75", (12, 0), "ptx"), ("sm_90a", (9, 0), "cubin"), ("sm_120", (12, 1), "cubin"),
])
def test_image_for(target, capability, image):
    assert image_for(target, capability, "card") == image


@pytest.mark.parametrize("target, capability", [
    ("sm_90a", (10, 0)), ("sm_90a", (8, 0)), ("sm_90", (8, 9)), ("sm_86", (8, 0)), ("sm_120", (10, 0)),
])
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


@pytest.mark.parametrize("static, dynamic, asked", [(0, 48 * 1024, False), (1024, 47 * 1024, False),
                                                    (1024, 48 * 1024, True), (0, 100_000, True)])
def test_opts_in_to_large_shared_memory(bundle, static, dynamic, asked):
    driver = FakeDriver(static_shared_memory=static)
    Device(driver=driver).load(bundle(target="sm_90a", static_shared_memory=static, dynamic_shared_memory=dynamic))
    wanted = ["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic]
    assert [arguments[1:] for arguments in driver.called("cuFuncSetAttribute")] == ([wanted] if asked else [])


def test_more_shared_memory_than_the_gpu_has(bundle):
    device = Device(driver=FakeDriver())
    message = "needs 232449 bytes of shared memory.*Fake H200 has at most 232448"
    with pytest.raises(StepladderError, match=message) as caught:
        device.load(bundle(target="sm_90a", static_shared_memory=1, dynamic_shared_memory=232448))
    assert caught.value.status == NOT_EXECUTED


@pytest.mark.parametrize("changes", [{"cluster": (2, 1, 1)}, {"tma_descriptors": ({"rank": 2},)}])
def test_what_the_launcher_lacks(bundle, changes):
    with pytest.raises(StepladderError, match="TMA descriptors or thread-block clusters"):
        Device(driver=FakeDriver()).load(bundle(target="sm_90a", **changes))


def test_parameters_in_the_kernels_order(bundle):
    driver = FakeDriver()
    addresses = iter([0x1000, 0x2000, 0x3000])
    driver.results["cuMemAlloc"] = lambda size: next(addresses)
    launched = []

    def launch(*arguments):
        pointers = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint64 * 3).from_address(arguments[9]))
        launched.append([np.ctypeslib.ctypes.c_uint64.from_address(int(pointer)).value for pointer in pointers])

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
    driver = FakeDriver()
    driver.results |= {name: lambda *arguments: 1 for name in (
        "cuEventCreate", "cuEventElapsedTime", "cuStreamEndCapture", "cuGraphInstantiate", "cuDriverGetVersion",
        "cuDeviceTotalMem", "cuDevicePrimaryCtxRetain")}
    driver.ATTRIBUTES = FakeDriver.ATTRIBUTES | {"CLOCK_RATE": 1, "MEMORY_CLOCK_RATE": 1, "L2_CACHE_SIZE": 1}
    read = bundle(target="sm_90a", dynamic_shared_memory=100_000)
    with Device(driver=driver) as device, MatmulBuffers(device, read.manifest.problem) as buffers:
        device.describe()
        enqueue = buffers.launcher(device.load(read), read)
        driver.results["cuMemcpyDtoH"] = driver.results["cuMemcpyHtoD"] = lambda *arguments: None
        executor = DeviceExecutor(buffers, enqueue)
        executor.load(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16))
        executor.launch(np.zeros((64, 64), np.float32))
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
            reports = check_matmul(problem, DeviceExecutor(buffers, buffers.launcher(kernel, read)), seed=1)
        assert [report.passed for report in reports] == [right, right, True], [r.describe() for r in reports]


@pytest.mark.gpu
@pytest.mark.parametrize("acc_type, compute_type", [("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32"),
                                                    ("i32", "i8")])
def test_ceiling_on_a_gpu(acc_type, compute_type):
    from stepladder.ceiling import measure_ceiling

    with Device() as device:
        if device.capability < (8, 0):
            pytest.skip("mma.sync.m16n8k16 needs compute capability 8.0")
        ceiling = measure_ceiling(device, acc_type, compute_type)
    assert sorted(ceiling.tflops_by_warps) == [4, 8, 16]
    assert ceiling.tflops == max(ceiling.tflops_by_warps.values()) > 10
