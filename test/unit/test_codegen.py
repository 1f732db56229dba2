"""Code generation: tools, the cache, and that what LLVM or ptxas refuse is one clear message."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import back_end
import diskcache
import pytest

from stepladder.mlir.bindings import ir
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.codegen import cache as code_cache
from stepladder.pipeline.codegen import kernel as codegen
from stepladder.pipeline.codegen import ptx
from stepladder.pipeline.codegen.kernel import Kernel
from stepladder.pipeline.codegen.machine_code import generate
from stepladder.pipeline.codegen.ptx import assemble, to_ptx
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import BAD_INPUT, FAILED, StepladderError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's back end starts as it does for users."""
    monkeypatch.setattr(ptx, "run_back_end", back_end.own_process)


@pytest.fixture(scope="module")
def module() -> Iterator[ir.Module]:
    settings = {"block_m": 64, "block_n": 64, "warp_m": 32, "warp_n": 32}
    with mlir_context():
        yield run_pipeline(matmul_text(64, 64, 64), "matmul.mlir", Request("wmma", settings)).module


@pytest.fixture
def kernel(module: ir.Module) -> Kernel:
    return codegen.find_kernel(module)


def test_find_kernel(kernel: Kernel) -> None:
    assert (kernel.name, kernel.target) == ("matmul_kernel", "sm_80")
    assert (kernel.grid, kernel.block) == ([1, 1, 1], [128, 1, 1])
    assert [parameter.number for parameter in kernel.parameters] == [2, 0, 1]
    assert all(parameter.descriptor is None for parameter in kernel.parameters)
    assert kernel.cluster == [1, 1, 1]
    assert kernel.dynamic_shared_memory == 0


def test_no_kernel() -> None:
    with mlir_context():
        module = parse_payload(matmul_text(64, 64, 64), "matmul.mlir")
        with pytest.raises(StepladderError, match=r"expected one gpu.launch_func after the last step, found 0"):
            codegen.find_kernel(module)


def test_second_time_from_the_cache(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generate(kernel)
    assert not first.cached and first.registers > 0 and first.spill_stores == first.spill_loads == 0
    assert first.static_shared_memory == 19456
    monkeypatch.setattr("stepladder.pipeline.codegen.ptx.to_ptx", None)  # no code generation the second time
    second = generate(kernel)
    assert second.cached
    assert (second.cubin, second.ptx, second.registers) == (first.cubin, first.ptx, first.registers)


def damage_entries(folder: Path) -> None:
    """Puts JSON that is no machine code where entries are, in the form that the cache keeps it in."""
    with diskcache.Cache(str(folder), disk=diskcache.JSONDisk) as cache:
        for key in cache:
            cache[key] = {"ptx": 1}


def run_sql(folder: Path, command: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "cache.db")) as database, database:
        database.execute(command)


UNUSABLE = {
    "a file in its place": lambda folder: (shutil.rmtree(folder), folder.write_text("")),
    "a folder in place of its file": lambda folder: ((folder / "cache.db").unlink(), (folder / "cache.db").mkdir()),
    "a database that is none": lambda folder: (folder / "cache.db").write_bytes(b"no database" * 1000),
    "a database cut off": lambda folder: os.truncate(folder / "cache.db", 5000),
    "a database with another table": lambda folder: run_sql(folder, "ALTER TABLE Cache DROP COLUMN mode"),
    "values cut off": lambda folder: run_sql(folder, "UPDATE Cache SET value = substr(value, 1, 9)"),
    "values that are no machine code": damage_entries,
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_cache_that_cannot_be_used(
    how: str, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One warning in a process, and the kernel is made all the same."""
    monkeypatch.setattr(code_cache, "_has_warned", False)
    first = generate(kernel)
    code_cache.close()
    for file in (tmp_path / "cache").glob("cache.db-*"):
        file.unlink()
    UNUSABLE[how](tmp_path / "cache")
    assert generate(kernel).cubin == first.cubin
    assert generate(kernel).cubin == first.cubin
    warning = capsys.readouterr().err
    assert warning.startswith(f"warning: the cache of machine code in '{tmp_path / 'cache'}' cannot be used (")
    assert warning.count("warning") == 1 and warning.count("\n") == 2 and "Traceback" not in warning


def test_a_cache_that_is_removed_while_it_is_open(kernel: Kernel, tmp_path: Path) -> None:
    assert not generate(kernel).cached and generate(kernel).cached
    shutil.rmtree(tmp_path / "cache")
    assert not generate(kernel).cached and generate(kernel).cached


@pytest.mark.parametrize(
    "method, error",
    [
        ("__init__", sqlite3.OperationalError("attempt to write a readonly database")),
        ("__init__", PermissionError(13, "Permission denied")),
        ("__init__", diskcache.Timeout()),
        ("get", sqlite3.DatabaseError("database disk image is malformed")),
        ("set", sqlite3.OperationalError("database or disk is full")),
        ("set", OSError(28, "No space left on device")),
    ],
)
def test_cache_that_fails(
    method: str, error: Exception, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a user without rights or space gets; a test may run as a user with all rights."""

    def fail(*arguments: object, **options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(code_cache, "_has_warned", False)
    code_cache.close()
    monkeypatch.setattr(diskcache.Cache, method, fail)
    assert not generate(kernel).cached
    assert not generate(kernel).cached
    warning = capsys.readouterr().err
    assert warning.count("warning") == 1
    assert f"cannot be used ({getattr(error, 'strerror', None) or str(error) or 'Timeout'})" in warning


def test_without_the_cache(kernel: Kernel) -> None:
    generate(kernel)
    assert not generate(kernel, use_cache=False).cached


def test_machine_code_is_reproducible(kernel: Kernel) -> None:
    assert generate(kernel, use_cache=False).cubin == generate(kernel, use_cache=False).cubin


def assert_clear(error: StepladderError, status: int = FAILED) -> None:
    assert error.status == status
    text = error.render()
    assert "Traceback" not in text and len(text) < 1500 and text.count("\n") <= 4


def test_llvm_that_cannot_select() -> None:
    """LLVM ends its process; ours goes on."""
    with pytest.raises(StepladderError, match="LLVM cannot make PTX for sm_80") as caught:
        to_ptx(
            "define void @f(ptr %p) {\n  %x = load i8, ptr %p\n"
            "  %y = call i8 @llvm.returnaddress(i32 0)\n  ret void\n}\n",
            "sm_80",
        )
    assert_clear(caught.value)


def test_llvm_that_does_not_parse() -> None:
    with pytest.raises(StepladderError, match="LLVM cannot make PTX for sm_80") as caught:
        to_ptx("no LLVM IR", "sm_80")
    assert_clear(caught.value)
    assert "expected top-level entity" in caught.value.render()


def test_intrinsic_that_llvm_does_not_know() -> None:
    """Where the two LLVMs differ, an intrinsic would silently become a call."""
    text = (
        "declare void @llvm.nvvm.no.such.intrinsic()\ndefine ptx_kernel void @f() {\n"
        "  call void @llvm.nvvm.no.such.intrinsic()\n  ret void\n}\n"
    )
    with pytest.raises(StepladderError, match=r"llvm.nvvm.no.such.intrinsic") as caught:
        to_ptx(text, "sm_80")
    assert_clear(caught.value)


def test_ptx_that_ptxas_refuses() -> None:
    with pytest.raises(StepladderError, match="ptxas refuses the kernel for sm_80") as caught:
        assemble(".version 7.0\n.target sm_80\n.address_size 64\n.entry f() { bad.op; }\n" * 20, "sm_80")
    assert_clear(caught.value)


@pytest.mark.parametrize("tool, status", [("true", 0), ("false", 1)])
def test_a_ptxas_that_says_nothing_is_named(tool: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shutil.which(tool)
    assert path is not None
    monkeypatch.setenv("STEPLADDER_PTXAS", path)
    with pytest.raises(StepladderError, match="ptxas refuses the kernel for sm_80") as caught:
        assemble("", "sm_80")
    assert f"'{path}' ended with status {status}, without machine code" in caught.value.render()


def test_tool_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ptxas = find_tool("ptxas")
    monkeypatch.setenv("STEPLADDER_PTXAS", ptxas)
    assert find_tool("ptxas") == ptxas
    monkeypatch.setenv("STEPLADDER_PTXAS", str(tmp_path))
    with pytest.raises(StepladderError, match="which is not a program") as caught:
        find_tool("ptxas")
    assert_clear(caught.value, BAD_INPUT)


@pytest.mark.parametrize("tool, package", [("ptxas", "nvidia-cuda-nvcc"), ("nvdisasm", "nvidia-cuda-nvdisasm")])
def test_tool_that_is_missing(tool: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"STEPLADDER_{tool.upper()}", raising=False)
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StepladderError, match=f"{tool} is missing") as caught:
        find_tool(tool)
    assert package in caught.value.render()


def test_versions() -> None:
    assert set(tool_versions()) == {"stepladder", "mlir", "llvmlite", "ptxas"}


def test_another_ptxas_at_the_same_path_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is asked once: a function of several kernels needs the version for each kernel."""
    tool, asked = tmp_path / "ptxas", tmp_path / "asked"
    monkeypatch.setenv("STEPLADDER_PTXAS", str(tool))
    for version in ("13.0.88", "13.1.5"):
        tool.unlink(missing_ok=True)
        tool.write_text(f"#!/bin/sh\necho {version} >> '{asked}'\necho V{version}\n")
        tool.chmod(0o755)
        assert [tool_versions()["ptxas"] for _ in range(3)] == [version] * 3
    assert asked.read_text().split() == ["13.0.88", "13.1.5"]
