"""`stepladder run`: are a bundle's numbers right?"""

from __future__ import annotations

import argparse

from stepladder.errors import FAILED, OK

EPILOG = """\
Three checks, each over every element of C: small integers, for which every partial sum is exact, must give exactly the
reference; random normal inputs must agree with a float64 product within a tolerance that follows from the types of
products and sums and K (random i8 must give exactly the reference); and two launches must give the same bits. Where the
kernel only writes C, C holds NaN before the launch, or the smallest integer.

exit status: 0 the numbers are right; 1 they are not; 2 the bundle or an option is not acceptable; 3 nothing was
executed (no GPU or driver, or a GPU that the bundle is not for). STEPLADDER_DEVICE chooses among several GPUs.

examples:
  stepladder run gemm.bundle
  stepladder run gemm.bundle --seed 7 --json numbers.json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser("run", help="check a bundle's numbers on the GPU", description=__doc__,
                                   epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", metavar="BUNDLE", help="folder that `stepladder compile` made")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of the random inputs (default: 0)")
    parser.add_argument("--json", metavar="FILE", help="also write the result to FILE")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative integer, got '{text}'")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status. Raises StepladderError."""
    from dataclasses import asdict

    from stepladder.bundle import read_bundle
    from stepladder.check import check_matmul
    from stepladder.files import check_writable, write_json
    from stepladder.launch import Device, DeviceExecutor, MatmulBuffers

    bundle = read_bundle(args.bundle)
    problem = bundle.manifest.problem
    if args.json:
        check_writable(args.json)
    with Device() as device:
        kernel = device.load(bundle)
        print(f"{args.bundle}: {problem.describe()}, seed {args.seed}, on {device.name}", flush=True)
        with MatmulBuffers(device, problem) as buffers:
            executor = DeviceExecutor(buffers, buffers.launcher(kernel, bundle))
            reports = check_matmul(problem, executor, args.seed, device.ordinal)
        card = device.describe()
    passed = all(report.passed for report in reports)
    for report in reports:
        print(report.describe())
    print("numbers are right" if passed else "numbers are WRONG")
    if args.json:
        write_json(args.json, {
            "bundle": args.bundle,
            "problem": asdict(problem),
            "seed": args.seed,
            "card": card,
            "image": kernel.source,
            "passed": passed,
            "checks": [report.to_json() for report in reports],
        })
    return OK if passed else FAILED
