"""Registers that warpgroups of a block give back and take."""

import numpy as np
import pytest

import ptx_kernels
from llvm_kernels import kernel, kinds, run
from stepladder.emulator.core.emulation import Outcome
from stepladder.emulator.hardware import registers

# The first warpgroup and the others part.
ROLES = """
      %c128 = llvm.mlir.constant(128 : i32) : i32
      %first = llvm.icmp "ult" %t, %c128 : i32
      llvm.cond_br %first, ^producer, ^consumer
    ^producer:
      {producer}
      llvm.br ^end
    ^consumer:
      {consumer}
      llvm.br ^end
    ^end:
      llvm.return"""


def roles(producer: str, consumer: str, attributes: str = "", threads: int = 384) -> Outcome:
    body = ROLES.format(producer=producer, consumer=consumer)
    text = kernel(body, element="i32", threads=threads, size=threads)
    _, outcome = run(
        text.replace("{gpu.kernel, nvvm.kernel", "{gpu.kernel, nvvm.kernel" + attributes), np.arange(threads)
    )
    return outcome


GIVE, TAKE = "nvvm.setmaxregister decrease {}", "nvvm.setmaxregister increase {}"


@pytest.mark.parametrize(
    "producer, consumer, attributes",
    [
        (GIVE.format(40), TAKE.format(232), ""),
        (GIVE.format(24), TAKE.format(240), ", nvvm.minctasm = 1 : i32"),
        (GIVE.format(40), TAKE.format(88), ", nvvm.maxnreg = 80 : i32"),
        (GIVE.format(40), GIVE.format(64), ""),
    ],
)
def test_what_a_block_has(producer: str, consumer: str, attributes: str) -> None:
    assert not roles(producer, consumer, attributes).findings


@pytest.mark.parametrize(
    "producer, consumer, attributes, says",
    [
        (GIVE.format(48), TAKE.format(232), "", "232 registers per thread, 29696 in all: the block has 64512, and its"),
        ("", TAKE.format(232), "", "other warpgroups hold"),
        (GIVE.format(40), TAKE.format(232), ", nvvm.minctasm = 2 : i32", "the block has 30720"),
        (GIVE.format(40), TAKE.format(104), ", nvvm.maxnreg = 80 : i32", "the block has 30720"),
    ],
)
def test_more_than_a_block_has(producer: str, consumer: str, attributes: str, says: str) -> None:
    outcome = roles(producer, consumer, attributes)
    assert kinds(outcome) == {"registers", "deadlock"}
    (finding,) = [finding for finding in outcome.findings if finding.kind == "registers"]
    assert finding.op == "nvvm.setmaxregister" and finding.location.startswith("kernel.mlir:")
    assert "no setmaxnreg.dec releases the registers that it requests" in finding.message and says in finding.message


@pytest.mark.parametrize(
    "ops, says",
    [
        ((GIVE.format(40), GIVE.format(64)), "keeps 64 registers per thread, and each has 40"),
        ((GIVE.format(64), TAKE.format(40)), "requests 40 registers per thread, and each has 64"),
    ],
)
def test_the_other_way(ops: tuple[str, str], says: str) -> None:
    found = [finding.message for finding in roles("\n".join(ops), "").findings]
    assert found == [says]
    assert not roles(ops[0] + "\n" + TAKE.format(168), "").findings


def test_less_than_it_was_launched_with() -> None:
    """A block of 256 threads has 256 registers for each at most; ptxas may have taken fewer."""
    assert not roles(GIVE.format(40), TAKE.format(232), threads=256).findings


@pytest.mark.parametrize("taken, found", [(232, set()), (240, {"registers", "deadlock"})])
def test_ptx(taken: int, found: set[str]) -> None:
    body = f"""
  setp.lt.u32 %p1, %t, 128;
  @%p1 bra GIVE;
  setmaxnreg.inc.sync.aligned.u32 {taken};
  bra END;
GIVE:
  setmaxnreg.dec.sync.aligned.u32 40;
END:"""
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(body), threads=384)
    assert ptx_kernels.kinds(outcome) == found


def test_registers_at_launch() -> None:
    assert registers.at_launch(384) == 168
    assert registers.at_launch(384, blocks=2) == 80
    assert registers.at_launch(128) == 256
    assert registers.at_launch(128, limit=100) == 104
