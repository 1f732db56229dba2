"""Prints the version of a SPIR-V module, the sub-group size of its kernel, and its variables behind a branch.

spirv_words.py kernel.spv
"""

import sys

import numpy as np

_EXECUTION_MODE, _FUNCTION, _LABEL, _VARIABLE = 16, 54, 248, 59
_SUBGROUP_SIZE = 35

words = np.fromfile(sys.argv[1], np.uint32).tolist()
assert words[0] == 0x07230203, "no SPIR-V"
print(f"version {words[1] >> 16}.{words[1] >> 8 & 255}")
place, labels, late = 5, 0, 0
while place < len(words):
    count, opcode = words[place] >> 16, words[place] & 0xFFFF
    if opcode == _EXECUTION_MODE and words[place + 2] == _SUBGROUP_SIZE:
        print(f"execution mode: SubgroupSize {words[place + 3]}")
    labels = 0 if opcode == _FUNCTION else labels + (opcode == _LABEL)
    late += opcode == _VARIABLE and labels > 1
    place += count
print(f"variables in loops: {late}")
