"""Entry of ``python -m pysolvers``."""

from ._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
