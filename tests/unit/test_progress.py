"""Progress bars: on a terminal, and nowhere else."""

import io
import sys

import pytest

from pysolvers import _progress

tqdm = pytest.importorskip("tqdm")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def bars(monkeypatch):
    """The bars that are made, each with its options and what it was told."""
    made = []

    class Bar:
        def __init__(self, items=None, **options):
            self.items, self.options, self.told = items, options, []
            made.append(self)

        def __iter__(self):
            return iter(self.items)

        def set_postfix(self, values, refresh):
            self.told.append(values)

        def update(self, count):
            self.told.append(count)

        def close(self):
            self.told.append("closed")

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    return made


def test_no_bar_where_nobody_looks(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(None, "steps") as bar:
        bar.update(3, 0.5)

    assert bars == []
    assert sys.stderr.getvalue() == ""


def test_bar_on_a_terminal_after_a_second(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(None, "steps", "time", total=7) as bar:
        bar.update(3, 0.5)

    assert bars[1].options["total"] == 7
    assert [bar.options["desc"] for bar in bars] == ["items", "steps"]
    assert all(bar.options["delay"] == 1.0 for bar in bars)
    assert all(bar.options["file"] is sys.stderr for bar in bars)
    assert bars[1].told == [{"time": "5.0e-01"}, 3, "closed"]


def test_bar_may_be_wanted_or_not(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with _progress.IterationBar(False, "steps"):
        pass
    assert bars == []

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.IterationBar(True, "steps"):
        pass
    assert len(bars) == 1


def test_no_bar_without_tqdm(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", None)

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(True, "steps") as bar:
        bar.update(1, 1.0)

    assert sys.stderr.getvalue() == ""
