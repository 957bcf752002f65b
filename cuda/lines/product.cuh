/* product.cuh - the kernels of product.h for one dtype.
 *
 * One pass of row_walk.cuh: 5 words and 6 operations per unknown, 6 words with b; 2 and 3
 * words if all systems have one matrix. Extended sums have twice the digits: products
 * and sums of float in double; those of double with their rounding errors, which are
 * added to the sum at the end (Dekker 1971; Ogita, Rump and Oishi 2005), 10 operations
 * for each product.
 */
#ifndef PS_CUDA_LINES_PRODUCT_CUH
#define PS_CUDA_LINES_PRODUCT_CUH

#include "lines/product.h"
#include "lines/row_walk.cuh"

namespace pysolvers::lines {

/* A sum of terms: a b, and a (b - c). */
template <typename Real> struct PlainSum {
    Real sum = 0;

    __device__ __forceinline__ void add(Real a, Real b)
    {
        sum += a * b;
    }
    __device__ __forceinline__ void add_difference(Real a, Real b, Real c)
    {
        sum += a * (b - c);
    }
    __device__ __forceinline__ void scale_and_add(double scale, double weight, Real b)
    {
        sum = static_cast<Real>(scale) * sum + static_cast<Real>(weight) * b;
    }
    __device__ __forceinline__ Real value() const
    {
        return sum;
    }
};

template <typename Real> struct ExtendedSum;

template <> struct ExtendedSum<float> {
    double sum = 0;

    __device__ __forceinline__ void add(float a, float b)
    {
        sum += static_cast<double>(a) * static_cast<double>(b);
    }
    __device__ __forceinline__ void add_difference(float a, float b, float c)
    {
        sum += static_cast<double>(a) * (static_cast<double>(b) - static_cast<double>(c));
    }
    __device__ __forceinline__ void scale_and_add(double scale, double weight, float b)
    {
        sum = scale * sum + weight * static_cast<double>(b);
    }
    __device__ __forceinline__ float value() const
    {
        return static_cast<float>(sum);
    }
};

template <> struct ExtendedSum<double> {
    double sum = 0, errors = 0;

    __device__ __forceinline__ void add(double a, double b)
    {
        const double product = __dmul_rn(a, b), old = sum;

        sum = __dadd_rn(old, product);
        const double part = __dadd_rn(sum, -old);
        const double error =
            __dadd_rn(__dadd_rn(old, -__dadd_rn(sum, -part)), __dadd_rn(product, -part));
        errors += error + fma(a, b, -product);
    }
    __device__ __forceinline__ void add_difference(double a, double b, double c)
    {
        add(a, b);
        add(-a, c);
    }
    __device__ __forceinline__ void scale_and_add(double scale, double weight, double b)
    {
        const double product = __dmul_rn(sum, scale);

        errors = fma(errors, scale, fma(sum, scale, -product));
        sum = product;
        add(weight, b);
    }
    /* The error of a sum that is not finite is no number. */
    __device__ __forceinline__ double value() const
    {
        return sum - sum == 0 ? sum + errors : sum;
    }
};

/* The same of complex numbers, by their parts. */
template <typename Number, template <typename> class Sum> struct SumOf : Sum<Number> {};

template <typename Real, template <typename> class Sum> struct SumOf<Complex<Real>, Sum> {
    Sum<Real> re, im;

    __device__ __forceinline__ void add(Complex<Real> a, Complex<Real> b)
    {
        re.add(a.re, b.re);
        re.add(-a.im, b.im);
        im.add(a.re, b.im);
        im.add(a.im, b.re);
    }
    __device__ __forceinline__ void add_difference(Complex<Real> a, Complex<Real> b,
                                                   Complex<Real> c)
    {
        add(a, b - c);
    }
    __device__ __forceinline__ void scale_and_add(double scale, double weight,
                                                  Complex<Real> b)
    {
        re.scale_and_add(scale, weight, b.re);
        im.scale_and_add(scale, weight, b.im);
    }
    __device__ __forceinline__ Complex<Real> value() const
    {
        return {re.value(), im.value()};
    }
};

/* The form of row_walk.cuh. */
template <typename Number, template <typename> class Sum> struct ProductForm {
    static constexpr int at_once = 2;
    Walked<Number> out;
    double scale, weight; /* weight: 0 without b */
    bool has_sums;

    template <int WIDTH>
    __device__ __forceinline__ void put(const WalkPlace &at,
                                        const PackOfRows<Number, WIDTH> &p) const
    {
        Pack<Number, WIDTH> result;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            SumOf<Number, Sum> sum;

            sum.add(p.diag.of[j], p.u.of[j]);
            if (has_sums) {
                sum.add_difference(p.lower.of[j], p.before.of[j], p.u.of[j]);
                sum.add_difference(p.upper.of[j], p.behind.of[j], p.u.of[j]);
            }
            else {
                sum.add(p.lower.of[j], p.before.of[j]);
                sum.add(p.upper.of[j], p.behind.of[j]);
            }
            sum.scale_and_add(scale, weight, p.added.of[j]);
            result.of[j] = sum.value();
        }
        store_pack<WIDTH>(out, at, result);
    }
};

template <typename Number, template <typename> class Sum>
inline ps_status
launch_sums(const ProductJob<Number> &job, cudaStream_t stream)
{
    const double weight = job.walk.added.data != nullptr ? job.weight : 0;
    const ProductForm<Number, Sum> form = {job.out, job.scale, weight, job.has_sums};

    return run_walk(job.walk, form, stream);
}

template <typename Number>
ps_status
launch_product(const ProductJob<Number> &job, bool is_extended, cudaStream_t stream)
{
    return is_extended ? launch_sums<Number, ExtendedSum>(job, stream)
                       : launch_sums<Number, PlainSum>(job, stream);
}

} // namespace pysolvers::lines

#endif
