"""Texts of payloads: types, maps and linalg ops on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Computes an iteration: takes the names of the elements and that of the result so far, returns ops that make `%r`.
Body = Callable[[list[str], str], str]


def tensor_type(shape: Sequence[int], element: str) -> str:
    """Returns the type of a tensor.

    Args:
        shape: its extents.
        element: type of its elements.
    """
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def map_text(loops: int, results: Sequence[int]) -> str:
    """Returns an affine map of loops to axes.

    Args:
        loops: how many there are.
        results: the loop along each axis.
    """
    names = ", ".join(f"d{loop}" for loop in range(loops))
    return f"affine_map<({names}) -> ({', '.join(f'd{loop}' for loop in results)})>"


def generic(
    name: str,
    loops: Sequence[tuple[int, str]],
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    result: tuple[Sequence[int], str, str],
    body: Body,
) -> str:
    """Returns a `linalg.generic`.

    Args:
        name: of the result.
        loops: extents and kinds.
        inputs: names, element types, and the loops along their axes.
        result: loops along its axes, its element type, and a constant that it begins with, if that is not empty.
        body: computes an iteration.
    """
    kept, element, start = result
    type_ = tensor_type([loops[loop][0] for loop in kept], element)
    maps = [map_text(len(loops), axes) for *_, axes in inputs] + [map_text(len(loops), kept)]
    types = [tensor_type([loops[loop][0] for loop in axes], own) for _, own, axes in inputs]
    text = f"  %{name}_0 = tensor.empty() : {type_}\n"
    outs = f"%{name}_0"
    if start:
        text += f"  %{name}_1 = arith.constant {start} : {element}\n"
        text += f"  %{name}_2 = linalg.fill ins(%{name}_1 : {element}) outs(%{name}_0 : {type_}) -> {type_}\n"
        outs = f"%{name}_2"
    names = [f"%e{place}" for place in range(len(inputs))]
    arguments = ", ".join(f"{own}: {element}" for own, (_, element, _) in zip(names, inputs))
    kinds = ", ".join(f'"{kind}"' for _, kind in loops)
    return f"""{text}  %{name} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{kinds}]}}
      ins({", ".join(own for own, *_ in inputs)} : {", ".join(types)}) outs({outs} : {type_}) {{
  ^bb0({arguments}, %o: {element}):
{body(names, "%o")}    linalg.yield %r : {element}
  }} -> {type_}
"""
