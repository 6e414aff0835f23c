"""`python -m mdmemory` is the command line."""

import sys

from mdmemory.cli import main

if __name__ == "__main__":
    sys.exit(main(prog_name="mdmemory"))
