"""Neutral elements of folds of floating-point numbers: values that threads without a term begin from.

They change no bit: 0.0 would change sums of -0.0 alone, and an infinity extrema of NaN alone where the op ignores NaN.
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
