"""The ops that the emulator executes, one module a dialect or a part of one. The package imports all of them."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
