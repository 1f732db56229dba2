"""FileCheck, as the package `filecheck` has it, without the import that takes half of its start-up time.

The package imports `importlib.metadata` for `--version` alone. The suite runs FileCheck several hundred times.
"""

import sys
import types

sys.modules["importlib.metadata"] = types.ModuleType("importlib.metadata")

from filecheck.main import main

if __name__ == "__main__":
    main()
