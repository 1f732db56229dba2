"""The dialect `xetile`: its IRDL text, its types and maps as Python objects, and its verification.

docs/xetile.md describes the programming model.
"""
