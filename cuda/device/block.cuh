/* block.cuh - blocks of SIDE x SIDE real numbers as numbers, whose values are vectors.
 * csrc/cpu/lines/block.h has the same formulas.
 */
#ifndef PS_CUDA_DEVICE_BLOCK_CUH
#define PS_CUDA_DEVICE_BLOCK_CUH

#include "device/vector.cuh"
#include "device/pivot.cuh"

namespace pysolvers::device {

template <typename Real, int SIDE> struct Block {
    Real at[SIDE][SIDE]; /* [row][column] */

    Block() = default;
    /* x times the identity. */
    __device__ __forceinline__ explicit Block(Real x)
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                at[p][q] = p == q ? x : Real(0);
            }
        }
    }
    __device__ __forceinline__ Block(const Real (&of)[SIDE][SIDE])
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                at[p][q] = of[p][q];
            }
        }
    }
    static __device__ __forceinline__ Block zero()
    {
        return Block(Real(0));
    }
    __device__ __forceinline__ Block operator-() const
    {
        Block a;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] = -at[p][q];
            }
        }
        return a;
    }
};

template <typename Real, int SIDE> struct ValueOfNumber<Block<Real, SIDE>> {
    using type = Vector<Real, SIDE>;
};
template <typename Real, int SIDE> struct ElementOfNumber<Block<Real, SIDE>> {
    using type = Real;
};
template <typename Real, int SIDE>
struct number_traits<Block<Real, SIDE>> : number_traits<Real> {};

template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
shuffle(unsigned mask, Block<Real, SIDE> a, int lane)
{
#pragma unroll
    for (int p = 0; p < SIDE; p++) {
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            a.at[p][q] = __shfl_sync(mask, a.at[p][q], lane);
        }
    }
    return a;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
operator+(Block<Real, SIDE> a, const Block<Real, SIDE> &b)
{
    return a - -b;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
operator-(Block<Real, SIDE> a, const Block<Real, SIDE> &b)
{
#pragma unroll
    for (int p = 0; p < SIDE; p++) {
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            a.at[p][q] -= b.at[p][q];
        }
    }
    return a;
}

/* A row times the numbers b(k). */
template <typename Real, int SIDE, typename Numbers>
__device__ __forceinline__ Real
row_times(const Real (&row)[SIDE], const Numbers &b)
{
    Real sum = row[0] * b(0);

#pragma unroll
    for (int k = 1; k < SIDE; k++) {
        sum += row[k] * b(k);
    }
    return sum;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Vector<Real, SIDE>
operator*(const Block<Real, SIDE> &a, const Vector<Real, SIDE> &b)
{
    Vector<Real, SIDE> c;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        c.at[p] = row_times(a.at[p], [&](int k) { return b.at[k]; });
    }
    return c;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Vector<Real, SIDE>
operator*(const Vector<Real, SIDE> &row, const Block<Real, SIDE> &a)
{
    Vector<Real, SIDE> c;

#pragma unroll
    for (int q = 0; q < SIDE; q++) {
        c.at[q] = row_times(row.at, [&](int k) { return a.at[k][q]; });
    }
    return c;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
operator*(const Block<Real, SIDE> &a, const Block<Real, SIDE> &b)
{
    Block<Real, SIDE> c;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            c.at[p][q] = row_times(a.at[p], [&](int k) { return b.at[k][q]; });
        }
    }
    return c;
}

/* a - b c, whose products are not rounded apart. */
template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
less_product(Block<Real, SIDE> a, const Block<Real, SIDE> &b, const Block<Real, SIDE> &c)
{
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] -= b.at[p][k] * c.at[k][q];
            }
        }
    }
    return a;
}

template <typename Real, int SIDE>
__device__ __forceinline__ Vector<Real, SIDE>
less_product(Vector<Real, SIDE> a, const Block<Real, SIDE> &b,
             const Vector<Real, SIDE> &c)
{
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            a.at[p] -= b.at[p][k] * c.at[k];
        }
    }
    return a;
}

/* The inverse by the Gauss-Jordan elimination in place, with row exchanges, which are
 * exchanges of columns of the inverse in the opposite order. invert(x) inverts a pivot;
 * exchange(swaps) is called for each pair of rows that could be exchanged. */
template <typename Real, int SIDE, typename Invert, typename Exchange>
__device__ __forceinline__ Block<Real, SIDE>
inverted(Block<Real, SIDE> a, const Invert &invert, const Exchange &exchange)
{
    bool swap[SIDE][SIDE];

#pragma unroll
    for (int k = 0; k < SIDE; k++) {
#pragma unroll
        for (int r = k + 1; r < SIDE; r++) {
            swap[k][r] = fabs(a.at[r][k]) > fabs(a.at[k][k]);
            exchange(swap[k][r]);
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                const Real own = a.at[k][q], other = a.at[r][q];

                a.at[k][q] = swap[k][r] ? other : own;
                a.at[r][q] = swap[k][r] ? own : other;
            }
        }
        const Real inverse = invert(a.at[k][k]);

        a.at[k][k] = 1;
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            a.at[k][q] *= inverse;
        }
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            const Real m = a.at[r][k];

            if (r != k) {
                a.at[r][k] = 0;
#pragma unroll
                for (int q = 0; q < SIDE; q++) {
                    a.at[r][q] -= m * a.at[k][q];
                }
            }
        }
    }
#pragma unroll
    for (int k = SIDE - 1; k >= 0; k--) {
#pragma unroll
        for (int r = SIDE - 1; r > k; r--) {
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                const Real own = a.at[p][k], other = a.at[p][r];

                a.at[p][k] = swap[k][r] ? other : own;
                a.at[p][r] = swap[k][r] ? own : other;
            }
        }
    }
    return a;
}

/* The inverse by cofactors: one reciprocal and no row exchanges, so that its latency is a third of
 * that of the elimination. The error of the inverse, times the block, is at most a few units of
 * rounding times magnitude / |determinant|, which no scaling of rows and columns changes. */
template <typename Real, int SIDE> struct Cofactors {
    using Key = PivotKey<Real>;
    Block<Real, SIDE> adjugate;
    Real determinant, magnitude; /* the sum of its products, and of their magnitudes */
    typename Key::type largest;  /* entry */

    __device__ __forceinline__ explicit Cofactors(const Block<Real, SIDE> &a)
    {
        largest = Key::of(a.at[0][0]);
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                largest = max(largest, Key::of(a.at[p][q]));
            }
        }
        if constexpr (SIDE == 2) {
            const Minor all(a, 0, 1, 0, 1);

            adjugate = {{{a.at[1][1], -a.at[0][1]}, {-a.at[1][0], a.at[0][0]}}};
            determinant = all.value;
            magnitude = all.magnitude;
        }
        else if constexpr (SIDE == 3) {
            determinant = magnitude = 0;
#pragma unroll
            for (int p = 0; p < 3; p++) {
#pragma unroll
                for (int q = 0; q < 3; q++) {
                    const Minor m(a, (p + 1) % 3, (p + 2) % 3, (q + 1) % 3, (q + 2) % 3);

                    adjugate.at[q][p] = m.value;
                    if (p == 0) {
                        determinant += a.at[0][q] * m.value;
                        magnitude += fabs(a.at[0][q]) * m.magnitude;
                    }
                }
            }
        }
        else {
            static_assert(SIDE == 4, "minors of two rows");
            Real of[2][4][4]; /* of the first and the last two rows, in two columns */

            determinant = magnitude = 0;
#pragma unroll
            for (int q = 0; q < 4; q++) {
#pragma unroll
                for (int r = q + 1; r < 4; r++) {
                    const Minor first(a, 0, 1, q, r);
                    /* the other two columns */
                    const int s = q > 0 ? 0 : r > 1 ? 1 : 2, t = 6 - q - r - s;
                    const Minor last(a, 2, 3, s, t);

                    of[0][q][r] = first.value;
                    of[1][s][t] = last.value;
                    determinant += (q + r) % 2 == 1 ? first.value * last.value
                                                    : -(first.value * last.value);
                    magnitude += first.magnitude * last.magnitude;
                }
            }
#pragma unroll
            for (int p = 0; p < 4; p++) {
                const int other_row = p ^ 1; /* the other row of the two */
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    const int s = q == 0, t = q <= 1 ? 2 : 1, u = q == 3 ? 2 : 3;
                    const auto &m = of[p < 2];

                    const Real minor = a.at[other_row][s] * m[t][u] -
                                       a.at[other_row][t] * m[s][u] +
                                       a.at[other_row][u] * m[s][t];

                    adjugate.at[q][p] = (p + q) % 2 == 0 ? minor : -minor;
                }
            }
        }
    }

    /* Whether the inverse is finite and as exact as that of the elimination. */
    __device__ __forceinline__ bool is_safe() const
    {
        /* false for NaN */
        return largest <= most_entry() && fabs(determinant) >= least_determinant() &&
               fabs(determinant) >= least_share() * magnitude;
    }

    __device__ __forceinline__ Block<Real, SIDE> inverse() const
    {
        const Real factor = fast_reciprocal(determinant);
        Block<Real, SIDE> a = adjugate;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] *= factor;
            }
        }
        return a;
    }

  private:
    struct Minor {
        Real value, magnitude;

        __device__ __forceinline__ Minor(const Block<Real, SIDE> &a, int p, int q, int r,
                                         int s)
        {
            const Real cross = a.at[p][s] * a.at[q][r];

            value = a.at[p][r] * a.at[q][s] - cross;
            magnitude = fabs(a.at[p][r]) * fabs(a.at[q][s]) + fabs(cross);
        }
    };

    /* Blocks of 2 lose no more than the elimination does; others, whose minors are sums as
     * well, may lose the square. */
    static __device__ __forceinline__ constexpr Real least_share()
    {
        return SIDE == 2 ? 64 * eps_of<Real> : Real(1) / 256;
    }
    /* 2^bits of entries and 2^-bits of the determinant let no minor and no entry of the inverse
     * overflow. */
    static __device__ __forceinline__ constexpr typename Key::type most_entry()
    {
        return sizeof(Real) == 4 ? Key::power(SIDE == 2   ? 60
                                              : SIDE == 3 ? 30
                                                          : 28)
                                 : Key::power(SIDE == 2   ? 500
                                              : SIDE == 3 ? 250
                                                          : 200);
    }
    static __device__ __forceinline__ constexpr Real least_determinant()
    {
        return sizeof(Real) == 4 ? SIDE < 4 ? Real(8.6736174e-19f) /* 2^-60 */
                                            : Real(9.0949470e-13f) /* 2^-40 */
                                 : Real(3.8725919148493183e-121);  /* 2^-400 */
    }
};

/* The inverse by elimination. Not inlined, because it is rare and long. */
template <typename Real, int SIDE>
__device__ __noinline__ Block<Real, SIDE>
eliminated_reciprocal(const Block<Real, SIDE> a)
{
    return inverted(a, [](Real pivot) { return reciprocal(pivot); }, [](bool) {});
}

/* Infinite or NaN if a is singular. */
template <typename Real, int SIDE>
__device__ __forceinline__ Block<Real, SIDE>
reciprocal(const Block<Real, SIDE> &a)
{
    const Cofactors<Real, SIDE> of(a);

    return of.is_safe() ? of.inverse() : eliminated_reciprocal(a);
}

template <typename Real, int SIDE>
__device__ __forceinline__ bool
is_finite(const Block<Real, SIDE> &a)
{
    Real sum = 0;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            sum += a.at[p][q] - a.at[p][q]; /* 0, or NaN */
        }
    }
    return sum == 0;
}

template <typename Real, int SIDE>
__device__ __forceinline__ bool
is_bad_pivot(const Block<Real, SIDE> &a)
{
    return !is_finite(reciprocal(a)) || !is_finite(a);
}

template <typename Real, int SIDE> struct FastReciprocal<Block<Real, SIDE>> {
    bool is_safe = true,
         is_definite = true; /* blocks of 2 x 2 have a positive determinant and trace */

    __device__ __forceinline__ Block<Real, SIDE> invert(const Block<Real, SIDE> &pivot,
                                                        int32_t)
    {
        const Cofactors<Real, SIDE> of(pivot);

        is_safe = is_safe && of.is_safe();
        if constexpr (SIDE == 2) {
            is_definite =
                is_definite && of.determinant > 0 && pivot.at[0][0] + pivot.at[1][1] > 0;
        }
        return of.inverse();
    }
    __device__ __forceinline__ bool in_safe_range() const
    {
        return is_safe;
    }
};

template <typename Real>
__device__ __forceinline__ bool
has_positive_eigenvalues(const Block<Real, 2> &a)
{
    return a.at[0][0] + a.at[1][1] > 0 &&
           a.at[0][0] * a.at[1][1] > a.at[0][1] * a.at[1][0];
}

template <typename Real, int SIDE> struct SafeReciprocal<Block<Real, SIDE>> {
    BadPivot &bad_pivot;

    __device__ __forceinline__ Block<Real, SIDE> invert(const Block<Real, SIDE> &pivot,
                                                        int32_t row)
    {
        bad_pivot.check(pivot, row);
        return reciprocal(pivot);
    }
};

/* Whether all pivots of a symmetric block, whose lower triangle is read, are positive. */
template <typename Real, int SIDE>
__device__ __forceinline__ bool
is_positive_definite(Block<Real, SIDE> a)
{
    bool is = true;

#pragma unroll
    for (int k = 0; k < SIDE; k++) {
        is = is && a.at[k][k] > 0;
        const Real inverse = reciprocal(a.at[k][k]);

#pragma unroll
        for (int p = k + 1; p < SIDE; p++) {
            const Real m = a.at[p][k] * inverse;

#pragma unroll
            for (int q = k + 1; q <= p; q++) {
                a.at[p][q] -= m * a.at[q][k];
            }
        }
    }
    return is;
}

/* The largest sum of magnitudes of a row; NaN if there is one. */
template <typename Real, int SIDE>
__device__ __forceinline__ Real
norm_of(const Block<Real, SIDE> &a)
{
    Real largest = 0;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        Real sum = 0;

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            sum += fabs(a.at[p][q]);
        }
        largest = sum <= largest ? largest : sum;
    }
    return largest;
}

/* Whether |d_pp| - sum |d_pq| is positive and at least `least` in all rows p, so that |a^-1| <= 1 / least
 * (Varah 1975); false for NaN. */
template <typename Real, int SIDE>
__device__ __forceinline__ bool
has_dominant_rows(const Block<Real, SIDE> &a, Real least)
{
    bool has = true;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        Real excess = fabs(a.at[p][p]);

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            excess -= q == p ? Real(0) : fabs(a.at[p][q]);
        }
        has = has & (excess > 0) & (excess >= least);
    }
    return has;
}

/* Whether |diag^-1| (|lower| + |upper|) <= 1; false for NaN. Most matrices need no inverse for it. */
template <typename Real, int SIDE>
__device__ __forceinline__ bool
is_dominant(const Block<Real, SIDE> &lower, const Block<Real, SIDE> &diag,
            const Block<Real, SIDE> &upper)
{
    const Real others = norm_of(lower) + norm_of(upper);

    return has_dominant_rows(diag, others) || norm_of(reciprocal(diag)) * others <= 1;
}

} // namespace pysolvers::device

#endif
