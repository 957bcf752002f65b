"""Fields and arrays on a device of protected memory are those of the host after every operation."""

import copy
import pickle

import fake_device
import numpy as np
import pytest

from pysolvers import BackendError
from pysolvers._runtime.device import Device, address_of, is_device_array
from pysolvers._runtime.fields import HostFields, make_fields

PARTS = [
    np.s_[:, :],
    np.s_[2:5],
    np.s_[:, 1:3],
    np.s_[1::2, ::-1],
    np.s_[::-2, 3],
    np.s_[3:3],
]


@pytest.fixture
def fake():
    with fake_device.in_place_of_cuda() as found:
        yield found


@pytest.fixture
def device(fake):
    return Device(fake, 0, "test")


@pytest.fixture
def fields(fake, rng):
    layout = {
        "u": ((6, 5), "f8"),
        "v": ((6, 5), "f8"),
        "count": ((1,), "f4"),
        "none": ((0, 3), "f8"),
    }
    pair = HostFields(layout), make_fields(layout, "cuda", "HeatADI")
    for name in ("u", "v"):
        values = rng.standard_normal((6, 5))
        for each in pair:
            each.set(name, values)
    return pair


def check_same(fields):
    host, there = fields
    for name in ("u", "v", "count", "none"):
        np.testing.assert_array_equal(there.get(name), host.get(name))


@pytest.mark.parametrize("at", PARTS, ids=str)
def test_parts_are_read_and_written(fields, rng, at):
    shape = fields[0].get("u")[at].shape
    values = np.asfortranarray(rng.standard_normal(shape))
    for each in fields:
        each.set_part("u", at, values + 1)
        np.testing.assert_array_equal(each.part("u", at), values + 1)
        each.operand("u")  # the array of the host is not the current one
        each.set_part("u", at, values)
        np.testing.assert_array_equal(each.part("u", at), values)
        each.get("u")
        np.testing.assert_array_equal(each.part("u", at), values)
    check_same(fields)


@pytest.mark.parametrize("at", PARTS, ids=str)
def test_products_are_added_to_parts(fields, rng, at):
    shape = fields[0].get("u")[at].shape
    factor, values = rng.standard_normal((1,) * len(shape)), rng.standard_normal(shape)
    for each in fields:
        each.add_product("u", at, each.hold(factor), values)
    check_same(fields)


def test_fields_are_copied_and_exchanged(fields):
    u, v = (fields[0].get(name).copy() for name in "uv")
    for each in fields:
        each.swap("u", "v")
        each.operand("u")
        np.testing.assert_array_equal(each.get("u"), v)
        each.copy("u", "v")
    check_same(fields)
    np.testing.assert_array_equal(fields[1].get("u"), u)


def test_values_that_the_host_writes_reach_the_device(fields, device):
    for each in fields:
        each.blank("u")[...] = 3
        each.changed("u")
        each.operand("u")
    check_same(fields)


def test_fields_on_a_device_are_neither_pickled_nor_copied(fields):
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"a HeatADI on a device.*HeatADI\.load"):
            way(fields[1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4"])
def test_copies_keep_values_and_order_of_axes(device, rng, dtype):
    array = rng.integers(-9, 9, (3, 4, 5)).astype(dtype)
    for view in (array, array.T, array[::-1, ::2], array[1], np.broadcast_to(array[:1], (7, 4, 5))):
        there = device.upload(view)
        assert is_device_array(there) and is_device_array(there[1:]) and is_device_array(there.T)
        order = np.argsort(np.abs(view.strides), kind="stable")
        assert (np.diff(np.array(there.strides)[order]) >= 0).all()
        np.testing.assert_array_equal(device.download(there), view)
        np.testing.assert_array_equal(device.download(device.copied(there[::-1])), view[::-1])
        held = device.hold(view)
        assert held.flags.c_contiguous
        np.testing.assert_array_equal(device.download(held.T), view.T)


def test_products_of_complex_numbers(device, rng):
    to, values = (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)) for _ in range(2))
    for factor in (values[0] * 2, values[0].real):
        there = device.upload(to)
        device.add_product(there, device.upload(factor), values)
        np.testing.assert_allclose(device.download(there), to + factor * values, rtol=1e-14)


def test_arrays_in_one_block_do_not_overlap(device, rng):
    arrays = {name: rng.standard_normal(n) for name, n in (("a", 3), ("none", 0), ("b", (40, 5)))}
    there = device.pack(arrays)
    starts = sorted(address_of(a) for a in there.values() if a.size)
    assert all((start - starts[0]) % 256 == 0 for start in starts)
    for name, values in arrays.items():
        np.testing.assert_array_equal(device.download(there[name]), values)
    device.write(there["a"], np.zeros(1))
    np.testing.assert_array_equal(device.download(there["b"]), arrays["b"])
    np.testing.assert_array_equal(device.download(there["a"]), 0)


def test_errors_name_the_operation(device):
    def failing(*_):
        return next(code for code, (name, _) in device.backend.STATUS.items() if name != "PS_OK")

    with pytest.raises((BackendError, ValueError), match=r"^test: "):
        device.enqueue(failing)


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.deepcopy, copy.copy])
def test_solvers_on_a_device_say_what_to_write_instead(duplicate):
    """Memory of a device is not read through the addresses of its arrays."""
    with fake_device.in_place_of_cuda():
        state = make_fields({"u": ((4, 5), np.float64)}, "cuda", "HeatADI")
        with pytest.raises(TypeError, match=r"on a device .* save\(\) .* HeatADI.load\(\)"):
            duplicate(state)
