"""Programs, control flow and the machine that executes ops."""
