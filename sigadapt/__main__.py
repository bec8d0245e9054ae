"""`python -m sigadapt`: the command, where its script is not on the path."""

import sys

from sigadapt.commands.cli import main

sys.exit(main())
