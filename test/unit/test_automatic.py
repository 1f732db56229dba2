"""The pipeline `auto` passes over refusals silently, and over failures with a warning."""

import pytest

from stepladder.pipeline.automatic import first_of
from stepladder.runtime.errors import FAILED, StepladderError


@pytest.mark.parametrize(
    "traceback, warning", [("", ""), ("IndexError", "warning: the pipeline 'wgmma' failed, mma_sync")]
)
def test_a_failure_is_said(traceback: str, warning: str, capsys: pytest.CaptureFixture[str]) -> None:
    def compile_by(pipeline: str) -> str:
        if pipeline == "wgmma":
            raise StepladderError("step 'tile_k': tc.tile raised IndexError", status=FAILED, traceback=traceback)
        return pipeline

    assert first_of(("wgmma", "mma_sync", "wmma"), compile_by) == "mma_sync"
    said = capsys.readouterr().err
    assert said.startswith(warning) and bool(said) == bool(warning)
