"""Generates the tables and step descriptions of the documents, from docs/results and transforms.

    python benchmarks/render.py            rewrites the generated regions of README.md and docs/*.md
    python benchmarks/render.py --plots    draws docs/plots too, with matplotlib: pip install '.[docs]'
    python benchmarks/render.py --check    exit status 1 where a region is not up to date; writes nothing

A generated region lies between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import render_batches
import render_choice
import render_elected
import render_emulator
import render_fit
import render_fp8
import render_functions
import render_fusion
import render_h100
import render_hopper
import render_hopper_checks
import render_kept_weights
import render_orders
import render_producers
import render_python
import render_steps
import render_stores
import render_sums
import render_triggers
import render_warp
import render_xetile
from common import DOCS, ROOT, median, new_parser, result, run, table, where, wrapped
from render_warp import measured_variants

PAGES = (
    *("wmma.md", "wmma_steps.md", "mma_sync.md", "mma_sync_steps.md"),
    *("hopper.md", "hopper_measurements.md", "hopper_steps.md", "h100.md"),
    *("fusion.md", "cost_model.md", "cost_model_fits.md", "payload.md", "function_kernels.md", "python.md"),
    *("emulator.md", "xetile.md"),
)
DOCUMENTS = (ROOT / "README.md", *(DOCS / page for page in PAGES))

_REGION = re.compile(r"(<!-- begin ([\w -]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def ablation_overview() -> str:
    """Returns the ablations of all pipelines in one table, for the README."""
    tile = max(result("wmma_ablation")["tiles"], key=lambda name: measured_variants("wmma", name)[-1][1])
    last = next(iter(result("mma_sync_ablation")["tiles"]))
    variants = [("wmma", variant, burst) for variant, burst, _ in measured_variants("wmma", tile)]
    variants += [("mma_sync", variant, burst) for variant, burst, _ in measured_variants("mma_sync", last)]
    variants += render_hopper.variants_up_to_fastest()
    top = max(burst for _, _, burst in variants)
    rows = [
        {
            "pipeline": pipeline,
            "kernel": variant["title"],
            "TFLOP/s": f"{burst:.0f}",
            "": "█" * max(1, round(30 * burst / top)),
        }
        for pipeline, variant, burst in variants
    ]
    measured = result("mma_sync_ablation")["tiles"][last]
    return (
        table(rows) + f"\n{result('wmma_ablation')['size']}^3, f16 x f16 -> f32, bursts. `wmma` and `mma_sync`: "
        f"C = AB + C, tiles {tile} and {last}; the measured ceiling of `mma.sync` is "
        f"{median(measured, 'ceiling'):.0f}, and cuBLAS, which uses `wgmma`, reaches {median(measured, 'cublas'):.0f}. "
        f"From `wgmma_single_stage` on: C = AB; cuBLAS reaches {render_hopper.ablation_cublas():.0f}. "
        f"{where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    "ablation": ablation_overview,
    **render_warp.REGIONS,
    **render_batches.REGIONS,
    **render_stores.REGIONS,
    **render_fp8.REGIONS,
    **render_choice.REGIONS,
    **render_elected.REGIONS,
    **render_fit.REGIONS,
    **render_kept_weights.REGIONS,
    **render_triggers.REGIONS,
    **render_orders.REGIONS,
    **render_emulator.REGIONS,
    **render_fusion.REGIONS,
    **render_h100.REGIONS,
    **render_producers.REGIONS,
    **render_steps.REGIONS,
    **render_sums.REGIONS,
    **render_hopper.REGIONS,
    **render_hopper_checks.REGIONS,
    **render_functions.REGIONS,
    **render_python.REGIONS,
    **render_xetile.REGIONS,
}


def rendered(text: str) -> str:
    """Returns a document with its regions generated again.

    Args:
        text: Markdown with marked regions.

    Raises:
        SystemExit: a region has a name that nothing generates.
    """

    def region(match: re.Match[str]) -> str:
        if match[2] not in REGIONS:
            raise SystemExit(f"no region '{match[2]}': there are {', '.join(REGIONS)}")
        return match[1] + wrapped(REGIONS[match[2]]()) + match[3]

    return _REGION.sub(region, text)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and name the documents that are not up to date"
    )
    parser.add_argument("--plots", action="store_true", help="draw the plots too; needs matplotlib")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrites or checks the documents; returns the exit status.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    if args.plots and importlib.util.find_spec("matplotlib") is None:
        print("--plots needs matplotlib: pip install '.[docs]'", file=sys.stderr)
        return 2
    stale = []
    for path in DOCUMENTS:
        old = path.read_text()
        new = rendered(old)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if not args.check:
                path.write_text(new)
    if args.check:
        for name in stale:
            print(f"{name} is not up to date: run python benchmarks/render.py", file=sys.stderr)
        return 1 if stale else 0
    if args.plots:
        import plots

        plots.draw_all()
    return 0


if __name__ == "__main__":
    run(main)
