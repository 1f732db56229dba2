"""MLIR text that its parser takes, and that Python cannot read or that ends the process, is refused with its place."""

from pathlib import Path

import pytest

from stepladder.mlir.unreadable import check_readable
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.files import read_text

NAMED = 'func.func @"{}"() {{\n  return\n}}\n'
RESOURCE = """func.func @f() -> tensor<2xf32> {{
  %c = arith.constant dense_resource<weight> : tensor<2xf32>
  return %c : tensor<2xf32>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      other: "0x040000000000000000000000",
      weight: "0x{}0000803F0000803F"
    }}
  }}
#-}}
"""


@pytest.mark.parametrize("name", ["a\\FFb", "\\C3", "\\\\\\E9", "é\\FF"])
@pytest.mark.parametrize("written", ['func.func @"{}"() {{ return }}', '"func.func"() <{{sym_name = "{}"}}>'])
def test_names_that_are_not_utf_8(name: str, written: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        parse_payload("\n" + written.format(name), "names.mlir")
    assert caught.value.message == f'the name "{name}" of a symbol is not UTF-8'
    assert caught.value.location.startswith("names.mlir:2:")


@pytest.mark.parametrize("name", ["\\C3\\A9", "\\\\FF", "a b", "\\00", "\\22", "é"])
def test_other_names_are_read(name: str) -> None:
    with mlir_context():
        parse_payload(NAMED.format(name), "names.mlir")


def test_a_resource_without_an_alignment() -> None:
    """MLIR allocates no memory with an alignment of 0, and ends the process."""
    with mlir_context():
        with pytest.raises(StepladderError) as caught:
            parse_payload(RESOURCE.format("00000000"), "resource.mlir")
        parse_payload(RESOURCE.format("04000000"), "resource.mlir")
    assert caught.value.render() == (
        "resource.mlir:9:15: error: the blob of resource weight has an alignment of 0, the first four bytes of its "
        "data\nnote: accepted: a power of two, such as 0x04000000"
    )


def test_long_data_is_searched_once() -> None:
    check_readable(RESOURCE.format("04000000" + "0" * 10_000_000), "resource.mlir")


def test_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "marked.mlir"
    file.write_bytes(b"\xef\xbb\xbf" + NAMED.format("f").encode())
    text, name = read_text(str(file))
    with mlir_context():
        parse_payload(text, name)
