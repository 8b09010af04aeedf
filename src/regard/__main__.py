"""`python -m regard` is `regard`."""

import sys

from regard.cli.main import main

sys.exit(main())
