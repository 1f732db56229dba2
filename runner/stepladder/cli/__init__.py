"""The command lines `stepladder` and `stepladder-opt`."""
