/* reaction.h - a source of block rows on the line algebra: two substances that diffuse
 * along lines and react with each other.
 *
 *   u_t = p u_xx - a u + b v,    v_t = q v_xx + a u - b v
 *
 * between fixed values at the ends of a line, second order differences and a backward
 * Euler step, with both substances of a node in one block row:
 *
 *   lower = upper = -diag(p, q) dt/h^2,    diag = I + 2 diag(p, q) dt/h^2 + dt R
 */
#include "lines/field.h"
#include "runtime/tuning.h"

/* The inner nodes of the lines. */
typedef struct {
    int64_t rows;
    field substance[2];
    double spread[2], rate[2]; /* dt p/h^2, dt q/h^2; dt a, dt b */
} line_source;

/* Rows row .. row+count-1 of both substances, in the order of values. */
PS_INLINE void
load_substances(const line_source *s, int64_t row, int count, int64_t tile, value *to)
{
    vec u[2][LANES];

    for (int k = 0; k < 2; k++) {
        field_load(&s->substance[k], row, count, tile, u[k]);
        for (int r = 0; r < count; r++) {
            to[r].at[k] = u[k][r];
        }
    }
}

PS_INLINE void
source_rows(const line_source *s, int64_t row, int count, int64_t tile, single_row *to)
{
    const vec none = {0}, p = splat(s->spread[0]), q = splat(s->spread[1]);
    const vec a = splat(s->rate[0]), b = splat(s->rate[1]);
    const num side = {{{{-p, none}}, {{none, -q}}}};
    value u[LANES], end;

    load_substances(s, row, count, tile, u);
    for (int r = 0; r < count; r++) {
        to[r] = (single_row){
            side, {{{{1 + 2 * p + a, -b}}, {{-a, 1 + 2 * q + b}}}}, side, u[r]};
    }
    if (row == 0) {
        load_substances(s, -1, 1, tile, &end);
        to[0].rhs = sub_mul(to[0].rhs, side, end);
        to[0].lower = zero();
    }
    if (row + count == s->rows) {
        load_substances(s, s->rows, 1, tile, &end);
        to[count - 1].rhs = sub_mul(to[count - 1].rhs, side, end);
        to[count - 1].upper = zero();
    }
}

PS_INLINE void
source_put(const line_source *s, int64_t row, int count, int64_t tile, value *x)
{
    vec u[LANES];

    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < count; r++) {
            u[r] = x[r].at[k];
        }
        field_store(&s->substance[k], row, count, tile, u);
    }
}

#include "lines/source.inc"
