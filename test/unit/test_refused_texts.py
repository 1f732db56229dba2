"""Texts of options, and files of bundles, that are none: one message, which names what is wrong."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.cli import kernel_options, options
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.bundle.function_files import parse_function_manifest
from stepladder.runtime.bundle.manifest_reading import parse_manifest
from stepladder.runtime.errors import StepladderError


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (options.binding, "M", "'M' is not NAME=SIZE, for example M=4096 or arg0.1=512"),
        (options.binding, "=4", "'=4' is not NAME=SIZE, for example M=4096 or arg0.1=512"),
        (options.setting, "block_m", "'block_m' is not KNOB=VALUE, for example block_m=128"),
        (options.names, " , ", "' , ' has no names; expected STEP[,STEP]"),
        (parse_manifest, "{", "not valid JSON (Expecting property name enclosed in double quotes)"),
        (parse_function_manifest, "{", "not valid JSON (Expecting property name enclosed in double quotes)"),
    ],
)
def test_texts_that_are_none(parse: Callable, text: str, message: str) -> None:
    arguments = (text,) if parse in (options.binding, options.names, options.setting) else (text, "manifest.json")
    with pytest.raises((argparse.ArgumentTypeError, StepladderError)) as caught:
        parse(*arguments)
    assert str(caught.value).removeprefix("manifest.json: ").startswith(message)


def test_sizes_of_a_launch() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    kernel_options.add_options(parser)
    assert parser.parse_args(["--grid", "2,3"]).grid == (2, 3, 1)
    with pytest.raises(argparse.ArgumentError, match="'1,2,3,4' has more than three sizes"):
        parser.parse_args(["--block", "1,2,3,4"])


def test_a_manifest_that_is_no_json(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("{")
    with pytest.raises(StepladderError, match="not valid JSON") as caught:
        read_bundle(bundle)
    assert str(caught.value.location).endswith("manifest.json:1:2")


def test_a_file_of_a_bundle_that_is_a_folder(bundle: Path) -> None:
    name = next(name for name in json.loads((bundle / "manifest.json").read_text())["files"])
    (bundle / name).unlink()
    (bundle / name).mkdir()
    with pytest.raises(StepladderError, match="cannot read bundle file"):
        read_bundle(bundle)
