/* blocks_check.c - checks of ps_blocks, for all backends. */
#include "ps_blocks.h"

/* Whether the arrays that a task reads or writes are there. */
static int
has_operands(const ps_blocks *b)
{
    const int has_matrix =
        b->side == 0
            ? b->bands[2].data != NULL
            : b->diag.data != NULL &&
                  (b->rows == 1 || (b->lower.data != NULL && b->upper.data != NULL));
    const int has_sides = b->rhs.data != NULL && b->x.data != NULL;
    const int has_store = b->store != NULL && (uintptr_t)b->store % 64 == 0;

    switch (b->task) {
    case PS_BLOCKS_SOLVE:
        return has_matrix && has_sides;
    case PS_BLOCKS_FACTOR:
        return has_matrix && has_store;
    case PS_BLOCKS_APPLY:
        return has_sides && has_store;
    case PS_BLOCKS_LOGDET:
        return has_store && b->logdet != NULL && b->sign != NULL;
    default:
        return has_store && b->side <= PS_FAST_SIDE && b->inverse[1].data != NULL;
    }
}

/* Whether a factor of `made` matrices along an axis can solve `asked` systems along it. */
static int
is_step(int32_t step, int64_t asked, int64_t made)
{
    return step == 0 ? asked == 0 || made > 0
                     : step == 1 && (asked == made || asked == 0);
}

ps_status
ps_blocks_check(const ps_blocks *b)
{
    if (b == NULL || (unsigned)b->task >= PS_BLOCKS_TASKS || !ps_is_real(b->dtype) ||
        (unsigned)b->pivot >= PS_PIVOT_COUNT ||
        (b->definite && b->pivot == PS_PIVOT_AUTO) ||
        (unsigned)b->trans >= PS_TRANS_COUNT || b->side < 0 || b->side == 1 ||
        b->side > PS_MOST_SIDE || b->rows < 1 ||
        b->rows > (INT32_MAX - 1) / PS_MOST_SIDE || b->outer < 0 || b->inner < 0 ||
        (b->inner > 0 && b->outer > INT64_MAX / PS_MOST_SIDE / b->rows / b->inner)) {
        return PS_BAD_ARGUMENT;
    }
    if (b->weight.data != NULL &&
        (b->task != PS_BLOCKS_SOLVE || b->side != 0 || !b->definite ||
         b->pivot != PS_PIVOT_NEVER || b->scale.data == NULL)) {
        return PS_BAD_ARGUMENT;
    }
    if (b->task == PS_BLOCKS_APPLY &&
        (!is_step(b->outer_step, b->outer, b->factor_outer) ||
         !is_step(b->inner_step, b->inner, b->factor_inner) ||
         (b->inner_step == 0 && b->factor_inner != 1))) {
        return PS_BAD_ARGUMENT;
    }
    return b->outer == 0 || b->inner == 0 || has_operands(b) ? PS_OK : PS_BAD_ARGUMENT;
}
