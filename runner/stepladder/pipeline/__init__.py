"""Pipelines of transform scripts: the library of steps, knobs, and the run over a payload."""
