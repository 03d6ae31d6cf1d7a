"""The command line: ``seraphim`` and ``python -m seraphim``."""

from __future__ import annotations

import sys


def main() -> int:
    from seraphim import _native

    return _native.run_command(["seraphim", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
