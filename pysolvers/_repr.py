"""Text and HTML representations of results and solvers."""

from collections.abc import Mapping, Sequence
from html import escape
from math import inf
from typing import Any


class Shown:
    """A result that shows a caption and a few facts, not its arrays."""

    def _table(self) -> tuple[str, Mapping[str, str]]:
        """Return the caption, and names and texts of the facts."""
        raise NotImplementedError

    def __repr__(self) -> str:
        caption, facts = self._table()
        width = max(map(len, facts))
        return "\n".join([caption, *(f"  {name:{width}}  {facts[name]}" for name in facts)])

    def _repr_html_(self) -> str:
        caption, facts = self._table()
        cells = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in facts.items()
        )
        return f"<table><caption>{escape(caption)}</caption>{cells}</table>"


class ShownAsText:
    """A solver or a problem, which a notebook shows as its repr."""

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def residual_text(residual: float) -> str:
    """Return the part of a repr about a residual, which is infinite before it is measured."""
    return "" if residual == inf else f", residual {residual:.1e}"


def place_text(result: Any) -> str:
    """Return the backend, the kernel and the number of threads of a result, as far as known."""
    count = getattr(result, "threads", 0)
    threads = counted(count, "thread") if count else ""
    return ", ".join(filter(None, (result.backend, getattr(result, "kernel", ""), threads)))


def counted(count: int, noun: str) -> str:
    """Return a number and a noun, in the plural if there is not one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shape_text(shape: Sequence[int]) -> str:
    """Return the shape of a field, in the order of its axes: y before x."""
    return " × ".join(map(str, shape))


def steps_text(result: Any) -> str:
    """Return the number of steps of a result, and the length of a last one that is shorter."""
    shortened = f", the last of {result.last_dt:.3g}" if result.last_dt != result.dt else ""
    return f"{result.steps} steps of {result.dt:.3g}{shortened}"
