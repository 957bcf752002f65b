"""Renew the tables and the pictures of README.md and the documentation from the committed records.

python -m pysolvers bench documents                  # all that is made of records
python -m pysolvers bench documents tables           # the tables alone
python -m pysolvers bench documents tables --check   # exit code 1 if one is not of its record
python -m pysolvers bench documents gallery street   # pictures that take a few minutes
"""

import argparse
import sys
from importlib import import_module

# What is renewed -> the module that does it.
PICTURES = {
    "jobs": "jobs_picture",
    "speed": "speed_picture",
    "small": "small_picture",
    "roofline": "roofline_picture",
    "distributed": "distributed_picture",
}
SLOW = {
    "gallery": "gallery",
    "street": "street_film",
    "cavity": "cavity_picture",
    "dt": "dt_picture",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help="what to renew; by default the tables and the pictures of records",
    )
    parser.add_argument("--check", action="store_true", help="write nothing, compare the tables")


def run(args: argparse.Namespace) -> int:
    """Renew or check the parts that are named and return the exit code."""
    from . import tables

    if args.check:
        stale = tables.stale_pages()
        for name in stale:
            print(f"{name}: a table is not that of its record", file=sys.stderr)
        return 1 if stale else 0
    known = ("tables", *PICTURES, *SLOW)
    parts = args.parts or ["tables", *PICTURES]
    if unknown := set(parts) - set(known):
        raise ValueError(f"the parts are {', '.join(known)}, got {', '.join(sorted(unknown))}")
    if "tables" in parts:
        tables.renew()
    for part in (part for part in parts if part != "tables"):
        import_module(f".{ {**PICTURES, **SLOW}[part] }", __name__).renew()
    return 0
