/* geometry.h - all of a batch that its plan depends on: the key of remembered plans. */
#ifndef PS_CUDA_LINES_GEOMETRY_H
#define PS_CUDA_LINES_GEOMETRY_H

#include "runtime/engine.h"
#include "runtime/remembered.h"

namespace pysolvers::lines {

using namespace runtime;

/* Addresses matter by their remainders: memory is accessed in units of up to 128 bytes.
 */
struct Geometry {
    const ps_cuda_device *device;
    int64_t dtype, flags, option, rows, outer, inner;
    struct Place {
        int64_t row, outer, inner, remainder;
    } operands[5];
};

/* `option`: what else the plan depends on. */
inline Geometry
geometry_of(const ps_tridiag &t, const ps_cuda_device *device, int64_t option)
{
    const auto place = [](const void *data, const ps_stride &s) {
        return Geometry::Place{
            s.row, s.outer, s.inner,
            static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % 128)};
    };

    return {device,
            t.dtype,
            t.flags,
            option,
            t.rows,
            t.outer,
            t.inner,
            {place(t.lower.data, t.lower.stride), place(t.diag.data, t.diag.stride),
             place(t.upper.data, t.upper.stride), place(t.rhs.data, t.rhs.stride),
             place(t.x.data, t.x.stride)}};
}

/* The plan of a geometry: that of an earlier call, or make() -> Plan. A plan contains no
 * address that differs between batches of one geometry, or its user replaces them. */
template <typename Plan, int COUNT, typename Make>
inline const Plan &
remembered_plan(Remembered<Geometry, Plan, COUNT> &plans, const Geometry &key,
                const Make &make)
{
    const Plan *const known = plans.find(key);

    return known != nullptr ? *known : *plans.add(key, make());
}

} // namespace pysolvers::lines

#endif
