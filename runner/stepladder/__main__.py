"""`python3 -m stepladder`, for a checkout that is not installed."""

import sys

from .cli import main

sys.exit(main())
