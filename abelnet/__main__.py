"""The command line, as ``python -m abelnet`` and as the script ``abelnet``."""

from __future__ import annotations

__all__ = ["main"]

import sys

_INTERRUPTED = 130  # 128 plus SIGINT, as shells report it


def main() -> None:
    """Runs the command line; a Ctrl-C while it is being imported is one line too."""
    try:
        from abelnet.cli import main as run

        run()
    except KeyboardInterrupt:
        print("abelnet: interrupted", file=sys.stderr)
        raise SystemExit(_INTERRUPTED) from None


if __name__ == "__main__":
    main()
