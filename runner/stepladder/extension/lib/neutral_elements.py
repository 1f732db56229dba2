"""Neutral elements of folds of floating-point numbers: initial values of threads without a term.

They change no bit of a result: 0.0 would change sums of -0.0 only, and an infinity would change extrema of NaN only, if
the op ignores NaN.
"""

import math

# By the name of the op of the dialect arith. Products are left out: few reductions accept them.
NEUTRAL_FLOATS = {
    "addf": -0.0,
    "maximumf": -math.inf,
    "maxnumf": math.nan,
    "minimumf": math.inf,
    "minnumf": math.nan,
}
