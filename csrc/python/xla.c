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
info_bytes(const ps_tridiag *t)
{
    const size_t bytes = (size_t)(t->outer * t->inner) * sizeof(int32_t);

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

/* Solve with this memory for info and workspace. */
static ps_status
solve(const layout *l, ps_tridiag *t, ps_exec *exec, char *memory, size_t bytes)
{
    const ps_options options = options_of(l);
    ps_report report;

    if (bytes < info_bytes(t)) {
        return PS_WORK_TOO_SMALL;
    }
    t->info = (int32_t *)(void *)memory;
    exec->work = memory + info_bytes(t);
    exec->work_bytes = bytes - info_bytes(t);
    const ps_status status = ps_backend_get()->tridiag_solve(t, &options, exec, &report);
    return status == PS_OK ? blank(t, exec) : status;
}

static ps_status
solve_on_host(const layout *l, ps_tridiag *t)
{
    const ps_options options = options_of(l);
    ps_exec exec = {0};
    size_t bytes = 0;
    ps_status status = ps_backend_get()->tridiag_work(t, &options, &exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    bytes += info_bytes(t);
    char *const memory = malloc(bytes + ALIGNMENT);
    if (memory == NULL) {
        return PS_NO_MEMORY;
    }
    status =
        solve(l, t, &exec, memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT), bytes);
    free(memory);
    return status;
}

static XLA_FFI_Error *
tridiag_handler(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Error *error = NULL;
    ps_exec exec = {0};
    ps_status status;
    ps_tridiag t;
    layout l;

    if (answer_metadata(frame)) {
        return NULL;
    }
    if (!read_layout(frame, &l, LAYOUT_NUMBERS) || !read_systems(frame, &l, &t)) {
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the arrays of the call do not fit its layout");
    }
    if (ps_backend_get()->memory == PS_HOST) {
        status = solve_on_host(&l, &t);
    }
    else if (frame->rets.size != 2) {
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the call has no workspace");
    }
    else {
        const XLA_FFI_Buffer *const work = frame->rets.rets[1];

        error = read_stream(frame, &exec);
        if (error != NULL) {
            return error;
        }
        status = solve(&l, &t, &exec, work->data, (size_t)size_of(work));
    }
    return status == PS_OK
               ? NULL
               : failure(frame, XLA_FFI_Error_Code_INTERNAL, ps_status_text(status));
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
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the arrays of the call do not fit its layout");
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

/* Read a recurrence; 0 if its arrays are not those of its layout. */
static int
read_recurrence(const XLA_FFI_CallFrame *frame, ps_recurrence *r)
{
    const int has_second = frame->args.size == RECURRENCE_INPUTS;
    ps_input *const inputs[] = {&r->first, &r->second, &r->b};
    recurrence_layout l;

    if (!read_layout(frame, &l, RECURRENCE_NUMBERS) || frame->rets.size != 1 ||
        (!has_second && frame->args.size != RECURRENCE_INPUTS - 1)) {
        return 0;
    }
    *r = (ps_recurrence){
        .flags = (uint32_t)l.flags, .rows = l.rows, .outer = l.outer, .inner = l.inner};
    for (int k = 0, argument = 0; k <= RECURRENCE_INPUTS; k++) {
        if (k == SECOND && !has_second) {
            continue;
        }
        const XLA_FFI_Buffer *const buffer =
            k == RECURRENCE_INPUTS ? frame->rets.rets[0] : frame->args.args[argument++];
        const place *const p = &l.operand[k];
        ps_dtype dtype;

        if (!dtype_of(buffer->dtype, &dtype) || (k > 0 && dtype != r->dtype) ||
            !is_inside(p, l.rows, l.outer, l.inner, size_of(buffer))) {
            return 0;
        }
        r->dtype = dtype;
        char *const data = (char *)buffer->data + p->first * ps_dtype_size(dtype);
        if (k == RECURRENCE_INPUTS) {
            r->x = (ps_output){data, stride_of(p)};
        }
        else {
            *inputs[k] = (ps_input){data, stride_of(p)};
        }
    }
    return 1;
}

static ps_status
compute_recurrence(const ps_recurrence *r)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    ps_exec exec = {0};
    ps_status status = entries->recurrence_work(r, &exec, &exec.work_bytes);

    if (status != PS_OK) {
        return status;
    }
    char *const memory = malloc(exec.work_bytes + ALIGNMENT);
    if (memory == NULL) {
        return PS_NO_MEMORY;
    }
    exec.work = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);
    status = entries->recurrence(r, &exec);
    free(memory);
    return status;
}

static XLA_FFI_Error *
recurrence_handler(XLA_FFI_CallFrame *frame)
{
    ps_recurrence r;

    if (answer_metadata(frame)) {
        return NULL;
    }
    if (ps_number_entries_get()->recurrence == NULL) {
        return failure(frame, XLA_FFI_Error_Code_UNIMPLEMENTED,
                       ps_status_text(PS_UNSUPPORTED));
    }
    if (!read_recurrence(frame, &r)) {
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the arrays of the call do not fit its layout");
    }
    const ps_status status = compute_recurrence(&r);
    return status == PS_OK
               ? NULL
               : failure(frame, XLA_FFI_Error_Code_INTERNAL, ps_status_text(status));
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

/* Read a solve with blocks; 0 if its arrays are not those of its layout. */
static int
read_blocks(const XLA_FFI_CallFrame *frame, ps_blocks *b)
{
    const int64_t bands = frame->args.size - 1;
    block_layout l;

    if ((bands != 3 && bands != MOST_BANDS) || frame->rets.size != 1 ||
        !read_layout(frame, &l,
                     (sizeof l.call + (size_t)(bands + 2) * sizeof *l.place) /
                         sizeof(int64_t)) ||
        (l.call.side == 0) != (bands == MOST_BANDS) || l.call.side < 0 ||
        l.call.side > PS_MOST_SIDE || l.call.rows < 1) {
        return 0;
    }
    *b = (ps_blocks){.task = PS_BLOCKS_SOLVE,
                     .pivot = (ps_pivot)l.call.pivot,
                     .side = (int32_t)l.call.side,
                     .definite = l.call.definite != 0,
                     .rows = l.call.rows,
                     .outer = l.call.outer,
                     .inner = l.call.inner};
    ps_block_diagonal *const blocks[] = {&b->lower, &b->diag, &b->upper};

    for (int64_t k = 0; k < bands + 2; k++) {
        const XLA_FFI_Buffer *const buffer =
            k == bands + 1 ? frame->rets.rets[0] : frame->args.args[k];
        const block_place *const p = &l.place[k];
        const int64_t offset = k < bands ? k - bands / 2 : 0;
        ps_dtype dtype;

        if (!dtype_of(buffer->dtype, &dtype) || (k > 0 && dtype != b->dtype) ||
            !is_block_inside(p, b, offset < 0 ? -offset : 0,
                             offset > 0 ? b->rows - offset : b->rows, size_of(buffer))) {
            return 0;
        }
        b->dtype = dtype;
        /* rows before the first one that is read need not exist */
        const ps_block_diagonal found = {
            (void *)((uintptr_t)buffer->data +
                     (uintptr_t)(p->first * ps_dtype_size(dtype))),
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

static ps_status
solve_blocks(ps_blocks *b)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    const int64_t size = ps_dtype_size(b->dtype), systems = b->outer * b->inner;
    const size_t bytes =
        ((size_t)systems * sizeof(int32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    ps_exec exec = {0};
    ps_report report;
    ps_status status = entries->blocks_work(b, &exec, &exec.work_bytes);

    if (status != PS_OK) {
        return status;
    }
    char *const memory = malloc(bytes + exec.work_bytes + ALIGNMENT);
    if (memory == NULL) {
        return PS_NO_MEMORY;
    }
    char *const aligned = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);

    b->info = (int32_t *)(void *)aligned;
    exec.work = aligned + bytes;
    status = entries->blocks_run(b, &exec, &report);
    for (int64_t k = 0; k < systems && status == PS_OK; k++) {
        const int64_t first =
            k / b->inner * b->x.stride.outer + k % b->inner * b->x.stride.inner;
        const int64_t parts = b->side == 0 ? 1 : b->side;

        for (int64_t i = 0; b->info[k] != 0 && i < b->rows * parts; i++) {
            const int64_t at =
                first + i / parts * b->x.stride.row + i % parts * b->x.down;

            memset((char *)b->x.data + at * size, 0xff, (size_t)size);
        }
    }
    free(memory);
    return status;
}

static XLA_FFI_Error *
blocks_handler(XLA_FFI_CallFrame *frame)
{
    ps_blocks b;

    if (answer_metadata(frame)) {
        return NULL;
    }
    if (ps_number_entries_get()->blocks_run == NULL) {
        return failure(frame, XLA_FFI_Error_Code_UNIMPLEMENTED,
                       ps_status_text(PS_UNSUPPORTED));
    }
    if (!read_blocks(frame, &b)) {
        return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "pysolvers: the arrays of the call do not fit its layout");
    }
    const ps_status status = solve_blocks(&b);
    return status == PS_OK
               ? NULL
               : failure(frame, XLA_FFI_Error_Code_INTERNAL, ps_status_text(status));
}

/* ------------------------------------------------------------------- the module */

/* Addresses of arrays that do not overlap, `shift` bytes after aligned ones. */
static void
set_addresses(char *data[OPERANDS], uintptr_t shift)
{
    for (uintptr_t k = 0; k < OPERANDS; k++) {
        data[k] = (char *)(((k + 1) << (sizeof(void *) * 8 - 8)) + shift);
    }
}

static PyObject *
xla_tridiag_work(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype;
    Py_buffer numbers;

    if (!PyArg_ParseTuple(args, "iy*:xla_tridiag_work", &dtype, &numbers)) {
        return NULL;
    }
    layout l;
    const int fits = numbers.len == sizeof l && dtype >= 0 && dtype < PS_DTYPE_COUNT;
    if (fits) {
        memcpy(&l, numbers.buf, sizeof l);
    }
    PyBuffer_Release(&numbers);
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "need a dtype and a layout of %d int64",
                     (int)LAYOUT_NUMBERS);
        return NULL;
    }

    /* XLA aligns arrays, but may pass a part of one. */
    const ps_options options = options_of(&l);
    size_t most = 0;
    ps_tridiag t;
    for (int is_part = 0; is_part < 2; is_part++) {
        const ps_exec exec = {0};
        char *data[OPERANDS];
        size_t bytes = 0;

        set_addresses(data, (uintptr_t)(is_part * ps_dtype_size((ps_dtype)dtype)));
        t = systems_of(&l, (ps_dtype)dtype, data);
        const ps_status status =
            ps_backend_get()->tridiag_work(&t, &options, &exec, &bytes);
        if (status != PS_OK) {
            PyErr_SetString(PyExc_RuntimeError, ps_status_text(status));
            return NULL;
        }
        most = bytes > most ? bytes : most;
    }
    return PyLong_FromSize_t(most + info_bytes(&t));
}

PyDoc_STRVAR(xla_tridiag_work_doc, "xla_tridiag_work($module, dtype, layout, /)\n--\n\n"
                                   "Return the bytes of the workspace of xla_tridiag.");

static PyMethodDef methods[] = {
    {"xla_tridiag_work", xla_tridiag_work, METH_VARARGS, xla_tridiag_work_doc},
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
