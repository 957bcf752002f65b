/* xla.c - solves, their derivatives, and recurrences as custom calls of XLA.
 *
 * A custom call has arrays without strides, and attributes that are constants of the
 * program. The attribute `layout` therefore says where the elements of a batch of systems
 * lie in the arrays: a matrix that all systems share has strides of 0, and the transpose
 * of a matrix is the same matrix with its off-diagonals exchanged and shifted by one row,
 * so that neither is copied.
 *
 * The solution of a singular system is NaN. A device needs memory for info and for the
 * workspace of the backend: it is a result of the call, so that XLA allocates it with its
 * other temporary arrays, also where the call becomes a part of a CUDA graph that is
 * launched again later. On the host the handler allocates this memory.
 *
 * The handler states version 0.1 of the interface: it uses no more, and all versions of
 * XLA since that of JAX 0.5 accept it.
 */
#include "xla.h"

#include <stdlib.h>
#include <string.h>

#include <xla/ffi/api/c_api.h>

#include "ps_numbers.h"
#include "pysolvers.h"

enum { LOWER, DIAG, UPPER, RHS, X, OPERANDS, INPUTS = X };
enum { ALIGNMENT = 64 };

typedef struct {
    int64_t first, row, outer, inner;
} place;

/* The attribute `layout`. */
typedef struct {
    int64_t pivot, flags, rows, outer, inner;
    place operand[OPERANDS];
} layout;

enum { LAYOUT_NUMBERS = sizeof(layout) / sizeof(int64_t) };

static ps_stride
stride_of(const place *p)
{
    return (ps_stride){p->row, p->outer, p->inner};
}

/* The systems of a layout in arrays that begin at these addresses. */
static ps_tridiag
systems_of(const layout *l, ps_dtype dtype, char *const data[OPERANDS])
{
    ps_tridiag t = {.dtype = dtype,
                    .flags = (uint32_t)l->flags,
                    .rows = l->rows,
                    .outer = l->outer,
                    .inner = l->inner};
    ps_input *const inputs[] = {&t.lower, &t.diag, &t.upper, &t.rhs};

    for (int k = 0; k < INPUTS; k++) {
        const place *const p = &l->operand[k];

        *inputs[k] = (ps_input){data[k] + p->first * ps_dtype_size(dtype), stride_of(p)};
    }
    t.x = (ps_output){data[X], stride_of(&l->operand[X])};
    return t;
}

static ps_options
options_of(const layout *l)
{
    return (ps_options){.method = PS_AUTO, .pivot = (ps_pivot)l->pivot};
}

static size_t
info_bytes(int64_t outer, int64_t inner)
{
    const size_t bytes = (size_t)(outer * inner) * sizeof(int32_t);

    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ------------------------------------------------------------------ the handler */

static XLA_FFI_Error *
failure(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *message)
{
    XLA_FFI_Error_Create_Args args = {.struct_size =
                                          XLA_FFI_Error_Create_Args_STRUCT_SIZE,
                                      .message = message,
                                      .errc = code};

    return frame->api->XLA_FFI_Error_Create(&args);
}

/* The answer to a question for the properties of the handler. */
static int
answer_metadata(const XLA_FFI_CallFrame *frame)
{
    for (XLA_FFI_Extension_Base *e = frame->extension_start; e != NULL; e = e->next) {
        if (e->type == XLA_FFI_Extension_Metadata) {
            XLA_FFI_Metadata *const answer = ((XLA_FFI_Metadata_Extension *)e)->metadata;

            answer->api_version.major_version = 0;
            answer->api_version.minor_version = 1;
            answer->traits = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
            return 1;
        }
    }
    return 0;
}

/* Read the attribute `layout`, so many numbers; 0 if it is another one. */
static int
read_layout(const XLA_FFI_CallFrame *frame, void *numbers, size_t count)
{
    static const char name[] = "layout";

    for (int64_t k = 0; k < frame->attrs.size; k++) {
        const XLA_FFI_ByteSpan *const found = frame->attrs.names[k];

        if (found->len == sizeof name - 1 && memcmp(found->ptr, name, found->len) == 0 &&
            frame->attrs.types[k] == XLA_FFI_AttrType_ARRAY) {
            const XLA_FFI_Array *const array = frame->attrs.attrs[k];

            if (array->dtype == XLA_FFI_DataType_S64 && array->size == count) {
                memcpy(numbers, array->data, count * sizeof(int64_t));
                return 1;
            }
        }
    }
    return 0;
}

static int
dtype_of(XLA_FFI_DataType type, ps_dtype *dtype)
{
    switch (type) {
    case XLA_FFI_DataType_F32:
        *dtype = PS_F32;
        return 1;
    case XLA_FFI_DataType_F64:
        *dtype = PS_F64;
        return 1;
    case XLA_FFI_DataType_C64:
        *dtype = PS_C64;
        return 1;
    case XLA_FFI_DataType_C128:
        *dtype = PS_C128;
        return 1;
    default:
        return 0;
    }
}

/* Whether the elements of an operand lie in an array of this size. */
static int
is_inside(const place *p, int64_t rows, int64_t outer, int64_t inner, int64_t size)
{
    const int64_t strides[] = {p->row, p->outer, p->inner};
    const int64_t counts[] = {rows, outer, inner};
    int64_t left = size - 1 - p->first;

    if (p->first < 0) {
        return 0;
    }
    for (int k = 0; k < 3; k++) {
        if (counts[k] < 1) {
            return 1; /* no element */
        }
        if (strides[k] < 0 || (counts[k] > 1 && strides[k] > left / (counts[k] - 1))) {
            return 0;
        }
        left -= strides[k] * (counts[k] - 1);
    }
    return left >= 0;
}

static int64_t
size_of(const XLA_FFI_Buffer *buffer)
{
    int64_t size = 1;

    for (int64_t k = 0; k < buffer->rank; k++) {
        size *= buffer->dims[k];
    }
    return size;
}

/* Read the systems of a call; 0 if its arrays are not those of its layout. */
static int
read_systems(const XLA_FFI_CallFrame *frame, const layout *l, ps_tridiag *t)
{
    char *data[OPERANDS];
    ps_dtype dtype = PS_F64;

    if (frame->args.size != INPUTS || frame->rets.size < 1) {
        return 0;
    }
    for (int k = 0; k < OPERANDS; k++) {
        const XLA_FFI_Buffer *const buffer =
            k == X ? frame->rets.rets[0] : frame->args.args[k];
        void *const read = ((const XLA_FFI_Buffer *)frame->args.args[RHS])->data;
        const int is_short = (k == LOWER && (l->flags & PS_SHORT_LOWER)) ||
                             (k == UPPER && (l->flags & PS_SHORT_UPPER));
        ps_dtype found;

        if (!dtype_of(buffer->dtype, &found) || (k > 0 && found != dtype) ||
            !is_inside(&l->operand[k], l->rows - is_short, l->outer, l->inner,
                       size_of(buffer))) {
            return 0;
        }
        dtype = found;
        /* The address of an array without elements can be null; it is not read. */
        data[k] = is_short && l->rows == 1 ? read : buffer->data;
    }
    *t = systems_of(l, dtype, data);
    return 1;
}

/* The stream of the call and its device. An XLA that does not state the device has one.
 */
static XLA_FFI_Error *
read_stream(const XLA_FFI_CallFrame *frame, ps_exec *exec)
{
    XLA_FFI_Stream_Get_Args stream = {.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE,
                                      .ctx = frame->ctx};
    XLA_FFI_DeviceOrdinal_Get_Args device = {
        .struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, .ctx = frame->ctx};
    XLA_FFI_Error *error = frame->api->XLA_FFI_Stream_Get(&stream);

    if (error == NULL && frame->api->struct_size >= XLA_FFI_Api_STRUCT_SIZE) {
        error = frame->api->XLA_FFI_DeviceOrdinal_Get(&device);
    }
    else if (error == NULL && ps_backend_get()->devices() > 1) {
        error = failure(frame, XLA_FFI_Error_Code_UNIMPLEMENTED,
                        "pysolvers: several devices need a newer version of JAX");
    }
    exec->stream = stream.stream;
    exec->device = device.device_ordinal;
    return error;
}

/* Set x to NaN, in which all bits are 1, where info is not 0. */
static void
blank_on_host(const ps_tridiag *t)
{
    const ps_stride s = t->x.stride;
    const int64_t size = ps_dtype_size(t->dtype);

    for (int64_t k = 0; k < t->outer * t->inner; k++) {
        const int64_t first = k / t->inner * s.outer + k % t->inner * s.inner;

        for (int64_t i = 0; t->info[k] != 0 && i < t->rows; i++) {
            memset((char *)t->x.data + (first + i * s.row) * size, 0xff, (size_t)size);
        }
    }
}

static ps_status
blank(const ps_tridiag *t, const ps_exec *exec)
{
    const ps_blank b = {.dtype = t->dtype,
                        .rows = t->rows,
                        .outer = t->outer,
                        .inner = t->inner,
                        .x = t->x,
                        .info = t->info,
                        .info_outer = t->inner,
                        .info_inner = 1};

    if (ps_backend_get()->memory == PS_DEVICE) {
        return ps_backend_get()->blank(&b, exec);
    }
    blank_on_host(t);
    return PS_OK;
}

/* Put info at the beginning of the memory of a call; the rest is the workspace. */
static ps_status
place_info(int64_t outer, int64_t inner, ps_exec *exec, int32_t **info)
{
    const size_t bytes = info_bytes(outer, inner);

    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *info = exec->work;
    exec->work = (char *)exec->work + bytes;
    exec->work_bytes -= bytes;
    return PS_OK;
}

typedef struct {
    const layout *layout;
    ps_tridiag systems;
} solve_call;

static ps_status
solve(void *call, ps_exec *exec)
{
    solve_call *const c = call;
    ps_tridiag *const t = &c->systems;
    const ps_options options = options_of(c->layout);
    ps_report report;
    ps_status status = place_info(t->outer, t->inner, exec, &t->info);

    if (status == PS_OK) {
        status = ps_backend_get()->tridiag_solve(t, &options, exec, &report);
    }
    return status == PS_OK ? blank(t, exec) : status;
}

static ps_status
bytes_of_solve(const void *call, size_t *bytes)
{
    const solve_call *const c = call;
    const ps_options options = options_of(c->layout);
    const ps_exec exec = {0};
    const ps_status status =
        ps_backend_get()->tridiag_work(&c->systems, &options, &exec, bytes);

    *bytes += info_bytes(c->systems.outer, c->systems.inner);
    return status;
}

/* Run a call with memory of so many bytes: on a device that of its second result. */
static XLA_FFI_Error *
run(const XLA_FFI_CallFrame *frame, void *call,
    ps_status (*bytes_of)(const void *call, size_t *bytes),
    ps_status (*compute)(void *call, ps_exec *exec))
{
    ps_exec exec = {0};
    ps_status status;

    if (ps_backend_get()->memory == PS_HOST) {
        status = bytes_of(call, &exec.work_bytes);
        if (status == PS_OK) {
            char *const memory = malloc(exec.work_bytes + ALIGNMENT);

            status = memory == NULL ? PS_NO_MEMORY : PS_OK;
            if (memory != NULL) {
                exec.work = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);
                status = compute(call, &exec);
            }
            free(memory);
        }
    }
    else if (frame->rets.size != 2) {
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the call has no workspace");
    }
    else {
        const XLA_FFI_Buffer *const work = frame->rets.rets[1];
        XLA_FFI_Error *const error = read_stream(frame, &exec);

        if (error != NULL) {
            return error;
        }
        exec.work = work->data;
        exec.work_bytes = (size_t)size_of(work);
        status = compute(call, &exec);
    }
    return status == PS_OK
               ? NULL
               : failure(frame, XLA_FFI_Error_Code_INTERNAL, ps_status_text(status));
}

static XLA_FFI_Error *
misfit(const XLA_FFI_CallFrame *frame)
{
    return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                   "pysolvers: the arrays of the call do not fit its layout");
}

static XLA_FFI_Error *
tridiag_handler(XLA_FFI_CallFrame *frame)
{
    layout l;
    solve_call c = {.layout = &l};

    if (answer_metadata(frame)) {
        return NULL;
    }
    if (!read_layout(frame, &l, LAYOUT_NUMBERS) || !read_systems(frame, &l, &c.systems)) {
        return misfit(frame);
    }
    return run(frame, &c, bytes_of_solve, solve);
}

/* The layout of the products: flags, rows, outer, inner. */
enum { PRODUCT_NUMBERS = 4, PRODUCT_INPUTS = 2, PRODUCT_RESULTS = 3 };

/* Read the arrays of the products; 0 if they do not fit their layout. */
static int
read_products(const XLA_FFI_CallFrame *frame, ps_products *p)
{
    void *data[PRODUCT_INPUTS + PRODUCT_RESULTS];
    int64_t numbers[PRODUCT_NUMBERS];

    if (!read_layout(frame, numbers, PRODUCT_NUMBERS) ||
        frame->args.size != PRODUCT_INPUTS || frame->rets.size != PRODUCT_RESULTS) {
        return 0;
    }
    *p = (ps_products){.flags = (uint32_t)numbers[0],
                       .rows = numbers[1],
                       .outer = numbers[2],
                       .inner = numbers[3]};
    for (int k = 0; k < PRODUCT_INPUTS + PRODUCT_RESULTS; k++) {
        const XLA_FFI_Buffer *const buffer = k < PRODUCT_INPUTS
                                                 ? frame->args.args[k]
                                                 : frame->rets.rets[k - PRODUCT_INPUTS];
        ps_dtype dtype;

        if (!dtype_of(buffer->dtype, &dtype) || (k > 0 && dtype != p->dtype) ||
            p->rows < 1 || p->outer < 0 || p->inner < 0 ||
            size_of(buffer) != p->rows * p->outer * p->inner) {
            return 0;
        }
        p->dtype = dtype;
        data[k] = buffer->data;
    }
    p->g = data[0];
    p->x = data[1];
    p->lower = data[2];
    p->diag = data[3];
    p->upper = data[4];
    return 1;
}

static XLA_FFI_Error *
products_handler(XLA_FFI_CallFrame *frame)
{
    const ps_backend *const backend = ps_backend_get();
    ps_exec exec = {0};
    ps_products p;

    if (answer_metadata(frame)) {
        return NULL;
    }
    if (backend->products == NULL) {
        return failure(frame, XLA_FFI_Error_Code_UNIMPLEMENTED,
                       ps_status_text(PS_UNSUPPORTED));
    }
    if (!read_products(frame, &p)) {
        return misfit(frame);
    }
    XLA_FFI_Error *const error = read_stream(frame, &exec);
    if (error != NULL) {
        return error;
    }
    const ps_status status = backend->products(&p, &exec);
    return status == PS_OK
               ? NULL
               : failure(frame, XLA_FFI_Error_Code_INTERNAL, ps_status_text(status));
}

/* The layout of recurrences: flags, rows, outer, inner, then the places of first, second
 * and b, which are the arguments (second, if there are three), and of x. */
enum { FIRST, SECOND, B, RECURRENCE_INPUTS };

typedef struct {
    int64_t flags, rows, outer, inner;
    place operand[RECURRENCE_INPUTS + 1];
} recurrence_layout;

enum { RECURRENCE_NUMBERS = sizeof(recurrence_layout) / sizeof(int64_t) };

/* The recurrence of a layout in arrays that begin at these addresses, null for none. */
static ps_recurrence
recurrence_of(const recurrence_layout *l, ps_dtype dtype,
              char *const data[RECURRENCE_INPUTS + 1])
{
    ps_recurrence r = {.dtype = dtype,
                       .flags = (uint32_t)l->flags,
                       .rows = l->rows,
                       .outer = l->outer,
                       .inner = l->inner};
    ps_input *const inputs[] = {&r.first, &r.second, &r.b};

    for (int k = 0; k <= RECURRENCE_INPUTS; k++) {
        const place *const p = &l->operand[k];
        char *const first =
            data[k] == NULL ? NULL : data[k] + p->first * ps_dtype_size(dtype);

        if (k == RECURRENCE_INPUTS) {
            r.x = (ps_output){first, stride_of(p)};
        }
        else {
            *inputs[k] = (ps_input){first, stride_of(p)};
        }
    }
    return r;
}

/* Read a recurrence; 0 if its arrays are not those of its layout. */
static int
read_recurrence(const XLA_FFI_CallFrame *frame, ps_recurrence *r)
{
    const int has_second = frame->args.size == RECURRENCE_INPUTS;
    char *data[RECURRENCE_INPUTS + 1] = {NULL};
    ps_dtype dtype = PS_F64;
    recurrence_layout l;

    if (!read_layout(frame, &l, RECURRENCE_NUMBERS) || frame->rets.size < 1 ||
        (!has_second && frame->args.size != RECURRENCE_INPUTS - 1)) {
        return 0;
    }
    for (int k = 0, argument = 0; k <= RECURRENCE_INPUTS; k++) {
        if (k == SECOND && !has_second) {
            continue;
        }
        const XLA_FFI_Buffer *const buffer =
            k == RECURRENCE_INPUTS ? frame->rets.rets[0] : frame->args.args[argument++];
        ps_dtype found;

        if (!dtype_of(buffer->dtype, &found) || (k > 0 && found != dtype) ||
            !is_inside(&l.operand[k], l.rows, l.outer, l.inner, size_of(buffer))) {
            return 0;
        }
        dtype = found;
        data[k] = buffer->data;
    }
    *r = recurrence_of(&l, dtype, data);
    return 1;
}

static ps_status
bytes_of_recurrence(const void *call, size_t *bytes)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    const ps_exec exec = {0};

    return entries->recurrence_work == NULL
               ? PS_UNSUPPORTED
               : entries->recurrence_work(call, &exec, bytes);
}

static ps_status
compute_recurrence(void *call, ps_exec *exec)
{
    const ps_number_entries *const entries = ps_number_entries_get();

    return entries->recurrence == NULL ? PS_UNSUPPORTED : entries->recurrence(call, exec);
}

static XLA_FFI_Error *
recurrence_handler(XLA_FFI_CallFrame *frame)
{
    ps_recurrence r;

    if (answer_metadata(frame)) {
        return NULL;
    }
    return read_recurrence(frame, &r)
               ? run(frame, &r, bytes_of_recurrence, compute_recurrence)
               : misfit(frame);
}

/* The layout of blocks: the numbers of block_call, then a block_place for each operand of
 * the matrix, three blocks or five diagonals (side 0), for the right-hand sides and x. */
typedef struct {
    int64_t first, row, outer, inner, down, across;
} block_place;

typedef struct {
    int64_t pivot, definite, side, rows, outer, inner;
} block_call;

enum { MOST_BANDS = 5, MOST_BLOCK_PLACES = MOST_BANDS + 2 };

typedef struct {
    block_call call;
    block_place place[MOST_BLOCK_PLACES];
} block_layout;

/* Whether the elements of an operand in rows begin .. rows-1 lie in an array of this size. */
static int
is_block_inside(const block_place *p, const ps_blocks *b, int64_t begin, int64_t rows,
                int64_t size)
{
    const int64_t least = b->side == 0 ? 1 : b->side;
    const place first = {p->first + begin * p->row, p->row, p->outer, p->inner};
    const int64_t within = (least - 1) * (p->down + p->across);

    if (rows - begin < 1) {
        return 1;
    }
    return p->down >= 0 && p->across >= 0 && p->down < size && p->across < size &&
           within < size &&
           is_inside(&first, rows - begin, b->outer, b->inner, size - within);
}

/* Numbers of the layout of a matrix of so many diagonals; 0 for another number of them. */
static size_t
block_numbers(int64_t bands)
{
    return bands == 3 || bands == MOST_BANDS
               ? (sizeof(block_call) + (size_t)(bands + 2) * sizeof(block_place)) /
                     sizeof(int64_t)
               : 0;
}

/* The systems of a layout in arrays that begin at these addresses; 0 if the layout is not
 * that of a matrix of so many diagonals. */
static int
blocks_of(const block_layout *l, int64_t bands, ps_dtype dtype,
          char *const data[MOST_BLOCK_PLACES], ps_blocks *b)
{
    if ((l->call.side == 0) != (bands == MOST_BANDS) || l->call.side < 0 ||
        l->call.side > PS_MOST_SIDE || l->call.rows < 1) {
        return 0;
    }
    *b = (ps_blocks){.task = PS_BLOCKS_SOLVE,
                     .dtype = dtype,
                     .pivot = (ps_pivot)l->call.pivot,
                     .side = (int32_t)l->call.side,
                     .definite = l->call.definite != 0,
                     .rows = l->call.rows,
                     .outer = l->call.outer,
                     .inner = l->call.inner};
    ps_block_diagonal *const blocks[] = {&b->lower, &b->diag, &b->upper};

    for (int64_t k = 0; k < bands + 2; k++) {
        const block_place *const p = &l->place[k];
        /* rows before the first one that is read need not exist */
        const ps_block_diagonal found = {
            (void *)((uintptr_t)data[k] + (uintptr_t)(p->first * ps_dtype_size(dtype))),
            {p->row, p->outer, p->inner},
            p->down,
            p->across};

        if (k == bands) {
            b->rhs = found;
        }
        else if (k == bands + 1) {
            b->x = found;
        }
        else if (b->side == 0) {
            b->bands[k] = (ps_input){found.data, found.stride};
        }
        else {
            *blocks[k] = found;
        }
    }
    return 1;
}

/* Read a solve with blocks; 0 if its arrays are not those of its layout. */
static int
read_blocks(const XLA_FFI_CallFrame *frame, ps_blocks *b)
{
    const int64_t bands = frame->args.size - 1;
    char *data[MOST_BLOCK_PLACES];
    ps_dtype dtype = PS_F64;
    block_layout l;

    if (block_numbers(bands) == 0 || frame->rets.size < 1 ||
        !read_layout(frame, &l, block_numbers(bands))) {
        return 0;
    }
    for (int64_t k = 0; k < bands + 2; k++) {
        const XLA_FFI_Buffer *const buffer =
            k == bands + 1 ? frame->rets.rets[0] : frame->args.args[k];
        ps_dtype found;

        if (!dtype_of(buffer->dtype, &found) || (k > 0 && found != dtype)) {
            return 0;
        }
        dtype = found;
        data[k] = buffer->data;
    }
    if (!blocks_of(&l, bands, dtype, data, b)) {
        return 0;
    }
    for (int64_t k = 0; k < bands + 2; k++) {
        const XLA_FFI_Buffer *const buffer =
            k == bands + 1 ? frame->rets.rets[0] : frame->args.args[k];
        const int64_t offset = k < bands ? k - bands / 2 : 0;

        if (!is_block_inside(&l.place[k], b, offset < 0 ? -offset : 0,
                             offset > 0 ? b->rows - offset : b->rows, size_of(buffer))) {
            return 0;
        }
    }
    return 1;
}

static ps_status
bytes_of_blocks(const void *call, size_t *bytes)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    const ps_blocks *const b = call;
    const ps_exec exec = {0};
    /* whether there is info counts, not where */
    ps_blocks own = *b;

    own.info = (int32_t *)(void *)own.x.data;
    const ps_status status = entries->blocks_work == NULL
                                 ? PS_UNSUPPORTED
                                 : entries->blocks_work(&own, &exec, bytes);

    *bytes += info_bytes(b->outer, b->inner);
    return status;
}

/* Set the solutions of singular systems to NaN, one scalar row of all blocks after the other.
 */
static ps_status
blank_blocks(const ps_blocks *b, const ps_exec *exec)
{
    ps_tridiag t = {.dtype = b->dtype,
                    .rows = b->rows,
                    .outer = b->outer,
                    .inner = b->inner,
                    .info = b->info};
    ps_status status = PS_OK;

    for (int64_t p = 0; p < (b->side == 0 ? 1 : b->side) && status == PS_OK; p++) {
        t.x = (ps_output){(char *)b->x.data + p * b->x.down * ps_dtype_size(b->dtype),
                          b->x.stride};
        status = blank(&t, exec);
    }
    return status;
}

static ps_status
solve_blocks(void *call, ps_exec *exec)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    ps_blocks *const b = call;
    ps_report report;
    ps_status status = place_info(b->outer, b->inner, exec, &b->info);

    if (status == PS_OK) {
        status = entries->blocks_run == NULL ? PS_UNSUPPORTED
                                             : entries->blocks_run(b, exec, &report);
    }
    return status == PS_OK ? blank_blocks(b, exec) : status;
}

static XLA_FFI_Error *
blocks_handler(XLA_FFI_CallFrame *frame)
{
    ps_blocks b;

    if (answer_metadata(frame)) {
        return NULL;
    }
    return read_blocks(frame, &b) ? run(frame, &b, bytes_of_blocks, solve_blocks)
                                  : misfit(frame);
}

/* ------------------------------------------------------------------- the module */

/* Addresses of arrays that do not overlap, `shift` bytes after aligned ones. */
static void
set_addresses(char **data, uintptr_t count, uintptr_t shift)
{
    for (uintptr_t k = 0; k < count; k++) {
        data[k] = (char *)(((k + 1) << (sizeof(void *) * 8 - 8)) + shift);
    }
}

/* Read the arguments of a question for the bytes of a workspace: a dtype and a layout of at
 * most `most` bytes. Returns its bytes, or 0 with an exception. */
static size_t
read_question(PyObject *args, int *dtype, void *numbers, size_t most)
{
    Py_buffer given;

    if (!PyArg_ParseTuple(args, "iy*", dtype, &given)) {
        return 0;
    }
    const size_t bytes = (size_t)given.len;
    const int fits = bytes > 0 && bytes <= most && *dtype >= 0 && *dtype < PS_DTYPE_COUNT;

    if (fits) {
        memcpy(numbers, given.buf, bytes);
    }
    PyBuffer_Release(&given);
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "need a dtype and a layout of at most %zu int64",
                     most / sizeof(int64_t));
        return 0;
    }
    return bytes;
}

static PyObject *
answer(ps_status status, size_t bytes)
{
    if (status != PS_OK) {
        PyErr_SetString(PyExc_RuntimeError, ps_status_text(status));
        return NULL;
    }
    return PyLong_FromSize_t(bytes);
}

static PyObject *
xla_tridiag_work(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype;
    layout l;
    ps_status status = PS_BAD_ARGUMENT;
    size_t most = 0;
    const size_t given = read_question(args, &dtype, &l, sizeof l);

    if (given == 0) {
        return NULL;
    }
    /* XLA aligns arrays, but may pass a part of one. */
    for (int is_part = 0; is_part < 2 && given == sizeof l; is_part++) {
        char *data[OPERANDS];
        size_t bytes = 0;

        set_addresses(data, OPERANDS,
                      (uintptr_t)(is_part * ps_dtype_size((ps_dtype)dtype)));
        const solve_call c = {&l, systems_of(&l, (ps_dtype)dtype, data)};
        status = bytes_of_solve(&c, &bytes);
        if (status != PS_OK) {
            break;
        }
        most = bytes > most ? bytes : most;
    }
    return answer(status, most);
}

static PyObject *
xla_recurrence_work(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype;
    recurrence_layout l;
    char *data[RECURRENCE_INPUTS + 1];
    size_t bytes = 0;
    const size_t given = read_question(args, &dtype, &l, sizeof l);

    if (given == 0) {
        return NULL;
    }
    set_addresses(data, RECURRENCE_INPUTS + 1, 0);
    /* of second order, which takes more */
    const ps_recurrence r = recurrence_of(&l, (ps_dtype)dtype, data);
    const ps_status status =
        given == sizeof l ? bytes_of_recurrence(&r, &bytes) : PS_BAD_ARGUMENT;
    return answer(status, bytes);
}

static PyObject *
xla_blocks_work(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype;
    block_layout l = {0};
    char *data[MOST_BLOCK_PLACES];
    ps_blocks b;
    size_t bytes = 0;
    const size_t given = read_question(args, &dtype, &l, sizeof l);

    if (given == 0) {
        return NULL;
    }
    const int64_t bands = l.call.side == 0 ? MOST_BANDS : 3;

    set_addresses(data, MOST_BLOCK_PLACES, 0);
    const int fits = given == block_numbers(bands) * sizeof(int64_t) &&
                     blocks_of(&l, bands, (ps_dtype)dtype, data, &b);
    const ps_status status = fits ? bytes_of_blocks(&b, &bytes) : PS_BAD_ARGUMENT;
    return answer(status, bytes);
}

PyDoc_STRVAR(xla_tridiag_work_doc, "xla_tridiag_work($module, dtype, layout, /)\n--\n\n"
                                   "Return the bytes of the workspace of xla_tridiag.");
PyDoc_STRVAR(xla_recurrence_work_doc,
             "xla_recurrence_work($module, dtype, layout, /)\n--\n\n"
             "Return the bytes of the workspace of xla_recurrence.");
PyDoc_STRVAR(xla_blocks_work_doc, "xla_blocks_work($module, dtype, layout, /)\n--\n\n"
                                  "Return the bytes of the workspace of xla_blocks.");

static PyMethodDef methods[] = {
    {"xla_tridiag_work", xla_tridiag_work, METH_VARARGS, xla_tridiag_work_doc},
    {"xla_recurrence_work", xla_recurrence_work, METH_VARARGS, xla_recurrence_work_doc},
    {"xla_blocks_work", xla_blocks_work, METH_VARARGS, xla_blocks_work_doc},
    {NULL, NULL, 0, NULL},
};

static int
add_handler(PyObject *module, const char *name, XLA_FFI_Handler *handler)
{
    void *address;

    memcpy(&address, &handler, sizeof address);
    PyObject *const capsule = PyCapsule_New(address, NULL, NULL);
    const int failed =
        capsule == NULL || PyModule_AddObjectRef(module, name, capsule) < 0;

    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

int
xla_add(PyObject *module)
{
    return add_handler(module, "xla_tridiag", tridiag_handler) < 0 ||
                   add_handler(module, "xla_products", products_handler) < 0 ||
                   add_handler(module, "xla_recurrence", recurrence_handler) < 0 ||
                   add_handler(module, "xla_blocks", blocks_handler) < 0
               ? -1
               : PyModule_AddFunctions(module, methods);
}
