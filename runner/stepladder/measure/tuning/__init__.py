"""Measured knobs of one's own: the database that keeps them, and the two halves of `stepladder tune` that fill it."""
