"""``python -m margintree`` is the same as ``margintree``."""

from margintree.cli import main

if __name__ == "__main__":
    main()
