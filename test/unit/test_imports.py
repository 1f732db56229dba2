"""What a command does not import: start-up is what a user waits for most often."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepladder.cli import guard
from stepladder.payload.writing import matmul_text

RUNNER = Path(__file__).resolve().parents[2] / "runner"
MLIR = ("mlir.", "torch_mlir.")
HEAVY = (
    "rich.",
    "llvmlite.",
    "diskcache.",
    "importlib.metadata.",
    "cuda.",
    "stepladder.pipeline.codegen.",
    "stepladder.runtime.launch.",
)


def imported(tmp_path: Path, *command: str) -> list[str]:
    """Returns the modules that a command imports, each with a point behind its name."""
    script = (
        "import sys\n"
        f"from stepladder.{command[0]} import main\n"
        f"status = main({list(command[1:])!r})\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(status)"
    )
    environment = {**os.environ, "PYTHONPATH": str(RUNNER), "STEPLADDER_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return [f"{name}." for name in done.stderr.split()]


def among(modules: list[str], *prefixes: str) -> list[str]:
    return [module for module in modules if module.startswith(prefixes)]


def test_list_imports_no_mlir(tmp_path: Path) -> None:
    first = imported(tmp_path, "cli.main", "list", "steps")
    assert among(first, *MLIR)  # the scripts are read once, for all lists
    unneeded = (*MLIR, "numpy.", "stepladder.pipeline.run.", *(name for name in HEAVY if name != "rich."))
    for arguments in ((), ("steps",), ("knobs", "--pipeline", "wgmma")):
        assert not among(imported(tmp_path, "cli.main", "list", *arguments), *unneeded)


@pytest.mark.parametrize("pipeline", ["wmma", "mma_sync", "wgmma", "wgmma_multistage"])
def test_opt_imports_what_a_pipeline_needs(tmp_path: Path, pipeline: str) -> None:
    file = tmp_path / "matmul.mlir"
    file.write_text(matmul_text(128, 128, 128))
    modules = imported(tmp_path, "cli.opt", str(file), "--pipeline", pipeline, "-o", str(tmp_path / "lowered.mlir"))
    assert among(modules, *MLIR)
    assert not among(modules, *HEAVY, "numpy.")
    assert not [module for module in modules if ".opdsl." in module]
    if not pipeline.startswith("wgmma"):  # its steps build ops of the dialect
        assert not [module for module in modules if module.endswith("._llvm_ops_gen.")]


def test_help_imports_nothing_of_the_work(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from stepladder.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(RUNNER)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not among([f"{name}." for name in done.stderr.split()], *MLIR, "numpy.", *HEAVY)


def test_linalg_is_whole_when_asked_for() -> None:
    """The place that is held for it gives way to the module itself, whoever asks."""
    script = (
        "from stepladder.mlir import bindings\n"
        "import importlib, sys\n"
        "name = f'{bindings.PREFIX}.dialects.linalg'\n"
        "assert not [module for module in sys.modules if 'opdsl' in module]\n"
        "held = importlib.import_module(name)\n"
        "assert callable(held.fill) and callable(bindings.linalg.add)\n"
        "module = importlib.import_module(name)\n"
        "assert module is not held and module.__spec__.name == name and module.fill is held.fill\n"
        "from importlib import import_module\n"
        "assert import_module(name + '.opdsl.lang')\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(RUNNER)}, check=True)


def test_submodules_of_linalg_are_found_first() -> None:
    script = (
        "from stepladder.mlir import bindings\n"
        "import importlib\n"
        "importlib.import_module(f'{bindings.PREFIX}.dialects.linalg.opdsl.lang')\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(RUNNER)}, check=True)


def test_ops_of_linalg_are_instances_of_their_classes() -> None:
    script = (
        "from stepladder.payload.writing import matmul_text\n"
        "from stepladder.pipeline.context import mlir_context, parse_payload\n"
        "with mlir_context():\n"
        "    module = parse_payload(matmul_text(64, 64, 64), 'x')\n"
        "    body = module.body.operations[0].regions[0].blocks[0]\n"
        "    matmul = next(op for op in body.operations if op.operation.name == 'linalg.matmul')\n"
        "    assert type(matmul).__name__ == 'MatmulOp', type(matmul)\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(RUNNER)}, check=True)


def test_a_plugin_sees_ops_as_instances_of_their_classes(tmp_path: Path) -> None:
    plugin = Path(__file__).resolve().parents[1] / "inputs" / "plugin" / "occupancy.py"
    script = (
        "from stepladder.extension import plugins\n"
        "from stepladder.mlir.bindings import ir\n"
        f"plugins.load_file({str(plugin)!r})\n"
        "text = 'module { llvm.func @f() { llvm.return } gpu.module @g { } }'\n"
        "with ir.Context():\n"
        "    module = ir.Module.parse(text)\n"
        "    assert [type(op).__name__ for op in module.body.operations] == ['LLVMFuncOp', 'GPUModuleOp']\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(RUNNER)}, check=True)


def test_garbage_is_collected_again_after_imports() -> None:
    was = gc.get_freeze_count()
    with guard.imports():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() > was
    gc.unfreeze()


def test_modules_of_the_interface_are_one_by_either_name() -> None:
    script = (
        "import stepladder.functions as first\n"
        "from stepladder import functions\n"
        "import stepladder.api.functions as own\n"
        "assert first is functions is own and own.__spec__.name == 'stepladder.api.functions'\n"
        "try:\n    import stepladder.other\nexcept ModuleNotFoundError:\n    print('found')"
    )
    environment = {**os.environ, "PYTHONPATH": str(RUNNER)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "found\n"
