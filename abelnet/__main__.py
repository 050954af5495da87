"""``python -m abelnet`` is the command line."""

from abelnet.cli import main

if __name__ == "__main__":
    main()
