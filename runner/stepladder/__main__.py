"""`python3 -m stepladder`, for a checkout that is not installed."""

import sys

from stepladder.cli.entry import stepladder

sys.exit(stepladder())
