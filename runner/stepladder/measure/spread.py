"""Summary statistics of rates over the rounds of a measurement."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict


class _Timed(TypedDict):
    launches: int
    milliseconds: float
    tflops: float


class Sample(_Timed, total=False):
    """The measurement of one kernel in one round.

    Attributes:
        launches: timed launches.
        milliseconds: time of all of them.
        tflops: rate, in 10^12 operations a second.
        clock_mhz, power_w: that the GPU settled at, where they were read.
    """

    clock_mhz: float
    power_w: float


@dataclass(frozen=True)
class Spread:
    """The median and the spread of one figure over the rounds."""

    median: float
    minimum: float
    maximum: float
    quartile_1: float
    quartile_3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Returns the spread of two values or more; quartiles are interpolated.

        Args:
            values: rates of the rounds, in one unit.
        """
        first, median, third = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, min(values), max(values), first, third)


def summarize(samples: Mapping[str, Sequence[Sample]], references: Sequence[str]) -> dict[str, Any]:
    """Summarizes the rounds of one mode.

    Args:
        samples: every round's sample, in order, by the kernel's name.
        references: names of the kernels that all others are compared with.

    Returns:
        JSON data: `kernels`, by name, with the `tflops`, `launches` and `milliseconds` of every round,
        `tflops_spread`, and the median `clock_mhz` and `power_w` over the rounds in which they were read; and `ratios`,
        by name and then by the name of a reference, with the ratio of TFLOP/s within every round (`values`) and its
        `spread`.
    """
    rates = {name: [sample["tflops"] for sample in rounds] for name, rounds in samples.items()}
    kernels = {
        name: {
            "tflops": rates[name],
            "launches": [sample["launches"] for sample in rounds],
            "milliseconds": [sample["milliseconds"] for sample in rounds],
            "tflops_spread": asdict(Spread.of(rates[name])),
            **_settled(rounds),
        }
        for name, rounds in samples.items()
    }
    ratios: dict[str, dict[str, Any]] = {name: {} for name in samples}
    for name, rate in rates.items():
        for reference in references:
            if reference != name:
                values = [
                    numerator / denominator for numerator, denominator in zip(rate, rates[reference], strict=True)
                ]
                ratios[name][reference] = {"values": values, "spread": asdict(Spread.of(values))}
    return {"kernels": kernels, "ratios": ratios}


def _settled(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns the medians of clock and power over the rounds; empty where they were not read."""
    clocks = [sample["clock_mhz"] for sample in samples if "clock_mhz" in sample]
    powers = [sample["power_w"] for sample in samples if "power_w" in sample]
    return {"clock_mhz": statistics.median(clocks), "power_w": statistics.median(powers)} if clocks and powers else {}
