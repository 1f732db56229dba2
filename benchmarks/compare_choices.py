"""Compares the default choices of two versions of the cost model for random problems, beside cuBLAS.

Where both MLIR and a GPU are, with PyTorch; TREE is another checkout of this repository:

    python benchmarks/compare_choices.py RESULT.json --before TREE --part fresh --seed 20270107 --count 100

The kernels of both versions for a problem run in turn with each other and with cuBLAS; where both choose the same, it
is measured once and counts for both. The choices of this checkout are written to RESULT.json, those of TREE to a file
beside it whose name has `_before` in front of the types: `choices_bf16-bf16.json` and `choices_before_bf16-bf16.json`.
Both are tables as `model_choice.py` writes them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# The version whose choices a process builds: that of the checkout that builds for both, or what --tree says.
_TREE = "--tree"
if _TREE in sys.argv:
    sys.path.insert(0, str(Path(sys.argv[sys.argv.index(_TREE) + 1]) / "runner"))
    import stepladder  # noqa: F401  all of its modules come from there then

import model_choice
from choice_plan import COLUMNS, TYPES
from choice_timing import Gpu
from common import new_parser, run
from draw import COUNT, DRAWS, Drawn
from measured_kernels import write_table
from model_choice import Built, Series
from stepladder.runtime.processes import end_with_pool

WHAT = (
    "knobs that are chosen for drawn problems, by two versions of the cost model in turn, hot L2, in turn with cuBLAS, "
    "median of 3 rounds"
)


def _problems(args: argparse.Namespace) -> list[Drawn]:
    return DRAWS[args.part](args.count, *([] if args.seed is None else [args.seed]))


def build(args: argparse.Namespace) -> None:
    """Builds the default choices of one version, a folder for each group of problems.

    Args:
        args: of the command line, with `tree`.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    series = Series(Path(args.result), _problems(args), TYPES[args.types], only_default=True)
    with ProcessPoolExecutor(args.jobs, initializer=end_with_pool) as pool:
        for number, group in enumerate(model_choice.groups_of(series.problems)):
            model_choice.build_group(pool, series, group, args.folder / str(number))


def _both(before: Path, after: Path, problems: Sequence[Drawn]) -> Iterator[tuple[Built, Built]]:
    """Yields the choices of both versions for each problem that both build a kernel for."""
    for number in range(len(model_choice.groups_of(problems))):
        groups = [model_choice.kept(folder / str(number)) for folder in (before, after)]
        old, new = ({kernel.job.problem.size: kernel for kernel in built if not kernel.refused} for built in groups)
        yield from ((old[size], kernel) for size, kernel in new.items() if size in old)


def compare(args: argparse.Namespace) -> None:
    """Builds the choices of both versions, and measures them in turn.

    Args:
        args: of the command line.
    """
    path = Path(args.result)
    stem, _, types = path.stem.rpartition("_")
    checkout = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(args.folder or temporary, name) for name in ("before", "after")]
        for folder, tree in zip(folders, (args.before, checkout)):
            if not folder.exists():
                words = [sys.executable, __file__, *sys.argv[1:], _TREE, str(tree), "--folder", str(folder)]
                subprocess.run(words, check=True)
        if args.build_only:
            return
        gpu = Gpu()
        head = model_choice.head_of(TYPES[args.types], gpu.device.describe(), WHAT)
        rows: tuple[list[list[object]], list[list[object]]] = ([], [])
        paths = (path.with_name(f"{stem}_before_{types}.json"), path)
        for before, after in _both(folders[0], folders[1], _problems(args)):
            kernels = [after] if before.knobs == after.knobs else [before, after]
            measured = {
                kernel.path: model_choice.row_of(kernel, time, cublas) for kernel, time, cublas in gpu.measure(kernels)
            }
            pair = [measured.get(kernels[0].path), measured.get(after.path)]
            for table, row in zip(rows, pair):
                if row is not None and None not in pair:
                    table.append(row)
            for target, table in zip(paths, rows):
                write_table(target, head, list(COLUMNS), table)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("result", metavar="RESULT.json", help="file to write, with the types behind the last _")
    parser.add_argument("--before", type=Path, metavar="TREE", required=True, help="the other version's checkout")
    parser.add_argument("--types", choices=TYPES, default="bf16-bf16", help="element types (default: bf16-bf16)")
    parser.add_argument("--part", choices=tuple(DRAWS), default="fresh", help="which draw (default: fresh)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the draw")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"of problems (default: {COUNT})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that build")
    parser.add_argument("--build-only", action="store_true", help="build the kernels in --folder and measure nothing")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="keep kernels here: on a machine without MLIR, what another built"
    )
    parser.add_argument(_TREE, type=Path, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Compares two versions; with `--tree`, builds the choices of one.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    (build if args.tree else compare)(args)


if __name__ == "__main__":
    run(main)
