"""`python -m karat`: the command line, where the program itself is not on the search path."""

import sys

from karat.cli import main

if __name__ == "__main__":
    sys.exit(main())
