"""Prints the names in a folder of dumps without their numbers, which must count from 00: dump_names.py FOLDER"""

import re
import sys
from pathlib import Path

count = 0
for name in sorted(path.name for path in Path(sys.argv[1]).iterdir()):
    if found := re.match(r"(\d\d)-", name):
        if int(found[1]) != count:
            sys.exit(f"{name} stands where number {count:02} should")
        count += 1
        name = name[found.end() :]
    print(name)
