"""Rewrites of a payload before its matmul is recognized: ops and forms that later stages do not take become ones that
they take. `expansions` runs most of them, in order."""
