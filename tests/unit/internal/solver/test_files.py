"""Files of results and states: whole or not at all, and refused by name when damaged or edited."""

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest
import saved_files

import pysolvers
from pysolvers import _core
from pysolvers._runtime import backends
from pysolvers._solver import files
from pysolvers._solver.schema import Member

KIND = "pysolvers test"


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def write(path, **arrays):
    files.write_npz(path, KIND, {"number": 0.1}, arrays or {"u": np.arange(3.0)})


def test_file_gives_back_what_was_written(tmp_path):
    write(tmp_path / "a")

    saved = files.read_npz(tmp_path / "a", KIND)

    assert saved.header({"number": lambda name, value: value}) == {"number": 0.1}
    arrays = saved.arrays({"u": Member((3,))})
    assert list(arrays) == ["u"]
    np.testing.assert_array_equal(arrays["u"], np.arange(3.0))
    assert arrays["u"].flags.writeable
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.float32(2.5),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(4).astype(">i4"),
        np.array([np.nan, np.inf, -0.0]),
    ],
    ids=["empty", "scalar", "fortran", "big-endian", "not-finite"],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_any_kind_come_back(tmp_path, array, compressed):
    write(tmp_path / "a", u=array)
    if compressed:
        header, arrays = saved_files.content((tmp_path / "a").read_bytes())
        data = saved_files.packed(header, arrays, save=np.savez_compressed)
        (tmp_path / "a").write_bytes(data)

    member = Member(np.shape(array), (array.dtype.newbyteorder("="),))
    found = files.read_npz(tmp_path / "a", KIND).arrays({"u": member})["u"]

    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(array))


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
@pytest.mark.parametrize("where", ["savez", "fsync", "replace"])
def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error, where):
    write(tmp_path / "a")
    old = (tmp_path / "a").read_bytes()

    def fail(stream, *_, **__):
        if where == "savez":
            stream.write(b"a part")
        raise error

    monkeypatch.setattr(np if where == "savez" else os, where, fail)
    with pytest.raises(type(error) if isinstance(error, OSError) else error):
        write(tmp_path / "a", u=np.zeros(9))

    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == old


def test_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    write(path)
    path.chmod(0o640)

    write(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "runs").mkdir()
    path, link = tmp_path / "runs" / "a", tmp_path / "latest"
    write(path)
    link.symlink_to(path)

    write(link, u=np.ones(5))

    assert link.is_symlink()
    with np.load(path) as found:
        np.testing.assert_array_equal(found["u"], np.ones(5))
    assert os.listdir(tmp_path / "runs") == ["a"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "read-only"])
def test_what_cannot_be_replaced_is_refused_and_stays(tmp_path, monkeypatch, kind):
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch(0o444)
        monkeypatch.setattr(os, "access", lambda *_: False)  # as for users that are not root
    before = path.stat()
    error = {"folder": IsADirectoryError, "pipe": OSError, "read-only": PermissionError}[kind]

    with pytest.raises(error, match=re.escape(str(path))):
        write(path)

    assert os.path.samestat(before, path.stat())
    assert os.listdir(tmp_path) == ["a"]


def test_objects_are_not_written(tmp_path):
    with pytest.raises(TypeError):
        write(tmp_path / "a", u=np.array([{}], object))

    assert os.listdir(tmp_path) == []


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*none'$"):
        write(tmp_path / "none" / "a")


@pytest.mark.parametrize("letter", ["a", "é"])
def test_longest_names_of_the_file_system_can_be_written(tmp_path, letter):
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    name = letter * (longest // len(letter.encode()))

    write(tmp_path / name)
    write(tmp_path / name)

    assert os.listdir(tmp_path) == [name]
    with pytest.raises(OSError, match="too long"):
        write(tmp_path / (name + letter))
    assert os.listdir(tmp_path) == [name]


# Stops in the middle of a save until it is killed or continued.
SAVER = """
import sys
import numpy as np
from pysolvers._solver import files

def savez(stream, save=np.savez, **arrays):
    stream.write(b"a part")
    stream.flush()
    print("saving", flush=True)
    sys.stdin.readline()
    stream.seek(0)
    stream.truncate()
    save(stream, **arrays)

np.savez = savez
files.write_npz(sys.argv[1], "pysolvers test", {"number": 0.2}, {"u": np.arange(2.0)})
"""


@contextlib.contextmanager
def saver(path):
    command = [sys.executable, "-c", SAVER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "saving\n"
            yield process
        finally:
            process.kill()


def test_next_save_removes_what_a_killed_one_left(tmp_path):
    write(tmp_path / "a")
    with saver(tmp_path / "a") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(os.listdir(tmp_path)) == 2

    write(tmp_path / "b")
    assert len(os.listdir(tmp_path)) == 3  # that of another name stays
    write(tmp_path / "a")

    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_save_leaves_the_temporary_file_of_a_living_process(tmp_path):
    with saver(tmp_path / "a") as process:
        write(tmp_path / "a")
        assert len(os.listdir(tmp_path)) == 2

        process.communicate("go on\n")

        assert process.returncode == 0
    assert os.listdir(tmp_path) == ["a"]
    saved = files.read_npz(tmp_path / "a", KIND)
    assert saved.header({"number": lambda name, value: value}) == {"number": 0.2}


def spoil(path, kind):
    """Put something else in the place of a file."""
    if kind == "other":
        np.savez(path, u=np.zeros(3))
    elif kind == "array":
        with open(path, "wb") as stream:
            np.save(stream, np.zeros(3))
    else:
        texts = {"text": b"nothing of that", "empty": b"", "cut": path.read_bytes()[:-40]}
        path.write_bytes(texts[kind])


@pytest.mark.parametrize("kind", ["other", "array", "text", "empty", "cut"])
def test_what_is_no_such_file_is_refused_by_name(tmp_path, kind):
    path = tmp_path / "a.npz"
    write(path)
    spoil(path, kind)

    with pytest.raises(ValueError, match=r"a\.npz' holds no pysolvers test, or only a part of it"):
        files.read_npz(path, KIND)


def test_another_kind_is_refused(tmp_path):
    write(tmp_path / "a")

    with pytest.raises(ValueError, match=r"holds no pysolvers result.*holds 'pysolvers test'"):
        files.read_npz(tmp_path / "a", "pysolvers result")


@pytest.mark.parametrize("number", [2, 0, "1", None, True, 1.5])
def test_another_format_is_refused_with_one_sentence(tmp_path, number):
    write(tmp_path / "a")
    header, arrays = saved_files.content((tmp_path / "a").read_bytes())
    assert header["format"] == files.FORMAT
    (tmp_path / "a").write_bytes(saved_files.packed({**header, "format": number}, arrays))

    with pytest.raises(ValueError, match=r"^'.*a' has the format .*reads the format 1 only$"):
        files.read_npz(tmp_path / "a", KIND)


def test_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.read_npz(tmp_path / "a", KIND)


class Bomb:
    """What no reader may ever call."""

    calls = 0

    def __reduce__(self):
        return explode, ()


def explode():
    Bomb.calls += 1
    return 1.0


EDITS = {
    "missing": (lambda a: None, "it is missing"),
    "one-value": (lambda a: a[(slice(0, 1),) * a.ndim], "got float64 with shape"),
    "longer": (lambda a: np.concatenate([a, a[:1]]), "got float64 with shape"),
    "transposed": (lambda a: a[None], "got float64 with shape"),
    "nan": (lambda a: np.where(np.arange(a.size).reshape(a.shape) == 1, np.nan, a), "finite"),
    "complex": (lambda a: a.astype(complex), "got complex128"),
    "float32": (lambda a: a.astype(np.float32), "got float32"),
    "integers": (lambda a: a.astype(np.int64), "got int64"),
    "text": (lambda a: a.astype(str), "got <U"),
    "pickle": (lambda a: np.full(a.shape, Bomb(), object), "Object arrays"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a file of each case."""
    folder, found = tmp_path_factory.mktemp("saved"), {}
    for name, (make, _, _) in saved_files.CASES.items():
        make().save(folder / name)
        found[name] = (folder / name).read_bytes()
    return found


def attempt(path, case):
    """Return what is loaded from a file, or None, and what its reader says against it."""
    try:
        return saved_files.CASES[case][1](path), ""
    except ValueError as error:
        return None, str(error)


def write_anew(path, data):
    """Write a new file: some file systems wait for the disk when a file loses its content."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def refusal(path, case, data):
    """Write data to a file, and return what its reader says against it."""
    write_anew(path, data)
    with pytest.raises(ValueError) as error:
        saved_files.CASES[case][1](path)
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.each_value
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("case", saved_files.CASES)
def test_edited_member_is_refused_by_name(case, edit, saved, tmp_path):
    header, arrays = saved_files.content(saved[case])
    change, text = EDITS[edit]

    for name, array in arrays.items():
        if array.dtype != np.float64 or array.size < 2:
            continue
        if edit in ("nan", "integers") and not np.isfinite(array).all():
            continue
        edited = {**arrays, name: change(array)}
        if edited[name] is None:
            del edited[name]
        said = refusal(tmp_path / "a.npz", case, saved_files.packed(header, edited))
        assert f"member {name!r}: " in said
        assert text in said
    assert Bomb.calls == 0


# Members whose legal shapes differ, or in which values that are not finite are legal.
LOOSE_SHAPES = {"lmsor": {"f", "g", "source"}, "plate": {"source"}}


@pytest.mark.each_value
@pytest.mark.parametrize("edit", ["missing", "one-value", "longer", "transposed", "float32"])
@pytest.mark.parametrize("case", [c for c in saved_files.CASES if not c.endswith("result")])
def test_member_that_was_edited_with_the_header_is_refused(case, edit, saved, tmp_path):
    header, arrays = saved_files.content(saved[case])

    for name, array in arrays.items():
        if edit == "one-value" and (array.size == 1 or name in LOOSE_SHAPES.get(case, ())):
            continue
        if edit == "longer" and name in ("history", "measures", "probes"):
            continue
        edited = {**arrays, name: EDITS[edit][0](array)}
        if edited[name] is None:
            del edited[name]
        data = saved_files.packed(saved_files.described(header, edited), edited)
        assert f"member {name!r}: " in refusal(tmp_path / "a.npz", case, data)


@pytest.mark.parametrize("case", saved_files.CASES)
def test_member_too_many_or_twice_is_refused(case, saved, tmp_path):
    header, arrays = saved_files.content(saved[case])
    data = saved_files.packed(header, {**arrays, "more": np.zeros(2)})

    assert "member 'more': it does not belong there" in refusal(tmp_path / "a", case, data)
    header = saved_files.described(header, {**arrays, "more": np.zeros(2)})
    data = saved_files.packed(header, {**arrays, "more": np.zeros(2)})
    assert "member 'more': it does not belong there" in refusal(tmp_path / "a", case, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = saved_files.with_member(saved[case], "header.npy", b"")
    assert "'header.npy' twice" in refusal(tmp_path / "a", case, data)
    data = saved_files.with_member(saved[case], "header", b"")
    assert "'header' twice or misnamed" in refusal(tmp_path / "a", case, data)


HEADERS = {
    "list": "[1, 2]",
    "text": '"a text"',
    "number": "1",
    "null": "null",
    "nothing": "",
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep-object": '{"kind":' * 100_000 + "0" + "}" * 100_000,
    "digits": "1" * 10_000,
    "twice": '{"kind": 1, "kind": 2}',
    "bytes": np.array(b"{}"),
    "many": np.array(["{}", "{}"]),
    "float": np.zeros(3),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_header_that_is_no_object_is_refused(kind, tmp_path, saved):
    _, arrays = saved_files.content(saved["heat"])

    said = refusal(tmp_path / "a", "heat", saved_files.packed(HEADERS[kind], arrays))

    assert "header" in said
    assert len(said) < 1000


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


SUBSTITUTES = [None, True, -1, 2**70, float("nan"), "text", [None], {"a": 1}]
EXTREMES = [2**40, 1e308, 1e-300]


@pytest.mark.parametrize("share", [24, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", saved_files.CASES)
def test_edited_header_is_refused_or_serves(case, share, saved, tmp_path):
    """Every entry becomes other kinds of values: an error, or an object that can be used.

    One function checks the entries of all files by their types: of the values each entry takes
    every 24th one, the next entry those after them; in the slow runs all.
    """
    continue_run = saved_files.CASES[case][2]
    header, arrays = saved_files.content(saved[case])
    path, refused = tmp_path / "a", 0

    for number, place in enumerate(saved_files.leaves(header)):
        extremes = EXTREMES if case.startswith("cavity") else []
        for value in [*SUBSTITUTES, *extremes, deep(500)][number % share :: share]:
            edited = saved_files.replaced(header, place, value)
            write_anew(path, saved_files.packed(edited, arrays))
            loaded, said = attempt(path, case)
            if loaded is None:
                assert str(path) in said, (place, value)
                assert len(said) < 1000
                refused += 1
                continue
            # Of a mapping with any keys.
            is_legal = place == ("seconds",) and value == {"a": 1}
            assert is_legal or not isinstance(value, list | dict), (place, value)
            with contextlib.suppress(pysolvers.ConvergenceError):
                continue_run(loaded)
            path.unlink()
            loaded.save(path)
    assert share * refused > len(list(saved_files.leaves(header)))


@pytest.mark.parametrize("case", saved_files.CASES)
def test_header_with_an_entry_less_or_more_is_refused(case, saved, tmp_path):
    header, arrays = saved_files.content(saved[case])

    whole = case in ("cavity", "cavity-jacobi", "heat", "relaxation-result")
    for place in [*saved_files.leaves(header)][:: 1 if whole else 3]:  # one function reads them all
        if place and isinstance(place[-1], str) and place[0] not in ("kind", "members"):
            edited = saved_files.replaced(header, place, 0)
            parent = edited
            for key in place[:-1]:
                parent = parent[key]
            del parent[place[-1]]
            is_free = place[0] == "seconds" and len(place) > 1
            if not is_free or whole:
                said = refusal(tmp_path / "a", case, saved_files.packed(edited, arrays))
                assert place[-1] in said
                parent["more"] = 1
                refusal(tmp_path / "a", case, saved_files.packed(edited, arrays))


def damaged(data, rng):
    """Return data with a few bits or a block changed."""
    found = bytearray(data)
    if rng.random() < 0.7:
        for _ in range(rng.integers(1, 4)):
            found[rng.integers(len(found))] ^= 1 << int(rng.integers(8))
    elif rng.random() < 0.7:
        start = rng.integers(len(found))
        length = int(rng.integers(1, 64))
        found[start : start + length] = bytes(len(found[start : start + length]))
    else:
        del found[rng.integers(len(found)) :]
    return bytes(found)


def fuzz(case, data, path, rounds):
    """Load damaged files: an equal object, or ValueError with the name of the file."""
    header, arrays = saved_files.content(data)
    refused = 0
    for seed in range(rounds):
        write_anew(path, damaged(data, np.random.default_rng(seed)))
        try:
            loaded, said = attempt(path, case)
        except Exception as error:
            raise AssertionError(f"{case}, seed {seed}: {error!r}") from error
        if loaded is None:
            assert str(path) in said, seed
            refused += 1
            continue
        loaded.save(path)
        other_header, other_arrays = saved_files.content(path.read_bytes())
        assert json.dumps(other_header) == json.dumps(header), seed
        assert other_arrays.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(other_arrays[name], array, err_msg=str(seed))
    assert refused > rounds // 2


@pytest.mark.each_value
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", saved_files.CASES)
def test_damaged_file_loads_equal_or_is_refused(case, compressed, saved, tmp_path, request):
    data = saved[case]
    if compressed:
        data = saved_files.packed(*saved_files.content(data), save=np.savez_compressed)

    fuzz(case, data, tmp_path / "a.npz", 50)


@pytest.mark.slow
@pytest.mark.parametrize("case", saved_files.CASES)
def test_many_damaged_files_load_equal_or_are_refused(case, saved, tmp_path):
    compressed = saved_files.packed(*saved_files.content(saved[case]), save=np.savez_compressed)

    for data in (saved[case], compressed):
        fuzz(case, data, tmp_path / "a.npz", 5000)


def npy_header(data, name, old, new):
    """Return a file whose member has another npy header of the same length, checksum right."""
    header, arrays = saved_files.content(data)
    data = saved_files.packed(header, {k: v for k, v in arrays.items() if k != name})
    stream = io.BytesIO()
    np.save(stream, arrays[name])
    contents = stream.getvalue()
    assert contents.count(old) == 1
    return saved_files.with_member(data, f"{name}.npy", contents.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"'<f8'", b"'|O' "),
        (b"'<f8'", b"'<f9'"),
        (b"'<f8'", b"((((("),
        (b"'<f8'", b"'<c8'"),
        (b"'<f8'", b"'<U0'"),
        (b"False", b"false"),
        (b"(5, 6)", b"(6, 6)"),
        (b"(5, 6)", b"(-5,6)"),
        (b"(5, 6)", b"(5, 9**9)"[:6]),
        (b"}", b"\0"),
        (b"{", b"\\"),
        (b"\x93NUMPY\x01", b"\x93NUMPY\x02"),
        (b"\x93NUMPY", b"\x93numpy"),
    ],
)
def test_damaged_header_of_an_array_is_refused(old, new, saved, tmp_path):
    said = refusal(tmp_path / "a", "heat", npy_header(saved["heat"], "t", old, new))

    assert "member 't': " in said


@pytest.mark.parametrize(
    ("case", "place", "value"),
    [
        ("heat", ("settings", "spacing", 0), 1e308),
        ("heat", ("settings", "spacing", 1), 1e-300),
        ("heat", ("seconds", "step"), -1.0),
    ],
)
def test_number_that_no_solver_has_is_refused_by_name(case, place, value, saved, tmp_path):
    header, arrays = saved_files.content(saved[case])
    if place[0] == "seconds":
        place = ("seconds", next(iter(header["seconds"])))

    said = refusal(
        tmp_path / "a", case, saved_files.packed(saved_files.replaced(header, place, value), arrays)
    )

    assert "header" in said and place[-2] in said


def test_sizes_are_believed_only_as_far_as_the_file_explains_them(saved, tmp_path):
    """A directory that promises more bytes than there are costs no memory, and changes nothing."""
    data, path = saved["heat"], tmp_path / "a"
    size = np.uint32(5 * 6 * 8 + 128).tobytes()
    assert data.count(size) >= 2
    path.write_bytes(data.replace(size, np.uint32(2**31).tobytes()))

    loaded, said = attempt(path, "heat")

    if loaded is None:
        assert re.search(r"holds no|member", said)
        return
    path.write_bytes(data)
    np.testing.assert_array_equal(loaded.u, attempt(path, "heat")[0].u)


def test_state_of_a_device_continues_on_a_host_without_one(saved, tmp_path, monkeypatch):
    header, arrays = saved_files.content(saved["heat"])
    there = saved_files.replaced(header, ("settings", "device"), "cuda:1")
    (tmp_path / "a").write_bytes(saved_files.packed(there, arrays))
    monkeypatch.setattr(backends, "_load", lambda name: _core if name == "cpu" else "no device")

    solver = saved_files.CASES["heat"][1](tmp_path / "a")

    assert (solver.settings.device, solver.steps) == (None, 3)


def test_diverged_state_can_be_saved_and_loaded(tmp_path):
    solver = saved_files.heat()
    solver._runner.state.set_fields({"t": np.full((5, 6), np.nan), "w": np.zeros((5, 6))})
    solver.save(tmp_path / "a")

    loaded = saved_files.CASES["heat"][1](tmp_path / "a")

    assert np.isnan(loaded.u).all()
