"""What the runtime calls exists in cuda.core and cuda.bindings, with these parameters. Needs no GPU."""

import inspect
import sys
from pathlib import Path

import pytest

from conftest import make_descriptor, make_manifest, make_problem
from fake_cuda import FakeGpu
from stepladder.runtime.bundle import Argument, Bundle
from stepladder.runtime.device import Device
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers

core = pytest.importorskip("cuda.core", reason="cuda-core is not installed")
driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")


@pytest.mark.parametrize(
    "owner, names",
    [
        (core.Device, "name compute_capability properties set_current create_stream allocate sync"),
        (core.Stream, "handle record create_graph_builder sync close"),
        (core.Buffer, "handle copy_from close"),
        (core.Kernel, "handle attributes occupancy"),
        (core.ObjectCode, "from_cubin from_ptx get_kernel"),
        (core.graph.GraphBuilder, "begin_building end_building complete close"),
        (core.graph.Graph, "launch close"),
        (
            sys.modules[core.Kernel.__module__].KernelAttributes,
            "num_regs local_size_bytes shared_size_bytes required_cluster_width required_cluster_height "
            "required_cluster_depth",
        ),
        (sys.modules[core.Kernel.__module__].KernelOccupancy, "max_active_clusters"),
        (
            sys.modules[core.Device.__module__].DeviceProperties,
            "multiprocessor_count max_shared_memory_per_block_optin clock_rate memory_clock_rate l2_cache_size",
        ),
    ],
)
def test_names_of_cuda_core(owner: type, names: str) -> None:
    assert [name for name in names.split() if not hasattr(owner, name)] == []


def test_options_of_cuda_core() -> None:
    config = core.LaunchConfig(
        grid=(3, 4, 1), block=(128, 2, 1), shmem_size=1024, programmatic_stream_serialization=True
    )
    assert (config.grid, config.block, config.cluster) == ((3, 4, 1), (128, 2, 1), None)
    assert config.shmem_size == 1024 and config.programmatic_stream_serialization
    assert core.EventOptions(timing_enabled=True).timing_enabled
    assert core.StreamOptions(nonblocking=True).nonblocking
    assert core.graph.GraphCompleteOptions(upload_stream=None).upload_stream is None
    inspect.signature(core.launch).bind("stream", config, "kernel", 1, 2, 3)


def tma_bundle(path: Path, **changes: int | bool | tuple[int, int, int]) -> Bundle:
    problem = make_problem()
    arguments = (
        Argument("A", "a", "f16", (64, 64), "read", descriptor=0),
        Argument("B", "b", "f16", (64, 64), "read"),
        Argument("C", "c", "f32", (64, 64), "readwrite"),
    )
    descriptors = (make_descriptor("a", (64, 64)),)
    manifest = make_manifest(problem, target="sm_90a", arguments=arguments, tma_descriptors=descriptors, **changes)
    return Bundle(path, manifest, b"cubin", "ptx")


def test_calls_fit_the_bindings(tmp_path: Path) -> None:
    """Every function of the driver that the runtime calls takes that many arguments."""
    gpu = FakeGpu(cluster=(16, 1, 1))
    read = tma_bundle(tmp_path, dynamic_shared_memory=100_000, cluster=(16, 1, 1), grid=(16, 1, 1))
    with Device(0, gpu.cuda) as device, MatmulBuffers(device, read.manifest.problem) as buffers:
        device.describe()
        executor = DeviceExecutor(buffers, buffers.launcher(device.load(read), read))
        executor.launch(executor.buffers.c.download((64, 64), "f4"))
    calls = [call for call in gpu.calls if call[0].startswith("cu")]
    assert {name for name, *_ in calls} == {
        *("cuDriverGetVersion", "cuDeviceTotalMem", "cuKernelSetAttribute", "cuGetProcAddress"),
        *("cuLaunchKernelEx", "cuMemcpyHtoD", "cuMemcpyDtoH"),
    }
    for name, *arguments in calls:
        inspect.signature(getattr(driver, name)).bind(*arguments)
    for attribute, *_ in gpu.called("cuKernelSetAttribute"):
        assert hasattr(driver.CUfunction_attribute, attribute)


def test_launch_configuration_fits_the_bindings(tmp_path: Path) -> None:
    """Their structures take what is put into them."""
    gpu = FakeGpu()
    for name in ("CUlaunchConfig", "CUlaunchAttribute", "CUlaunchAttributeID"):
        setattr(gpu.driver, name, getattr(driver, name))
    device = Device(0, gpu.cuda)
    read = tma_bundle(tmp_path, grid=(3, 4, 1), block=(128, 2, 1), dynamic_shared_memory=1024, dependent_launch=True)
    buffers = MatmulBuffers(device, read.manifest.problem)
    device.session.stream.handle = driver.CUstream(77)
    buffers.launcher(device.load(read), read)()
    config = gpu.called("cuLaunchKernelEx")[0][0]
    assert (config.gridDimX, config.gridDimY, config.blockDimX, config.sharedMemBytes) == (3, 4, 128, 1024)
    assert int(config.hStream) == 77
    (attribute,) = config.attrs
    assert attribute.id == driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert attribute.value.programmaticStreamSerializationAllowed == 1
