"""Files of results and states: whole or not at all, and told apart."""

import os
import stat

import numpy as np
import pytest

from pysolvers import _files

KIND = "pysolvers test"


def write(path, **arrays):
    _files.write_npz(path, KIND, {"number": 0.1}, arrays or {"u": np.arange(3.0)})


def test_file_gives_back_what_was_written(tmp_path):
    write(tmp_path / "a")

    facts, arrays = _files.read_npz(tmp_path / "a", KIND)

    assert facts == {"number": 0.1}
    assert list(arrays) == ["u"]
    np.testing.assert_array_equal(arrays["u"], np.arange(3.0))
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


class Interrupting:
    """An array-like whose values are not there before the user has had enough."""

    def __array__(self, dtype=None, copy=None):
        raise KeyboardInterrupt


def test_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "a")
    old = (tmp_path / "a").read_bytes()

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", u=np.zeros(9), v=Interrupting())

    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == old


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*none'$"):
        write(tmp_path / "none" / "a")


def spoil(path, kind):
    """Put something else in the place of a file."""
    if kind == "other":
        np.savez(path, u=np.zeros(3))
    elif kind == "array":
        with open(path, "wb") as stream:
            np.save(stream, np.zeros(3))
    elif kind == "pickle":
        with open(path, "wb") as stream:
            np.savez(stream, header=np.array({"kind": KIND}, object))
    else:
        data = path.read_bytes()
        texts = {
            "text": b"nothing of that",
            "empty": b"",
            "cut": data[:-40],
            "changed": data.replace(np.float64(2.0).tobytes(), bytes(8)),
        }
        path.write_bytes(texts[kind])


@pytest.mark.parametrize("kind", ["other", "array", "pickle", "text", "empty", "cut", "changed"])
def test_what_is_no_such_file_is_told_by_name(tmp_path, kind):
    path = tmp_path / "a.npz"
    write(path)
    spoil(path, kind)

    with pytest.raises(ValueError, match=r"a\.npz' holds no pysolvers test, or only a part of it"):
        _files.read_npz(path, KIND)


def test_another_kind_is_told(tmp_path):
    write(tmp_path / "a")

    with pytest.raises(ValueError, match="holds no pysolvers result"):
        _files.read_npz(tmp_path / "a", "pysolvers result")


def test_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        _files.read_npz(tmp_path / "a", KIND)
