#!/usr/bin/env python3
"""Print the CPU seconds of each translation unit of the last build, slowest first, and the sizes
of the modules.

The build keeps the seconds next to its object files in build/objects.
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def times(module: str) -> list[tuple[float, str]]:
    """Return CPU seconds and path of the translation units of a module, slowest first.

    Records of files that no longer exist are left out.
    """
    folder = ROOT / "build" / "objects" / module
    units = {r: r.relative_to(folder).with_suffix("") for r in folder.rglob("*.seconds")}
    return sorted(
        (
            (float(record.read_text()), unit.as_posix())
            for record, unit in units.items()
            if any((ROOT / unit).with_suffix(end).exists() for end in (".c", ".cu"))
        ),
        reverse=True,
    )


def report(module: str, most: int) -> str:
    """Return the table of one module as text."""
    units = times(module)
    total = sum(seconds for seconds, _ in units)
    lines = [f"{module}: {len(units)} translation units, {total:.0f} CPU s"]
    lines += [f"{seconds:8.1f} s  {path}" for seconds, path in units[:most]]
    lines += [
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB"
        for path in sorted((ROOT / "pysolvers").glob(f"{module}.*so"))
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the tables of the modules that were built."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=20, help="units to list for each module")
    most = parser.parse_args().most
    print("\n\n".join(report(m, most) for m in ("_core", "_cuda") if times(m)))


if __name__ == "__main__":
    main()
