"""The documents: their tables are what docs/results and the scripts give."""

import re
import subprocess
import sys

import pytest

from stepladder.runtime.resources import transforms_dir

RENDER = transforms_dir().parent / "benchmarks" / "render.py"


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_documents_are_up_to_date():
    done = subprocess.run([sys.executable, str(RENDER), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_results_name_no_place_of_a_machine():
    for path in sorted((RENDER.parents[1] / "results").glob("*.json")):
        places = re.findall(r'"/[^"]*"', path.read_text())
        assert not places, f"{path.name}: {places[0]}"
