"""What results show of themselves in a notebook."""

from collections.abc import Mapping

__all__ = ["html_table"]


def html_table(caption: str, rows: Mapping[str, str]) -> str:
    """Return a table of two columns, names and texts, in HTML."""
    cells = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
    return f"<table><caption>{caption}</caption>{cells}</table>"
