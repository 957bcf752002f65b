/* lmsor_kernels.cuh - the choice of kernels for a ps_lmsor, for one dtype. */
#ifndef PS_CUDA_RELAXATION_LMSOR_KERNELS_CUH
#define PS_CUDA_RELAXATION_LMSOR_KERNELS_CUH

#include "relaxation/lmsor.h"
#include "relaxation/lmsor_rules.cuh"
#include "relaxation/relax_kernels.cuh"

namespace pysolvers::relaxation {

template <typename T> struct LmsorKernels {
    const ps_lmsor *l;
    ps_cuda_lmsor_use use;
    void *self;
    ps_cuda_grid grid = ps_cuda_grid_of(l->nx, l->ny, l->pitch);

    template <bool SOURCE, typename Rule>
    void set_fields(Rule &rule, const void *const *fields) const
    {
        constexpr int stored = Rule::fields - SOURCE;

        for (int n = 0; n < stored; n++) {
            rule.field[n] = static_cast<const T *>(fields[n]);
        }
        if constexpr (SOURCE) {
            rule.field[stored] = static_cast<const T *>(l->source);
        }
    }

    template <typename Rule> Rule with_skews(Rule rule) const
    {
        rule.cx = static_cast<T>(l->cx);
        rule.cy = static_cast<T>(l->cy);
        return rule;
    }

    template <bool SOURCE> LmsorTabled<T, SOURCE> tabled() const
    {
        LmsorTabled<T, SOURCE> rule = with_skews(LmsorTabled<T, SOURCE>());

        set_fields<SOURCE>(rule, &l->omega);
        rule.tables = {l->x_table, l->y_table, l->pitch, l->ny + 2};
        return rule;
    }

    template <bool SOURCE> LmsorSkew<T, SOURCE> skew() const
    {
        const void *const fields[] = {l->omega, l->skew_x, l->skew_y};
        LmsorSkew<T, SOURCE> rule = with_skews(LmsorSkew<T, SOURCE>());

        set_fields<SOURCE>(rule, fields);
        return rule;
    }

    template <bool SOURCE> LmsorStencil<T, SOURCE> stencil() const
    {
        const void *const fields[] = {l->omega, l->west, l->east, l->north, l->south};
        LmsorStencil<T, SOURCE> rule;

        set_fields<SOURCE>(rule, fields);
        return rule;
    }

    template <bool SOURCE> LmsorComputed<T, SOURCE> computed() const
    {
        LmsorComputed<T, SOURCE> rule = with_skews(LmsorComputed<T, SOURCE>());

        set_fields<SOURCE>(rule, &l->omega);
        rule.tables = {l->x_table, l->y_table, l->pitch, l->ny + 2};
        rule.relaxation = l->relaxation;
        rule.omega_constant = l->omega_constant;
        return rule;
    }

    template <typename Rule> ps_status use_plain(const Rule &rule, const char *name) const
    {
        PlainKernels<Rule> kernels(rule, grid, name);

        return use(kernels, self);
    }

    template <typename Rule> ps_status use_blocks(const Rule &rule) const
    {
        BlockKernels<Rule> kernels(rule, grid, ps_cuda_norm_of(&l->stop));

        return use(kernels, self);
    }

    template <bool SOURCE> ps_status choose() const
    {
        switch (l->kernel) {
        case PS_LMSOR_1:
            return use_plain(stencil<SOURCE>(), "kernel 1");
        case PS_LMSOR_2:
            return use_plain(skew<SOURCE>(), "kernel 2");
        case PS_LMSOR_3:
            return use_plain(computed<SOURCE>(), "kernel 3");
        case PS_LMSOR_AUTO:
            return l->x_table != nullptr && l->y_table != nullptr
                       ? use_blocks(tabled<SOURCE>())
                       : use_blocks(skew<SOURCE>());
        default:
            return PS_UNSUPPORTED;
        }
    }
};

template <typename T>
ps_status
with_lmsor_kernels(const ps_lmsor *l, ps_cuda_lmsor_use use, void *self)
{
    const LmsorKernels<T> kernels = {l, use, self};

    return l->source != nullptr ? kernels.template choose<true>()
                                : kernels.template choose<false>();
}

} // namespace pysolvers::relaxation

#endif
