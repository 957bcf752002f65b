/* vector.h - the vectors of an instruction set, PS_VECTOR_BYTES long.
 *
 * Included by the files of isa/ only. Arithmetic is written with the operators of the
 * vector types of GCC and Clang. This file has what they lack: loads, stores, choices by
 * masks, non-temporal stores, and the transposition of a square of elements in registers,
 * whose loops are unrolled: arrays of vectors stay in registers only then.
 * isa/simd.h gives the names that the kernels use.
 */
#ifndef PS_CPU_ISA_VECTOR_H
#define PS_CPU_ISA_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_INLINE static inline __attribute__((always_inline))
#define PS_SEPARATE static __attribute__((noinline))

/* The name of an object that a unit defines for its dtype and instruction set. */
#define PS_OF_UNIT(name) PS_CAT(PS_CAT(name##_, PS_TAG), PS_CAT(_, PS_ISA))

/* Define a function with code of its own for some constants: `call` calls an inline
 * function with them. */
#define PS_SPECIAL(result, name, parameters, call) \
    PS_SEPARATE result name parameters             \
    {                                              \
        return call;                               \
    }

#define PS_VECTOR __attribute__((vector_size(PS_VECTOR_BYTES)))

typedef float ps_vec_f32 PS_VECTOR;
typedef double ps_vec_f64 PS_VECTOR;
typedef int32_t ps_mask_f32 PS_VECTOR;
typedef int64_t ps_mask_f64 PS_VECTOR;

/* Make the non-temporal stores of this thread visible. */
static inline void
ps_stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Store one vector without a copy in the caches; `to` is aligned to PS_VECTOR_BYTES. */
static inline void
ps_stream(void *to, const void *from)
{
#if PS_VECTOR_BYTES == 64 && defined(__AVX512F__)
    _mm512_stream_si512(to, _mm512_loadu_si512(from));
#elif PS_VECTOR_BYTES == 32 && defined(__AVX__)
    _mm256_stream_si256(to, _mm256_loadu_si256(from));
#elif PS_VECTOR_BYTES == 16 && defined(__SSE2__)
    _mm_stream_si128(to, _mm_loadu_si128(from));
#else
    memcpy(to, from, PS_VECTOR_BYTES);
#endif
}

/* Whether any bit of a vector is set. */
static inline int
ps_any(const void *from)
{
#if PS_VECTOR_BYTES == 64 && defined(__AVX512F__)
    const __m512i m = _mm512_loadu_si512(from);

    return _mm512_test_epi64_mask(m, m) != 0;
#elif PS_VECTOR_BYTES == 32 && defined(__AVX__)
    const __m256i m = _mm256_loadu_si256(from);

    return !_mm256_testz_si256(m, m);
#elif PS_VECTOR_BYTES == 16 && defined(__SSE2__)
    const __m128i m = _mm_loadu_si128(from);

    return _mm_movemask_epi8(_mm_cmpeq_epi8(m, _mm_setzero_si128())) != 0xffff;
#else
    uint64_t words[PS_VECTOR_BYTES / 8], found = 0;

    memcpy(words, from, sizeof words);
    for (int k = 0; k < PS_VECTOR_BYTES / 8; k++) {
        found |= words[k];
    }
    return found != 0;
#endif
}

/* Vectors and masks of one dtype. The lanes of a mask are 0, or have all bits set. */
#define PS_VECTORS(real, tag)                                                    \
    PS_INLINE ps_vec_##tag ps_load_##tag(const real *from)                       \
    {                                                                            \
        ps_vec_##tag v;                                                          \
                                                                                 \
        memcpy(&v, from, sizeof v);                                              \
        return v;                                                                \
    }                                                                            \
    PS_INLINE void ps_store_##tag(real *to, ps_vec_##tag v)                      \
    {                                                                            \
        memcpy(to, &v, sizeof v);                                                \
    }                                                                            \
    PS_INLINE ps_vec_##tag ps_splat_##tag(real a)                                \
    {                                                                            \
        return a - (ps_vec_##tag){0};                                            \
    }                                                                            \
    PS_INLINE ps_vec_##tag ps_choose_##tag(ps_mask_##tag m, ps_vec_##tag a,      \
                                           ps_vec_##tag b)                       \
    {                                                                            \
        return (ps_vec_##tag)((m & (ps_mask_##tag)a) | (~m & (ps_mask_##tag)b)); \
    }                                                                            \
    PS_INLINE ps_vec_##tag ps_abs_##tag(ps_vec_##tag a)                          \
    {                                                                            \
        const ps_mask_##tag sign = (ps_mask_##tag)ps_splat_##tag((real) - 0.0);  \
                                                                                 \
        return (ps_vec_##tag)((ps_mask_##tag)a & ~sign);                         \
    }                                                                            \
    PS_INLINE int ps_any_##tag(ps_mask_##tag m)                                  \
    {                                                                            \
        return ps_any(&m);                                                       \
    }
PS_VECTORS(float, f32)
PS_VECTORS(double, f64)
#undef PS_VECTORS

/* Load the first `lanes` elements, of which the last one is repeated; store so many. */
#if PS_VECTOR_BYTES == 64 && defined(__AVX512F__)
PS_INLINE ps_vec_f32
ps_load_some_f32(const float *from, int lanes)
{
    return (ps_vec_f32)_mm512_mask_loadu_ps((__m512)ps_splat_f32(from[lanes - 1]),
                                            (__mmask16)((1u << lanes) - 1), from);
}
PS_INLINE ps_vec_f64
ps_load_some_f64(const double *from, int lanes)
{
    return (ps_vec_f64)_mm512_mask_loadu_pd((__m512d)ps_splat_f64(from[lanes - 1]),
                                            (__mmask8)((1u << lanes) - 1), from);
}
PS_INLINE void
ps_store_some_f32(float *to, ps_vec_f32 v, int lanes)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << lanes) - 1), (__m512)v);
}
PS_INLINE void
ps_store_some_f64(double *to, ps_vec_f64 v, int lanes)
{
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << lanes) - 1), (__m512d)v);
}
#elif PS_VECTOR_BYTES == 32 && defined(__AVX__)
/* The lanes of v whose numbers are less than `lanes`. */
PS_INLINE ps_mask_f32
ps_first_f32(int lanes)
{
    return (ps_mask_f32){0, 1, 2, 3, 4, 5, 6, 7} < lanes;
}
PS_INLINE ps_mask_f64
ps_first_f64(int lanes)
{
    return (ps_mask_f64){0, 1, 2, 3} < lanes;
}
PS_INLINE ps_vec_f32
ps_load_some_f32(const float *from, int lanes)
{
    const ps_mask_f32 m = ps_first_f32(lanes);

    return ps_choose_f32(m, (ps_vec_f32)_mm256_maskload_ps(from, (__m256i)m),
                         ps_splat_f32(from[lanes - 1]));
}
PS_INLINE ps_vec_f64
ps_load_some_f64(const double *from, int lanes)
{
    const ps_mask_f64 m = ps_first_f64(lanes);

    return ps_choose_f64(m, (ps_vec_f64)_mm256_maskload_pd(from, (__m256i)m),
                         ps_splat_f64(from[lanes - 1]));
}
PS_INLINE void
ps_store_some_f32(float *to, ps_vec_f32 v, int lanes)
{
    _mm256_maskstore_ps(to, (__m256i)ps_first_f32(lanes), (__m256)v);
}
PS_INLINE void
ps_store_some_f64(double *to, ps_vec_f64 v, int lanes)
{
    _mm256_maskstore_pd(to, (__m256i)ps_first_f64(lanes), (__m256d)v);
}
#else
#define PS_SOME(real, tag)                                                  \
    PS_INLINE ps_vec_##tag ps_load_some_##tag(const real *from, int lanes)  \
    {                                                                       \
        enum { N = PS_VECTOR_BYTES / sizeof(real) };                        \
        real all[N];                                                        \
                                                                            \
        for (int v = 0; v < N; v++) {                                       \
            all[v] = from[v < lanes ? v : lanes - 1];                       \
        }                                                                   \
        return ps_load_##tag(all);                                          \
    }                                                                       \
    PS_INLINE void ps_store_some_##tag(real *to, ps_vec_##tag v, int lanes) \
    {                                                                       \
        for (int k = 0; k < lanes; k++) {                                   \
            to[k] = v[k];                                                   \
        }                                                                   \
    }
PS_SOME(float, f32)
PS_SOME(double, f64)
#undef PS_SOME
#endif

/* The lanes whose bytes are not 0, of as many adjacent bytes as a vector has lanes. GCC
 * converts vectors of different sizes lane by lane. */
#if PS_VECTOR_BYTES == 64 && defined(__AVX512F__)
PS_INLINE ps_mask_f32
ps_of_bytes_f32(const uint8_t *from)
{
    return (ps_mask_f32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from)) != 0;
}
PS_INLINE ps_mask_f64
ps_of_bytes_f64(const uint8_t *from)
{
    return (ps_mask_f64)_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)from)) != 0;
}
#elif PS_VECTOR_BYTES == 32 && defined(__AVX2__)
PS_INLINE ps_mask_f32
ps_of_bytes_f32(const uint8_t *from)
{
    return (ps_mask_f32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from)) != 0;
}
PS_INLINE ps_mask_f64
ps_of_bytes_f64(const uint8_t *from)
{
    int32_t bytes;

    memcpy(&bytes, from, sizeof bytes);
    return (ps_mask_f64)_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes)) != 0;
}
#else
#define PS_OF_BYTES(real, tag)                                            \
    PS_INLINE ps_mask_##tag ps_of_bytes_##tag(const uint8_t *from)        \
    {                                                                     \
        typedef uint8_t bytes                                             \
            __attribute__((vector_size(PS_VECTOR_BYTES / sizeof(real)))); \
        bytes all;                                                        \
                                                                          \
        memcpy(&all, from, sizeof all);                                   \
        return __builtin_convertvector(all, ps_mask_##tag) != 0;          \
    }
PS_OF_BYTES(float, f32)
PS_OF_BYTES(double, f64)
#undef PS_OF_BYTES
#endif

#if PS_VECTOR_BYTES == 64 && defined(__AVX512F__)

PS_INLINE void
ps_transpose_f64(ps_vec_f64 v[8])
{
    __m512d a[8], b[8];

#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd((__m512d)v[i], (__m512d)v[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd((__m512d)v[i], (__m512d)v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            b[i + k] = _mm512_shuffle_f64x2(a[i + k], a[i + 2 + k], 0x88);
            b[i + 2 + k] = _mm512_shuffle_f64x2(a[i + k], a[i + 2 + k], 0xdd);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        /* b[0], b[1]: columns 0|4 and 1|5; b[2], b[3]: columns 2|6 and 3|7. */
        v[i] = (ps_vec_f64)_mm512_shuffle_f64x2(b[i], b[i + 4], 0x88);
        v[i + 4] = (ps_vec_f64)_mm512_shuffle_f64x2(b[i], b[i + 4], 0xdd);
    }
}

/* Transpose the square of elements at from[i] + offset. Halves of rows i and i + 4 are
 * combined when they are loaded, which saves a third of the exchanges. */
PS_INLINE void
ps_load_square_f64(const double *const *from, int64_t offset, ps_vec_f64 to[8])
{
    const __m512i lo = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i hi = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);

#pragma GCC unroll 2
    for (int half = 0; half < 8; half += 4) {
        __m512d a[4], b[4];

#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            a[i] = _mm512_insertf64x4(
                _mm512_castpd256_pd512(_mm256_loadu_pd(from[i] + offset + half)),
                _mm256_loadu_pd(from[i + 4] + offset + half), 1);
        }
#pragma GCC unroll 2
        for (int i = 0; i < 4; i += 2) {
            b[i] = _mm512_unpacklo_pd(a[i], a[i + 1]);
            b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
        }
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            to[half + i] = (ps_vec_f64)_mm512_permutex2var_pd(b[i], lo, b[i + 2]);
            to[half + 2 + i] = (ps_vec_f64)_mm512_permutex2var_pd(b[i], hi, b[i + 2]);
        }
    }
}

PS_INLINE void
ps_transpose_f32(ps_vec_f32 v[16])
{
    __m512 a[16];
    __m512d b[16], c[16];

#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps((__m512)v[i], (__m512)v[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps((__m512)v[i], (__m512)v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const __m512d lo = _mm512_castps_pd(a[i + k]);
            const __m512d hi = _mm512_castps_pd(a[i + 2 + k]);

            b[i + 2 * k] = _mm512_unpacklo_pd(lo, hi);
            b[i + 2 * k + 1] = _mm512_unpackhi_pd(lo, hi);
        }
    }
    /* b[4 g + k] holds columns k, k+4, k+8, k+12 of rows 4g .. 4g+3. */
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
#pragma GCC unroll 2
        for (int g = 0; g < 4; g += 2) {
            c[4 * g + k] = _mm512_shuffle_f64x2(b[4 * g + k], b[4 * g + 4 + k], 0x88);
            c[4 * g + 4 + k] = _mm512_shuffle_f64x2(b[4 * g + k], b[4 * g + 4 + k], 0xdd);
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        v[k] = (ps_vec_f32)_mm512_shuffle_f64x2(c[k], c[8 + k], 0x88);
        v[k + 8] = (ps_vec_f32)_mm512_shuffle_f64x2(c[k], c[8 + k], 0xdd);
        v[k + 4] = (ps_vec_f32)_mm512_shuffle_f64x2(c[4 + k], c[12 + k], 0x88);
        v[k + 12] = (ps_vec_f32)_mm512_shuffle_f64x2(c[4 + k], c[12 + k], 0xdd);
    }
}

#elif PS_VECTOR_BYTES == 32 && defined(__AVX__)

PS_INLINE void
ps_transpose_f64(ps_vec_f64 v[4])
{
    __m256d a[4];

#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) {
        a[i] = _mm256_unpacklo_pd((__m256d)v[i], (__m256d)v[i + 1]);
        a[i + 1] = _mm256_unpackhi_pd((__m256d)v[i], (__m256d)v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        v[i] = (ps_vec_f64)_mm256_permute2f128_pd(a[i], a[i + 2], 0x20);
        v[i + 2] = (ps_vec_f64)_mm256_permute2f128_pd(a[i], a[i + 2], 0x31);
    }
}

PS_INLINE void
ps_transpose_f32(ps_vec_f32 v[8])
{
    __m256 a[8];
    __m256d b[8];

#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const __m256d lo = _mm256_castps_pd(a[i + k]);
            const __m256d hi = _mm256_castps_pd(a[i + 2 + k]);

            b[i + 2 * k] = _mm256_unpacklo_pd(lo, hi);
            b[i + 2 * k + 1] = _mm256_unpackhi_pd(lo, hi);
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        v[k] = (ps_vec_f32)_mm256_permute2f128_pd(b[k], b[k + 4], 0x20);
        v[k + 4] = (ps_vec_f32)_mm256_permute2f128_pd(b[k], b[k + 4], 0x31);
    }
}

#elif PS_VECTOR_BYTES == 16 && defined(__SSE2__)

static inline void
ps_transpose_f64(ps_vec_f64 v[2])
{
    const __m128d lo = _mm_unpacklo_pd((__m128d)v[0], (__m128d)v[1]);

    v[1] = (ps_vec_f64)_mm_unpackhi_pd((__m128d)v[0], (__m128d)v[1]);
    v[0] = (ps_vec_f64)lo;
}

static inline void
ps_transpose_f32(ps_vec_f32 v[4])
{
    __m128 a = (__m128)v[0], b = (__m128)v[1], c = (__m128)v[2], d = (__m128)v[3];

    _MM_TRANSPOSE4_PS(a, b, c, d);
    v[0] = (ps_vec_f32)a;
    v[1] = (ps_vec_f32)b;
    v[2] = (ps_vec_f32)c;
    v[3] = (ps_vec_f32)d;
}

#else

#define PS_TRANSPOSE(real, vec, name)                \
    static inline void name(vec *v)                  \
    {                                                \
        enum { N = PS_VECTOR_BYTES / sizeof(real) }; \
        for (int i = 0; i < N; i++) {                \
            for (int k = 0; k < i; k++) {            \
                const real kept = v[i][k];           \
                v[i][k] = v[k][i];                   \
                v[k][i] = kept;                      \
            }                                        \
        }                                            \
    }
PS_TRANSPOSE(float, ps_vec_f32, ps_transpose_f32)
PS_TRANSPOSE(double, ps_vec_f64, ps_transpose_f64)
#undef PS_TRANSPOSE

#endif

/* A vector that is copied by memcpy() is stored in two halves, and its load waits for both. */
#define PS_LOAD_SQUARE(real, tag)                                                \
    PS_INLINE void ps_load_square_##tag(const real *const *from, int64_t offset, \
                                        ps_vec_##tag *to)                        \
    {                                                                            \
        enum { N = PS_VECTOR_BYTES / sizeof(real) };                             \
        ps_vec_##tag square[N];                                                  \
                                                                                 \
        _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                     \
        {                                                                        \
            square[i] = ps_load_##tag(from[i] + offset);                         \
        }                                                                        \
        ps_transpose_##tag(square);                                              \
        _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                     \
        {                                                                        \
            to[i] = square[i];                                                   \
        }                                                                        \
    }
#if PS_VECTOR_BYTES != 64 || !defined(__AVX512F__)
PS_LOAD_SQUARE(double, f64)
#endif
PS_LOAD_SQUARE(float, f32)
#undef PS_LOAD_SQUARE

#endif
