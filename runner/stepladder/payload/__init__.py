"""Payloads: what a module computes, and writing new ones."""
