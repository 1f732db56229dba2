"""The lit suite: golden tests of the transform scripts, and tests of both command lines."""

import atexit
import glob
import importlib
import os
import shlex
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
python = sys.executable
inputs = os.path.join(here, "test", "inputs")
sys.path.insert(0, inputs)
quoted_paths = importlib.import_module("quoted_paths")  # of a module: lit pickles its format

config.name = "stepladder"
config.test_format = quoted_paths.QuotedPaths(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = here
config.test_exec_root = os.path.join(here, "build", "lit")
config.excludes = ["unit", "inputs", "Inputs", "transforms", "build", "docs"]

config.environment["PATH"] = os.pathsep.join([os.path.dirname(python), os.environ.get("PATH", "")])
config.environment["PYTHONPATH"] = os.path.join(here, "runner")
config.environment["STEPLADDER_CACHE_DIR"] = os.path.join(config.test_exec_root, "cache")
# No test reads or writes the user's tuning database.
config.environment["STEPLADDER_TUNING_DATABASE"] = os.path.join(config.test_exec_root, "no-such-tuning.json")
# Knobs are chosen alike on all machines.
config.environment["STEPLADDER_GPU"] = "h200"
# Tables keep their width and carry no colours, whatever terminal runs the tests.
config.environment["NO_COLOR"] = "1"
# Tests run side by side, a process a core: NumPy's threads would only be in each other's way.
config.environment["OPENBLAS_NUM_THREADS"] = "1"
for name in ("HOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

transforms = os.path.join(here, "transforms")
# lit's own `diff` drops PYTHONPATH for the commands after it in a test, so every command sets it.
run = shlex.join(["env", f"PYTHONPATH={os.path.join(here, 'runner')}", python])
programs = {
    "%stepladder-opt": f"{run} -m stepladder.cli.opt",
    "%stepladder": f"{run} -m stepladder",
    "FileCheck": f"{shlex.quote(python)} -m filecheck",
    "%refused": f"{run} {shlex.quote(os.path.join(inputs, 'expect_refusal.py'))}",
}


def start_server(*arguments: str) -> str:
    """Returns the path of a command server's socket, an empty string where it does not start."""
    server = subprocess.Popen(
        [python, os.path.join(inputs, "command_server.py"), *arguments],
        stdin=subprocess.PIPE,  # the server ends when lit does
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.path.join(here, "runner")},
        text=True,
    )
    atexit.register(server.stdin.close)  # keeps the server where lit drops this scope: with one worker
    return server.stdout.readline().strip()


# Commands run in processes forked from one that has the imports; `--param direct=1` starts Python for each.
if hasattr(os, "fork") and not lit_config.params.get("direct"):
    sockets = {"FileCheck": start_server("FileCheck")}
    general = start_server()
    for program in programs:
        if socket := sockets.get(program, general):
            client = f"{run} -S {shlex.join([os.path.join(inputs, 'command_client.py'), socket])}"
            programs[program] = f"{client} {program.lstrip('%')}"

config.substitutions += [
    *programs.items(),
    ("%python", run),
    ("%transforms", shlex.quote(transforms)),
    ("%payloads", shlex.quote(os.path.join(inputs, "payloads"))),
    ("%inputs", shlex.quote(inputs)),
]

# A stock mlir-opt, under the name that distributions give it.
stock = os.environ.get("MLIR_OPT") or shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
if stock:
    config.available_features.add("stock-mlir-opt")
    config.substitutions.append(("%mlir-opt", shlex.quote(stock)))


def has_gpu() -> bool:
    try:
        from cuda.bindings import driver

        return driver.cuInit(0)[0] == driver.CUresult.CUDA_SUCCESS and driver.cuDeviceGetCount()[1] > 0
    except (ImportError, RuntimeError):  # no bindings, or bindings without a driver
        return False


if has_gpu():
    config.available_features.add("gpu")

# NVIDIA's disassembler, from its pip package or from PATH.
found = [tool for folder in sys.path for tool in glob.glob(os.path.join(folder, "nvidia", "*", "bin", "nvdisasm"))]
nvdisasm = found[0] if found else shutil.which("nvdisasm")
if nvdisasm:
    config.available_features.add("nvdisasm")
    config.substitutions.append(("%nvdisasm", shlex.quote(nvdisasm)))

# The validator of SPIR-V, from its pip package or from PATH.
found = [tool for folder in sys.path for tool in glob.glob(os.path.join(folder, "cmeel.prefix", "bin", "spirv-val"))]
if found or shutil.which("spirv-val"):
    config.available_features.add("spirv-val")
