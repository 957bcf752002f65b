"""A device made of host memory that has the transforms of FastPoisson.

The transforms are those of SciPy: `transform_load` copies the values to the lines, the plan of
cuFFT does nothing, and `transform_store` transforms them.
"""

from itertools import pairwise
from threading import RLock

import fake_device
import numpy as np
import scipy
import scipy.linalg

from pysolvers._runtime.cufft import COMPLEX_TO_REAL

KINDS = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4", "rfft", "irfft")


class Device(fake_device.Device):
    """A device with the entries of transforms; `packs`: it solves packed waves."""

    SIZE = 1 << 27
    packs = True
    TRANSFORMS = dict(zip(KINDS, range(len(KINDS)), strict=True))  # noqa: RUF012

    def transform_shape(self, kind, size):
        pairs = 2 * (size // 2 + 1)
        before = pairs if KINDS[kind] == "irfft" else size
        after = pairs if KINDS[kind] == "rfft" else size
        return 0, before, after, size, pairs

    def transform_load(self, kind, size, field, lines, nbytes, scale, ordinal, stream):
        self.calls.append(("load", field.shape))
        with self.open():
            there = self._lines(field, lines, nbytes, size)
            there[...] = np.nan
            there[..., : field.shape[-1]] = field
        return 0

    def transform_store(self, kind, size, field, lines, nbytes, scale, ordinal, stream):
        name = KINDS[kind]
        with self.open():
            values = self._lines(field, lines, nbytes, size)
            if name == "rfft":
                waves = scipy.fft.rfft(values[..., :size])
                result = np.stack([waves.real, waves.imag], -1).reshape(field.shape)
            elif name == "irfft":
                waves = values[..., ::2] + 1j * values[..., 1::2]
                result = scipy.fft.irfft(waves, size) * size
            else:
                result = getattr(scipy.fft, name[:3])(values[..., :size], int(name[3]))
            field[...] = result * scale
        return 0

    def waves_fit(self, is_float32, planes, ordinal):
        return self.packs and planes > 1

    def waves_load(
        self, row_kind, kind, halvings, field, size, pitch, waves, nbytes, scale, edge,
        ordinal, stream,
    ):  # fmt: skip
        self.calls.append(("waves_load", field.shape))
        with self.open():
            if halvings < -1:
                kinds, folding = (row_kind, kind), self._row_folding(halvings, row_kind, field)
                return self._load_mirrored_rows(kinds, folding, field, waves, nbytes, scale)
            if halvings < 0:
                return self._load_mirrored((row_kind, kind), field, pitch, waves, nbytes, scale)
            field = self._continued(KINDS[kind], field, size)
            if halvings:
                return self._load_halved(KINDS[kind], halvings, field[:, 0], waves, nbytes)
            lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
            lines[...] = np.nan
            rows, values = self._order(field.shape, row_kind, kind)
            signs = self._signs(field.shape, row_kind, kind)
            ordered = (field * signs)[:, rows][:, :, values]
            if KINDS[kind] == "dct1":
                ordered = np.concatenate([ordered, ordered[..., -2:0:-1]], -1)
            if KINDS[kind] == "dst1":
                zero = np.zeros_like(ordered[..., :1])
                ordered = np.concatenate([zero, ordered, zero, -ordered[..., ::-1]], -1)
            lines[:, :, : ordered.shape[2]] = ordered
        return 0

    def waves_store(
        self, row_kind, kind, halvings, field, size, pitch, waves, nbytes, scale, edge,
        ordinal, stream,
    ):  # fmt: skip
        whole = np.empty((*field.shape[:2], size), field.dtype)
        rest = waves, nbytes, scale
        with self.open():
            if halvings < -1:
                kinds, folding = (row_kind, kind), self._row_folding(halvings, row_kind, field)
                return self._store_mirrored_rows(kinds, folding, field, *rest)
            if halvings < 0:
                return self._store_mirrored((row_kind, kind), field, pitch, *rest)
            if halvings:
                self._store_halved(KINDS[kind], halvings, whole[:, 0], *rest)
            else:
                self._store_whole(row_kind, kind, whole, pitch, *rest)
            field[...] = whole[..., : field.shape[-1]]
            if edge[0]:
                nbytes = whole[..., 0].nbytes
                values = fake_device._as_host(edge[0], nbytes).view(field.dtype)
                values[...] = whole[..., edge[1]].ravel()
        return 0

    def _load_mirrored(self, kinds, field, pitch, waves, nbytes, scale):
        """Sums and differences of mirror places, by the definition of PS_MIRRORED."""
        lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
        lines[...] = 0
        (rows, _, _), (values, _, places) = self._foldings(kinds, field.shape, pitch)
        lines[..., places] = scale * (rows @ field @ values.T)
        return 0

    def _store_mirrored(self, kinds, field, pitch, waves, nbytes, scale):
        lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
        (_, rows, _), (_, values, places) = self._foldings(kinds, field.shape, pitch)
        field[...] = scale * (rows @ lines[..., places] @ values.T)
        return 0

    @staticmethod
    def _foldings(kinds, shape, pitch=0):
        """Matrices that fold and unfold rows and values, and the places of a line."""
        quarter = ((shape[-1] + 1) // 2 + 1) // 2
        assert pitch in (0, 16 * -(-quarter // 4))
        found = []
        for kind, n in zip(kinds, shape[1:], strict=True):
            sums, rests, merge = _fold(n)
            parts, start = [sums, rests], [0, pitch // 2]
            if n % 2 and KINDS[kind] == "dst1":
                s, r, inner = _fold(n // 2)
                parts, start = [sums, s @ rests, r @ rests], [0, pitch // 2, 3 * pitch // 4]
                merge = merge @ scipy.linalg.block_diag(np.eye(len(sums)), inner)
            elif n % 2 and KINDS[kind] == "dct1":
                s, r, inner = _fold(n // 2 + 1)
                parts, start = [s @ sums, r @ sums, rests], [0, pitch // 4, pitch // 2]
                merge = merge @ scipy.linalg.block_diag(inner, np.eye(len(rests)))
            places = [a + k for a, part in zip(start, parts, strict=True) for k in range(len(part))]
            found.append((np.concatenate(parts), merge, places))
        return found

    def _row_folding(self, halvings, kind, field):
        """Matrices that fold and unfold the rows of PS_MIRRORED_ROWS or PS_MIRRORED_IN_FIVE."""
        if halvings == -2:
            return self._foldings((kind,), field.shape[:2])[0][:2]
        return fold_in_five(KINDS[kind], field.shape[1])

    @staticmethod
    def _continued(kind, field, size):
        """Lines of `size` values: odd with sines, even with cosines."""
        more = size - field.shape[-1]
        if not more:
            return field
        mirrored = field[..., ::-1]
        if kind == "dct1":
            mirrored = mirrored[..., 1:]
        if kind == "dst1":
            mirrored = np.concatenate([np.zeros_like(field[..., :1]), mirrored], -1)
        assert mirrored.shape[-1] >= more
        sign = -1 if kind.startswith("dst") else 1
        return np.concatenate([field, sign * mirrored[..., :more]], -1)

    def _store_whole(self, row_kind, kind, field, pitch, waves, nbytes, scale):
        """Values in their own order."""
        lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
        rows, values = self._order(field.shape, row_kind, kind)
        result = np.empty(field.shape)
        begin = int(KINDS[kind] == "dst1")
        result[:, rows[:, None], values] = lines[:, :, begin : begin + field.shape[2]]
        field[...] = result * self._signs(field.shape, row_kind, kind) * scale

    def wave_lines(
        self, is_float32, planes, rows, size, pitch, waves, tables, first, inner, last, null,
        is_ring, cut, ordinal, stream,
    ):  # fmt: skip
        """The definition of ps_wave_lines, for all waves at once."""
        dtype = np.dtype(np.float32 if is_float32 else np.float64)
        half = size // 2 + 1
        self.calls.append(("solve", stream))
        with self.open():
            lines = self._waves((planes, rows, size), dtype, pitch, waves, None)
            is_folded = rows == 1 and size % 2 == 0
            shapes = (rows, size if is_folded else 2 * half), (half, 2), (rows, 2)
            shifts, turns, row_turns = (
                fake_device._as_host(table, int(np.prod(shape)) * dtype.itemsize)
                .view(dtype)
                .reshape(shape)
                .astype(float)
                for table, shape in zip(tables, shapes, strict=True)
            )
            if is_folded:  # the last wave is real
                turns[-1] = 1, 0
            given = lines[:, :, : 2 * half].astype(float)
            w = (turns[:, 0] - 1j * turns[:, 1]) * (given[..., ::2] + 1j * given[..., 1::2])
            across = row_turns[:, 0] - 1j * row_turns[:, 1]
            parts = np.empty_like(given)
            for j in range(rows // 2 + 1):
                m = -j % rows
                if m == j:
                    parts[:, j, ::2], parts[:, j, 1::2] = w[:, j].real, w[:, j].imag
                else:
                    p = across[j] * (w[:, j] + w[:, m].conj()) / 2
                    q = across[j] * (w[:, j] - w[:, m].conj()) / 2j
                    parts[:, j, ::2], parts[:, j, 1::2] = p.real, p.imag
                    parts[:, m, ::2], parts[:, m, 1::2] = q.imag, q.real
            if is_folded:  # the place of Im V[0], which is zero, has the shift of the last wave
                shifts = np.append(shifts, 2 * [shifts[0, 1]]).reshape(1, -1)
            matrix = np.zeros((planes, planes))
            for i in range(planes):
                row = first if i == 0 else last if i == planes - 1 else inner
                matrix[i, i] += row[1]
                if any(cut):
                    matrix[i, i] -= (row[0] if i == 0 else 0) + (row[2] if i == planes - 1 else 0)
                if i > 0 or is_ring:
                    matrix[i, i - 1] += row[0]
                    matrix[i, i] -= row[0]
                if i < planes - 1 or is_ring:
                    matrix[i, (i + 1) % planes] += row[2]
                    matrix[i, i] -= row[2]
            for j, k in np.ndindex(rows, 2 * half):
                own = matrix + shifts[j, k] * np.eye(planes)
                own[0, 0] += null - first[1] if shifts[j, k] == 0 else 0
                if any(cut):
                    # Of an even length of one row, the last wave has the place of Im V[0].
                    real = {size: 1, 1: None, size + 1: None}.get(k, k) if is_folded else k
                    if real is not None:
                        place = j * shapes[0][1] + real
                        around = first[0], last[2], shapes[0][0] * shapes[0][1], dtype
                        self._solve_part(own, parts[:, j, k], cut, place, *around)
                    continue
                parts[:, j, k] = np.linalg.solve(own, parts[:, j, k])
            if cut[0]:
                return 0
            for j in range(rows // 2 + 1):
                m = -j % rows
                one = parts[:, j, ::2] + 1j * parts[:, j, 1::2]
                if m == j:
                    w[:, j] = one
                else:
                    p = one * across[j].conj()
                    q = (parts[:, m, 1::2] + 1j * parts[:, m, ::2]) * across[j].conj()
                    w[:, j], w[:, m] = p + 1j * q, (p - 1j * q).conj()
            w = w * (turns[:, 0] + 1j * turns[:, 1])
            lines[:, :, : 2 * half : 2], lines[:, :, 1 : 2 * half : 2] = w.real, w.imag
        return 0

    @staticmethod
    def _solve_part(matrix, values, cut, place, lower, upper, systems, dtype):
        """A step of one of the systems whose other rows are on other devices."""
        ends, couplings, *around = (
            fake_device._as_host(address, count * systems * dtype.itemsize)
            .view(dtype)
            .reshape(count, systems)[:, place]
            if address
            else None
            for address, count in zip(cut, (2, 5, 1, 1), strict=True)
        )
        inside, last = matrix[:-1, :-1], matrix[-1]
        right = np.zeros((len(inside), 2))  # of y_left and y
        right[0, 0] -= lower
        right[-1, 1] -= matrix[-2, -1]
        if ends is None:
            y_left, y = (float(one[0]) for one in around)
            values[-1] = y
            values[:-1] = np.linalg.solve(inside, values[:-1] + right @ [y_left, y])
            return
        g, (left, own) = np.linalg.solve(inside, values[:-1]), np.linalg.solve(inside, right).T
        ends[:] = g[0], last[-2] * g[-1] - values[-1]
        if couplings is not None:
            a = last[-2] * left[-1]
            sigma = -last[-2] * own[-1] - last[-1] - a - upper
            couplings[:] = 1 - left[0] - own[0], own[0], a, sigma, upper

    def _parts(self, kind, halvings, field, waves, nbytes):
        """The lines of the parts of waves: of the last transform of kind 1, then of kind 3."""
        planes, intervals = len(field), field.shape[1] + (1 if kind == "dst1" else -1)
        sizes = [2 * (intervals >> halvings), *(intervals >> p for p in range(1, halvings + 1))]
        pitches = [2 * (size // 2 + 1) for size in sizes]
        count = planes * sum(pitches)
        assert nbytes == count * field.itemsize
        memory = fake_device._as_host(waves, nbytes).view(field.dtype)
        starts = np.cumsum([0, *(planes * pitch for pitch in pitches)])
        return [memory[a:b].reshape(planes, -1) for a, b in pairwise(starts)]

    def _load_halved(self, kind, halvings, field, waves, nbytes):
        """Sums and differences of mirror places; those of kind 3 as SciPy defines it."""
        last, *parts = self._parts(kind, halvings, field, waves, nbytes)
        x, numbers = _split(kind, halvings, field)
        for part, own in zip(parts, numbers, strict=True):
            part[:, ::2], part[:, 1::2] = own.real, own.imag
        mirrored = (-1 if kind == "dst1" else 1) * x[:, -2:0:-1]
        last[...] = np.nan
        last[:, : 2 * (x.shape[1] - 1)] = np.concatenate([x, mirrored], 1)
        return 0

    def _store_halved(self, kind, halvings, field, waves, nbytes, scale):
        last, *parts = self._parts(kind, halvings, field, waves, nbytes)
        x = last[:, : last.shape[1] // 2]
        field[...] = scale * _merge(kind, x, [part[:, ::2] + 1j * part[:, 1::2] for part in parts])
        return 0

    def _load_mirrored_rows(self, kinds, folding, field, waves, nbytes, scale):
        """Rows folded by a matrix, and the values of PS_MIRRORED_ROWS."""
        kind = KINDS[kinds[1]]
        last, *parts = self._rows_of_parts(kind, field, waves, nbytes)
        x, numbers = _split(kind, 2, (scale * (folding[0] @ field)).reshape(-1, field.shape[2]))
        for part, own in zip(parts, numbers, strict=True):
            part[:, ::2], part[:, 1::2] = own.real, own.imag
        x = x[:, 1:-1] if kind == "dst1" else x
        sums, rests, _ = _fold(x.shape[1])
        last[...] = 0
        last[:, : len(sums)] = x @ sums.T
        start = last.shape[1] // 2
        last[:, start : start + len(rests)] = x @ rests.T
        return 0

    def _store_mirrored_rows(self, kinds, folding, field, waves, nbytes, scale):
        kind = KINDS[kinds[1]]
        last, *parts = self._rows_of_parts(kind, field, waves, nbytes)
        count = (field.shape[2] + 1) // 4 - 1 if kind == "dst1" else field.shape[2] // 4 + 1
        start = last.shape[1] // 2
        even, odd = last[:, : (count + 1) // 2], last[:, start : start + count // 2]
        x = np.concatenate([even, odd], 1) @ _fold(count)[2].T
        x = np.pad(x, ((0, 0), (1, 1))) if kind == "dst1" else x
        whole = _merge(kind, x, [part[:, ::2] + 1j * part[:, 1::2] for part in parts])
        field[...] = scale * (folding[1] @ whole.reshape(field.shape))
        return 0

    @staticmethod
    def _rows_of_parts(kind, field, waves, nbytes):
        """The lines of the three parts of PS_MIRRORED_ROWS."""
        intervals = field.shape[2] + (1 if kind == "dst1" else -1)
        assert intervals % 8 == 0
        half = -(-(intervals // 8 + (kind == "dct1")) // 4) * 4
        pitches = 2 * half, intervals // 2 + 2, intervals // 4 + 2
        lines = int(np.prod(field.shape[:2]))
        assert nbytes == lines * sum(pitches) * field.itemsize
        memory = fake_device._as_host(waves, nbytes).view(field.dtype)
        starts = np.cumsum([0, *(lines * pitch for pitch in pitches)])
        return [memory[a:b].reshape(lines, -1) for a, b in pairwise(starts)]

    def _waves(self, shape, dtype, pitch, waves, nbytes):
        count = int(np.prod(shape[:2])) * pitch
        assert nbytes in (None, count * dtype.itemsize)
        lines = fake_device._as_host(waves, count * dtype.itemsize).view(dtype)
        return lines.reshape(*shape[:2], pitch)

    @staticmethod
    def _order(shape, *kinds):
        """The values in the order of the lines, along rows and values."""
        orders = (np.arange(n) for n in shape[1:])
        return [
            np.concatenate([j[::2], j[1::2][::-1]]) if KINDS[kind][3:] == "2" else j
            for j, kind in zip(orders, kinds, strict=True)
        ]

    @staticmethod
    def _signs(shape, *kinds):
        signs = [(-1.0 if KINDS[k] == "dst2" else 1.0) ** np.arange(n)
                 for n, k in zip(shape[1:], kinds, strict=True)]  # fmt: skip
        return signs[0][:, None] * signs[1]

    def _lines(self, field, lines, nbytes, size):
        shape = (*field.shape[:2], 2 * (size // 2 + 1))
        need = int(np.prod(shape)) * field.itemsize
        assert need <= nbytes
        return fake_device._as_host(lines, need).view(field.dtype).reshape(shape)

    def accumulate(self, to, source, ordinal, stream):
        with self.open():
            to += source
        return 0

    def centre(self, line, weights, ordinal, stream):
        assert line.shape[:2] == (1, 1)
        with self.open():
            own = fake_device._as_host(weights, line.size * 8).view(np.float64)
            line -= np.average(line, axis=2, weights=own)[..., None].astype(line.dtype)
        return 0


def _split(kind, halvings, field):
    """The values of the last transform, and the numbers of kind 3, as SciPy defines it."""
    x = np.pad(field, ((0, 0), (1, 1))) if kind == "dst1" else field
    sign, found = (1 if kind == "dst1" else -1), []
    for _ in range(halvings):
        half = x.shape[1] // 2
        odd = (x + sign * x[:, ::-1])[:, : half + 1]
        x = (x - sign * x[:, ::-1])[:, : half + 1]
        values = odd[:, 1:] if kind == "dst1" else odd[:, :-1]
        given = scipy.fft.dct(values[:, ::-1] if kind == "dst1" else values, 3)
        # Before cuFFT, which transforms the complex numbers to these reals.
        order = np.r_[0:half:2, np.arange(1, half, 2)[::-1]]
        found.append(scipy.fft.rfft(given[:, order]) / half)
    return x, found


def _merge(kind, x, numbers):
    """The values from those of the last transform and the numbers of kind 2, times 2 N."""
    sign = 1 if kind == "dst1" else -1
    for own in reversed(numbers):
        half = x.shape[1] - 1
        shuffled = scipy.fft.irfft(own, half)
        values = np.empty_like(shuffled)
        values[:, np.r_[0:half:2, np.arange(1, half, 2)[::-1]]] = shuffled
        odd = scipy.fft.dct(values, 2)
        zero = np.zeros((len(odd), 1))
        odd = np.concatenate([zero, odd[:, ::-1]] if kind == "dst1" else [odd, zero], 1)
        x = np.concatenate([odd + x, sign * (odd - x)[:, -2::-1]], 1)
    return x[:, 1:-1] if kind == "dst1" else x


def _fold(n):
    """Matrices of the sums and differences of mirror places, and of even plus odd values."""
    one, turned, h = np.eye(n), np.eye(n)[::-1], (n + 1) // 2
    even, odd = one + turned, one - turned
    merge = np.concatenate([even[:, :h], odd[:, : n - h]], 1)
    merge[n // 2, h - 1] = 1  # the middle
    return even[:h], odd[: n - h], merge


def fold_in_five(kind, n):
    """The matrices of load() and store() by the definition of PS_MIRRORED_IN_FIVE."""
    is_sine = kind == "dst1"
    intervals = n + 1 if is_sine else n - 1
    m, root = intervals // 4, np.sqrt(2)
    assert intervals % 8 == 0
    x = np.pad(np.eye(n), ((1, 1), (0, 0))) if is_sine else np.eye(n)
    sums, rests = (x + x[::-1])[: 2 * m + 1], (x - x[::-1])[: 2 * m + 1]
    a, d = (sums, rests) if is_sine else (rests[::-1], sums)
    e, g = (d + d[::-1])[: m + 1], (d - d[::-1])[: m + 1]
    e, g = (e[1:], g) if is_sine else (g[:-1], e)
    b = (a + a[::-1])[1 : m + 1]
    first = int(is_sine)
    last = (g + g[::-1])[first : m // 2 + 1], (g - g[::-1])[first : m // 2]
    load = [*last, e, b + root * a[m + 1 :], b - root * a[m + 1 :]]

    ends = np.cumsum([len(part) for part in load])
    even, odd, e, b, c = np.split(np.eye(n), ends[:-1])
    zero = np.zeros((1, n))
    near = np.concatenate([zero, b + c])
    a = np.concatenate([near, root * (b - c) + near[m - 1 :: -1]])
    even = np.concatenate([zero, even]) if is_sine else even
    odd = np.concatenate([zero, odd, zero] if is_sine else [odd, zero])
    g = np.concatenate([even + odd, (even - odd)[m // 2 - 1 :: -1]])
    e = np.concatenate([zero, e] if is_sine else [e, zero])
    first, second = (e, g) if is_sine else (g, e)
    d = np.concatenate([first + second, (first - second)[m - 1 :: -1]])
    first, second = (a, d) if is_sine else (d, a[::-1])
    x = np.concatenate([first + second, (first - second)[2 * m - 1 :: -1]])
    return np.concatenate(load), x[1:-1] if is_sine else x


class Products:
    """The products of cuBLAS, in host memory."""

    def __init__(self, device):
        self.device = device

    def columns(self, matrix, source, target, sizes, distance, dtype, stream, apart=0, work=None):
        count, n, width = sizes
        if not apart:
            self._multiply(matrix, source, target, (count, n, width), distance, dtype)
            return
        for k in range(count):
            address, lead = matrix
            own = address + k * apart * dtype.itemsize, lead
            places = (a + k * distance * dtype.itemsize for a in (source, target))
            self._multiply(own, *places, (1, n, width), distance, dtype)

    def rows(self, matrix, source, target, sizes, distance, dtype, stream, work=None):
        self._multiply(matrix, source, target, (*sizes, 1), distance, dtype)

    def matrices(self, a, b, target, shape, dtype, stream, work, *, adds=True):
        m, k, n = shape
        self.device.calls.append(("matrices", shape))
        assert all(work)
        with self.device.open():
            pairs = (a, (m, k)), (b, (k, n)), (target, (m, n))
            left, right, product = (self._matrix(*pair, dtype) for pair in pairs)
            product[...] = left @ right + (product if adds else 0)

    def vector(self, matrix, source, target, shape, dtype, stream, work):
        assert all(work)
        with self.device.open():
            pairs = (source, shape[1]), (target, shape[0])
            given, product = (self._matrix((a, 1), (n, 1), dtype)[:, 0] for a, n in pairs)
            product[...] = self._matrix(matrix, shape, dtype) @ given

    def scaled_rows(self, factors, matrix, target, shape, dtype, stream, work):
        assert all(work)
        with self.device.open():
            own, to = (self._matrix(a, shape, dtype) for a in (matrix, target))
            to[...] = self._matrix((factors, 1), (shape[0], 1), dtype) * own

    @staticmethod
    def _matrix(place, shape, dtype):
        """A matrix in C order given by address and distance of the rows."""
        (address, lead), (rows, columns) = place, shape
        count = (rows - 1) * lead + columns
        return np.lib.stride_tricks.as_strided(
            fake_device._as_host(address, count * dtype.itemsize).view(dtype),
            shape,
            (lead * dtype.itemsize, dtype.itemsize),
        )

    def _multiply(self, matrix, source, target, shape, distance, dtype):
        self.device.calls.append(("product", shape))
        count, n, width = shape
        size = dtype.itemsize
        numbers = (count - 1) * distance + n * width
        with self.device.open():
            values, there = (
                np.lib.stride_tricks.as_strided(
                    fake_device._as_host(a, numbers * size).view(dtype),
                    shape,
                    (distance * size, width * size, size),
                )
                for a in (source, target)
            )
            address, lead = matrix
            own = fake_device._as_host(address, n * lead * size).view(dtype).reshape(n, lead)
            assert not np.shares_memory(values, there)
            there[...] = own[:, :n] @ values


class Plan:
    """A plan that leaves its lines as they are, because transform_store() transforms them."""

    work_bytes = 512
    lock = RLock()

    def __init__(self, *_arguments):
        pass

    def execute(self, lines, work, stream, target=None):
        assert lines
        assert work


class PlanOfWaves(Plan):
    """A plan that transforms lines or planes by SciPy."""

    def __init__(self, device, form, lengths, pitch, count, dtype, ordinal, reals=None):
        self.device, self.form, self.lengths = device, form, lengths
        self.shape, self.dtype = (count, *lengths[:-1], pitch), dtype
        self.reals = (count, *lengths[:-1], reals or pitch)

    def execute(self, lines, work, stream, target=None):
        assert work
        assert target or self.reals == self.shape
        size, axes = self.lengths[-1], tuple(range(1, len(self.shape)))
        makes_reals = self.form == COMPLEX_TO_REAL
        shapes = (self.shape, self.reals) if makes_reals else (self.reals, self.shape)
        with self.device.open():
            given, values = (
                fake_device._as_host(a, int(np.prod(shape)) * self.dtype.itemsize)
                .view(self.dtype)
                .reshape(shape)
                for a, shape in zip((lines, target or lines), shapes, strict=True)
            )
            if makes_reals:
                waves = given[..., : 2 * (size // 2 + 1)]
                numbers = waves[..., ::2] + 1j * waves[..., 1::2]
                gain = np.prod(self.lengths)
                values[..., :size] = scipy.fft.irfftn(numbers, self.lengths, axes) * gain
            else:
                numbers = scipy.fft.rfftn(given[..., :size], self.lengths, axes)
                waves = values[..., : 2 * (size // 2 + 1)]
                waves[..., ::2], waves[..., 1::2] = numbers.real, numbers.imag
