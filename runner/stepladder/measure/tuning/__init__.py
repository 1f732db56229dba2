"""Tuned knobs: the database that stores them, and the two halves of `stepladder tune` that fill it."""
