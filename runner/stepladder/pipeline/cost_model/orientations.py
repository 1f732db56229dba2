"""Ranks the settings of both orientations of a product: C = AB as it is, and C^T = B^T A^T."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stepladder.pipeline.cost_model.ranking import Candidate, Ranking


@dataclass(frozen=True)
class Orientation:
    """The ranking of one orientation.

    Attributes:
        knobs: what its settings have beside the knobs that were searched: none for the product as it is.
        ranking: of its settings.
    """

    knobs: Mapping[str, int | str]
    ranking: Ranking


@dataclass(frozen=True)
class Orientations:
    """The rankings of all orientations of a product, as one.

    Attributes:
        parts: the product as it is first; the others follow where they are predicted to be faster.
    """

    parts: tuple[Orientation, ...]

    def __len__(self) -> int:
        return sum(len(part.ranking) for part in self.parts)

    def first(self, count: int) -> list[Candidate]:
        """Returns the first `count` candidates, as `Ranking.first` does.

        Args:
            count: at least 0; fewer candidates are returned where there are no more.
        """
        heads = [_candidates(part, count) for part in self.parts]
        candidates: list[Candidate] = []
        while len(candidates) < count and any(heads):
            number = min(
                (number for number, head in enumerate(heads) if head),
                key=lambda number: heads[number][0].with_margin,
            )
            candidates.append(heads[number].pop(0))
        return candidates

    def within(self, factor: float) -> int:
        """Returns how many candidates are predicted to take at most `factor` times as long as the first.

        Args:
            factor: on the predicted time of the first candidate.
        """
        first = self.first(1)
        limit = factor * first[0].microseconds if first else 0.0
        return sum(int(np.count_nonzero(part.ranking.times["total"] <= limit)) for part in self.parts if part.ranking)


def _candidates(part: Orientation, count: int) -> list[Candidate]:
    return [replace(item, knobs={**item.knobs, **part.knobs}) for item in part.ranking.first(count)]


def join(parts: Sequence[Orientation]) -> Ranking | Orientations:
    """Returns the rankings of orientations as one; that of the only one that has settings where there is one.

    Args:
        parts: the product as it is first.
    """
    nonempty = [parts[0], *(part for part in parts[1:] if len(part.ranking))]
    return nonempty[0].ranking if len(nonempty) == 1 else Orientations(tuple(nonempty))
