"""Run the command line as ``python -m kvref``."""

from kvref.cli import main

if __name__ == "__main__":
    main()
