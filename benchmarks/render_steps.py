"""The pages of steps, from the head comments of their scripts, and the indices of each pipeline's steps with gains."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import render_hopper
from common import ROOT, result, table
from render_warp import ABLATIONS, measured_variants
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Step

# Page of a pipeline's steps, in the order of the pages: a step is described where it comes first.
PAGES = {
    "wmma": "wmma_steps.md",
    "mma_sync": "mma_sync_steps.md",
    "wgmma_single_stage": "hopper_steps.md",
    "wgmma_multistage": "hopper_steps.md",
    "wgmma": "hopper_steps.md",
}
# Pipelines on the page of another one, which has nearly all of their steps.
EARLIER = {"wgmma": ("wgmma_multistage",)}


def _loaded(pipeline: str) -> list[Step]:
    """Returns the steps of a pipeline as the runner reads them."""
    with mlir_context():
        return library.load(pipeline).steps


def _names(pipeline: str) -> list[str]:
    return [step.name for step in _loaded(pipeline)]


def _gains() -> dict[str, str]:
    """Returns step -> its gain in the ablations, for steps that are the only difference between two variants."""
    gain_of_step: dict[str, str] = {}
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
                    gain_of_step[step] = f"{gain_of_step[step]}, {gain}" if step in gain_of_step else gain
    for step, gain in render_hopper.gains().items():
        gain_of_step[step] = f"{gain_of_step[step]}, {gain}" if step in gain_of_step else gain
    return gain_of_step


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


def _listed(pipeline: str) -> tuple[list[str], dict[str, str]]:
    """Returns the steps of a page in order, and for those that only an earlier pipeline has, that pipeline; such a step
    follows the one that it follows there."""
    steps, alone = _names(pipeline), {}
    for earlier in EARLIER.get(pipeline, ()):
        earlier_names = _names(earlier)
        for step in earlier_names:
            if step not in steps:
                steps.insert(steps.index(earlier_names[earlier_names.index(step) - 1]) + 1, step)
                alone[step] = earlier
    return steps, alone


def _known(pipeline: str) -> dict[str, str]:
    """Returns the steps that an earlier page describes, each with a link to its description."""
    links: dict[str, str] = {}
    for earlier in list(PAGES)[: list(PAGES).index(pipeline)]:
        if PAGES[earlier] != PAGES[pipeline]:
            for number, step in enumerate(_listed(earlier)[0], start=1):
                links.setdefault(step, f"{PAGES[earlier]}#{number}-{step}")
    return links


def index_text(pipeline: str) -> str:
    """Returns a table of the steps of a pipeline, with the first sentence of each and its gain.

    Args:
        pipeline: whose steps are listed in order, with those that only earlier pipelines of the page have.
    """
    steps, _ = _listed(pipeline)
    gains, links = _gains(), _known(pipeline)
    step_of = {step.name: step for chapter in (*EARLIER.get(pipeline, ()), pipeline) for step in _loaded(chapter)}
    rows = []
    for number, name in enumerate(steps, start=1):
        link = links.get(name, f"{PAGES[pipeline]}#{number}-{name}")
        step = step_of[name]
        cells = {"": str(number), "step": f"[{name}]({link})", "optional": "yes" if step.optimization else ""}
        rows.append({**cells, "what it does": step.summary(), "gain": gains.get(name, "")})
    return table(rows)


def steps_text(pipeline: str) -> str:
    """Returns the steps of a page that no earlier page describes: the head comment of each script, and its gain.

    Args:
        pipeline: its steps are in order, and numbered as in its index.
    """
    gains, links = _gains(), _known(pipeline)
    steps, alone = _listed(pipeline)
    step_of = {step.name: step for chapter in (*EARLIER.get(pipeline, ()), pipeline) for step in _loaded(chapter)}
    parts = []
    for number, name in enumerate(steps, start=1):
        if name in links:
            continue
        gain = f"; gain {gains[name]}" if name in gains else ""
        step = step_of[name]
        kind = "optimization" if step.optimization else "lowering"
        ops = ", ".join(f"`{dialect}`" for dialect in step.dialects) or "upstream ops"
        link = f"[{step.path.name}](../{step.path.relative_to(ROOT).as_posix()})"
        only = f"; in {alone[name]} only" if name in alone else ""
        title = f"## {number}. {name}\n\n"
        parts.append(f"{title}{link}: {kind}, {ops}{only}{gain}.\n\n{_markdown(_head_comment(step))}\n")
    return "\n".join(parts)


REGIONS: dict[str, Callable[[], str]] = {
    f"{region} {pipeline}": partial(text, pipeline)
    for pipeline in ("wmma", "mma_sync", "wgmma")
    for region, text in (("steps", steps_text), ("index of steps", index_text))
}
