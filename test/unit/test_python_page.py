"""The Python blocks of docs/python.md run, in order, from the top of a copy of the checkout."""

import ast
import builtins
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import documented
from conftest import NO_GPU

PAGE = documented.ROOT / "docs" / "python.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="not a checkout")


def blocks(*needs: str) -> list[str]:
    """Returns the code of the blocks that need at most something, each with its lines numbered from 1."""
    found = []
    for token in MarkdownIt().parse(PAGE.read_text()):
        language, *needed = token.info.split() or [""]
        if token.type == "fence" and language == "python" and set(needed) <= set(needs):
            found.append(token.content)
    return found


def run(codes: list[str], tmp_path: Path) -> None:
    script = "names = {}\n" + "".join(
        f"exec(compile({code!r}, 'python.md, block {number}', 'exec'), names)\n"
        for number, code in enumerate(codes, start=1)
    )
    path = os.pathsep.join(filter(None, (str(documented.ROOT / "runner"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "STEPLADDER_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=documented.ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_blocks_run_without_a_gpu(tmp_path: Path) -> None:
    codes = blocks()
    assert len(codes) >= 6
    run(codes, tmp_path)


def gpu_blocks() -> list[str]:
    """Returns the code of the blocks that need PyTorch and a GPU, after those whose names they may use."""
    codes = [code for code in blocks("torch", "gpu") if "import" in code.splitlines()[0] or "torch" in code]
    return ["from stepladder import functions as F\n", *codes]


def test_blocks_for_a_gpu_use_names_of_earlier_ones() -> None:
    names = set(vars(builtins))
    for code in gpu_blocks():
        tree = ast.parse(code)
        inner = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in node.args}
        for node in ast.walk(tree):
            if isinstance(node, ast.alias):
                names.add(node.asname or node.name.split(".")[0])
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        names |= {node.id for node in used if isinstance(node.ctx, ast.Store)}
        assert {node.id for node in used} <= names | inner, code


@pytest.mark.gpu
def test_blocks_run_on_a_gpu(tmp_path: Path) -> None:
    assert not NO_GPU
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    codes = gpu_blocks()
    assert len(codes) > 2
    run(codes, tmp_path)
