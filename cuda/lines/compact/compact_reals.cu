/* compact_reals.cu - the kernels of compact.h, compiled once per dtype. */
#include "lines/compact/column_table.cuh"
#include "lines/compact/compact_columns.cuh"
#include "lines/compact/compact_rows.cuh"

namespace pysolvers::compact {

template ps_status compact_columns_launch(const CompactColumns<PS_NUMBER> &,
                                          cudaStream_t);
template int compact_columns_resident(const CompactColumns<PS_NUMBER> &);
template ps_status column_table_launch(const ColumnTableJob<PS_NUMBER> &, cudaStream_t);
template ps_status compact_rows_launch(const CompactRows<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::compact
