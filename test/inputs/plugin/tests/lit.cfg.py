"""Tests of a user's steps, each in a file of its own: `lit -v FOLDER`."""

import os
import tempfile

import lit.formats

config.name = "occupancy"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(tempfile.gettempdir(), "occupancy-tests")
config.environment.update({name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ})
config.substitutions.append(("FileCheck", "filecheck"))
