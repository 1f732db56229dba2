"""Layers of an LSTM as PyTorch computes them on a CPU, and their gradients, as ops on the states of each step.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

_LSTM = 2  # of the kinds that oneDNN numbers


def _steps(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    hidden: torch.Tensor,
    cell: torch.Tensor,
    has_biases: bool,
) -> list[tuple[torch.Tensor, ...]]:
    """Returns for each step, in order: the states before it, its gates, and the states after it.

    Args:
        x: of each step, (steps, batch, features).
        weights: of the input, of the hidden state, and their biases; rows are those of four gates.
        hidden, cell: the states before the first step, (1, batch, features) or (batch, features).
        has_biases: whether the biases are used.
    """
    of_input, of_hidden, *biases = weights
    hidden, cell = (state.reshape(x.shape[1], -1) for state in (hidden, cell))
    sums = torch.nn.functional.linear(x, of_input, biases[0] + biases[1] if has_biases else None)
    found = []
    for step in range(x.shape[0]):
        parts = (sums[step] + torch.nn.functional.linear(hidden, of_hidden)).chunk(4, -1)
        enters, stays, leaves = (torch.sigmoid(parts[number]) for number in (0, 1, 3))
        new = torch.tanh(parts[2])
        new_cell = stays * cell + enters * new
        new_hidden = leaves * torch.tanh(new_cell)
        found.append((hidden, cell, enters, stays, new, leaves, new_hidden, new_cell))
        hidden, cell = new_hidden, new_cell
    return found


def _layer(
    x: torch.Tensor,
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    input_bias: torch.Tensor,
    hidden_bias: torch.Tensor,
    hidden: torch.Tensor,
    cell: torch.Tensor,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> Any:  # noqa: ANN401
    """Returns the hidden states and the last states of a layer; arguments as of `aten.mkldnn_rnn_layer`.

    The last result is what oneDNN keeps for the gradients, which are computed without it.
    """
    # A layer in one direction, whose steps are its first axis, whatever the other arguments say.
    if mode != _LSTM or batch_sizes:
        return NotImplemented
    x = x.flip(0) if reverse else x
    steps = _steps(x, (of_input, of_hidden, input_bias, hidden_bias), hidden, cell, has_biases)
    states = [step[-2] for step in (reversed(steps) if reverse else steps)]
    kept = torch.zeros(1, dtype=torch.uint8, device=x.device)
    return torch.stack(states), steps[-1][-2].reshape(hidden.shape), steps[-1][-1].reshape(cell.shape), kept


def _of_layer(
    x: torch.Tensor,
    of_input: torch.Tensor,
    of_hidden: torch.Tensor,
    input_bias: torch.Tensor,
    hidden_bias: torch.Tensor,
    hidden: torch.Tensor,
    cell: torch.Tensor,
    result: torch.Tensor,
    last_hidden: torch.Tensor,
    last_cell: torch.Tensor,
    of_result: torch.Tensor | None,
    of_last_hidden: torch.Tensor | None,
    of_last_cell: torch.Tensor | None,
    reverse: bool,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    train: bool,
    bidirectional: bool,
    batch_sizes: Sequence[int],
    batch_first: bool,
    kept: torch.Tensor,
) -> Any:  # noqa: ANN401
    """Returns the gradients of a layer, whose steps are computed again; arguments as of
    `aten.mkldnn_rnn_layer_backward`."""
    # A layer in one direction, whose steps are its first axis, whatever the other arguments say.
    if mode != _LSTM or batch_sizes:
        return NotImplemented
    x = x.flip(0) if reverse else x
    steps = _steps(x, (of_input, of_hidden, input_bias, hidden_bias), hidden, cell, has_biases)
    of_state, of_cell = (
        x.new_zeros(x.shape[1], hidden_size) if item is None else item.reshape(x.shape[1], hidden_size)
        for item in (of_last_hidden, of_last_cell)
    )
    of_sums: list[torch.Tensor] = []
    for number in reversed(range(len(steps))):
        _, old_cell, enters, stays, new, leaves, _, new_cell = steps[number]
        if of_result is not None:
            of_state = of_state + of_result[len(steps) - 1 - number if reverse else number]
        shown = torch.tanh(new_cell)
        of_cell = of_cell + of_state * leaves * (1 - shown * shown)
        parts = (
            of_cell * new * enters * (1 - enters),
            of_cell * old_cell * stays * (1 - stays),
            of_cell * enters * (1 - new * new),
            of_state * shown * leaves * (1 - leaves),
        )
        of_sums.insert(0, torch.cat(parts, -1))
        of_state = torch.matmul(of_sums[0], of_hidden)
        of_cell = of_cell * stays
    every = torch.stack(of_sums)
    rows = every.flatten(0, 1)
    of_x = torch.matmul(every, of_input)
    before = torch.stack([step[0] for step in steps])
    of_bias = rows.sum(0)
    return (
        of_x.flip(0) if reverse else of_x,
        torch.matmul(rows.T, x.flatten(0, 1)),
        torch.matmul(rows.T, before.flatten(0, 1)),
        of_bias,
        of_bias.clone(),
        of_state.reshape(hidden.shape),
        of_cell.reshape(cell.shape),
    )


# Ops, and functions of their arguments that return the same.
TABLE = {
    torch.ops.aten.mkldnn_rnn_layer.default: _layer,
    torch.ops.aten.mkldnn_rnn_layer_backward.default: _of_layer,
}
