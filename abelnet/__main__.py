"""``python -m abelnet`` is the command line."""

from abelnet.cli.app import main

if __name__ == "__main__":
    main()
