"""Calls on tensors that are known: what the comparison with accepted tensors tells apart."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest

import stepladder
from stepladder.api import known_tensors


@pytest.mark.parametrize("guards", [True, False])
def test_tensors_of_another_form_are_checked(monkeypatch: pytest.MonkeyPatch, guards: bool) -> None:
    """Tensors of another form, at another address, or on another stream are not launched on without the checks."""
    torch = pytest.importorskip("torch")
    if not guards:
        monkeypatch.setattr(known_tensors, "_guards", lambda torch: None)
    launches = []
    loaded = SimpleNamespace(launcher=lambda addresses, stream: functools.partial(launches.append, stream))
    known = known_tensors.KnownTensors()
    a, b, out, other = torch.zeros(4, 8, 8)
    known.remember([a, b], [out], False, loaded, (), 5)
    for first in (a, a.view(8, 8)):
        assert known.launch((first, b), (out,), 5) == (out,)
    changed = a.view(8, 8)
    changed.resize_(4, 8)
    moved = a.view(8, 8)
    moved.data = other
    forms = [a.t(), a[:4], a[None], a.view(torch.int32), torch._neg_view(a), torch.nn.Parameter(a, False), changed]
    forms += [a.to_sparse(), a.to("meta"), a.numpy(), None, torch.zeros(8, 8), other, moved]
    for number, first in enumerate(forms):
        assert known.launch((first, b), (out,), 5) is None, number
    assert known.launch((a, b), (other,), 5) is None and known.launch((a, b), (out,), 6) is None
    assert known.launch((a, b), None, 5) is None
    assert known.launch((a,), (out,), 5) is None and known.launch((a, a), (out,), 5) is None
    known.remember([a, a], [out], False, loaded, (), 5)  # one tensor twice
    weight = a.clone().requires_grad_()
    known.remember([weight, b], [out], False, loaded, (), 5)
    assert known.launch((a, a), (out,), 5) == (out,) and known.launch((weight, b), (out,), 5) is None
    with torch.no_grad():
        assert known.launch((weight, b), (out,), 5) == (out,)
    assert launches == [5] * 4
    with pytest.raises(stepladder.ArgumentError, match="argument 'a' is a negative view"):
        stepladder.matmul(torch._neg_view(a), b, device="emulator")
