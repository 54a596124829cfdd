"""`python -m karat`: the command line, separate because it first takes the current folder off the module search path.

Python puts that folder first, so that `./json.py` or `./numpy.py` would be imported in place of the real module.
"""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) == os.path.realpath("."):
        home = sys.path.pop(0)
        if os.path.dirname(os.path.dirname(os.path.realpath(__file__))) == os.path.realpath(home):  # noqa: PTH120
            sys.path.append(home)  # worker processes import karat from there
    from karat.cli import main

    sys.exit(main())
