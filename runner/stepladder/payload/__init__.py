"""Payloads: recognition of the computation of a module, and writing of new payloads."""
