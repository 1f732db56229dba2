"""The descriptions of steps in the documents, from the head comments of their scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import render_hopper
from common import ROOT, result
from render_warp import ABLATIONS, measured_variants
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Step

# Pipelines in the order of the documents: a step is described where it comes first.
CHAPTERS = {
    "wmma": "wmma.md",
    "mma_sync": "mma_sync.md",
    "wgmma_single_stage": "hopper.md",
    "wgmma_multistage": "hopper.md",
    "wgmma": "hopper.md",
}


def _loaded(pipeline: str) -> list[Step]:
    """Returns the steps of a pipeline as the runner reads them."""
    with mlir_context():
        return library.load(pipeline).steps


def _names(pipeline: str) -> list[str]:
    return [step.name for step in _loaded(pipeline)]


def _gains() -> dict[str, str]:
    """Returns step -> its gain in the ablations, for steps that are the only difference between two variants."""
    found: dict[str, str] = {}
    for name in ABLATIONS:
        ablation = result(f"{name}_ablation")
        without = [set(variant["without"]) for variant in ablation["variants"]]
        for tile in ablation["tiles"]:
            bursts = [burst for _, burst, _ in measured_variants(name, tile)]
            for number in range(1, len(without)):
                added = without[number - 1] - without[number]
                if len(added) == 1:
                    gain = f"x {bursts[number] / bursts[number - 1]:.2f} ({name}, {tile})"
                    step = added.pop()
                    found[step] = f"{found[step]}, {gain}" if step in found else gain
    for step, gain in render_hopper.gains().items():
        found[step] = f"{found[step]}, {gain}" if step in found else gain
    return found


def _markdown(comment: list[str]) -> str:
    """Returns the lines of a head comment as Markdown: indented lines are IR."""
    lines, code = [], False
    for line in comment:
        indented = line.startswith("  ")
        if indented != code:
            lines.append("```mlir" if indented else "```")
            code = indented
        lines.append(line[2:] if code else line)
    return "\n".join([*lines, "```"] if code else lines)


def _head_comment(step: Step) -> list[str]:
    """Returns the lines of a script up to the first empty one, without their comment marks."""
    text = step.path.read_text()
    return [line[3:] for line in text.partition("\n\n")[0].splitlines()]


def steps_text(pipeline: str, *earlier: str) -> str:
    """Returns every step of a pipeline: the head comment of its script, and its gain.

    Args:
        pipeline: its steps are listed in order; a step that an earlier document describes is a link to that.
        earlier: pipelines of the same document; steps that only they have follow the step that they follow there.
    """
    gains = _gains()
    chapters = list(CHAPTERS)
    first = {step: other for other in reversed(chapters[: chapters.index(pipeline)]) for step in _names(other)}
    known = {step: other for step, other in first.items() if CHAPTERS[other] != CHAPTERS[pipeline]}
    described = {step.name: step for chapter in (*earlier, pipeline) for step in _loaded(chapter)}
    steps, alone = _names(pipeline), {}
    for other in earlier:
        others = _names(other)
        for step in others:
            if step not in steps:
                steps.insert(steps.index(others[others.index(step) - 1]) + 1, step)
                alone[step] = other
    parts = []
    for number, name in enumerate(steps, start=1):
        gain = f"; gain {gains[name]}" if name in gains else ""
        title = f"### {number}. {name}\n\n"
        if name in known:
            other = known[name]
            parts.append(f"{title}As in [{other}]({CHAPTERS[other]}#the-steps){gain}.\n")
            continue
        step = described[name]
        kind = "optimization" if step.optimization else "lowering"
        ops = ", ".join(f"`{dialect}`" for dialect in step.dialects) or "upstream ops"
        link = f"[{step.path.name}](../{step.path.relative_to(ROOT).as_posix()})"
        only = f"; in {alone[name]} only" if name in alone else ""
        parts.append(f"{title}{link}: {kind}, {ops}{only}{gain}.\n\n{_markdown(_head_comment(step))}\n")
    return "\n".join(parts)


REGIONS: dict[str, Callable[[], str]] = {
    "steps wmma": partial(steps_text, "wmma"),
    "steps mma_sync": partial(steps_text, "mma_sync"),
    "steps wgmma": partial(steps_text, "wgmma", "wgmma_multistage"),
}
