"""`python3 -m stepladder`, for a checkout that is not installed."""

import sys

from stepladder.cli.main import main

sys.exit(main())
