/* module.c - the extension: its functions, its constants and its initialization.
 *
 * The build passes the name of the module as PS_MODULE_NAME, so that one source serves
 * every backend, and the number of the contract as PS_ABI_VERSION. The rules for dtypes
 * and axes and the exceptions are in Python.
 */
#define PS_IMPORT_NUMPY
#include "numpy_api.h"

#include "binding.h"
#include "blocks.h"
#include "cavity.h"
#include "codes.h"
#include "cylinder.h"
#include "fp_mode.h"
#include "gceidd.h"
#include "differences.h"
#include "diffusion.h"
#include "heat.h"
#include "memory.h"
#include "modes.h"
#include "part.h"
#include "ps_api.h"
#include "pysolvers.h"
#include "rates.h"
#include "recurrence.h"
#include "relax.h"
#include "spikes.h"
#include "spline.h"
#include "step.h"
#include "staggered.h"
#include "transform.h"
#include "xla.h"

/* Set module.STATUS = {code: (name, text), ...}. */
static int
add_status(PyObject *module)
{
#define PS_NAME_(name, text) #name,
    static const char *const names[] = {PS_STATUS_LIST(PS_NAME_)};
#undef PS_NAME_
    PyObject *const table = PyDict_New();
    int failed = table == NULL;

    for (int code = 0; code < PS_STATUS_COUNT && !failed; code++) {
        PyObject *const key = PyLong_FromLong(code);
        PyObject *const value =
            Py_BuildValue("(ss)", names[code], ps_status_text((ps_status)code));

        failed = key == NULL || value == NULL || PyDict_SetItem(table, key, value) < 0;
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    failed = failed || PyModule_AddObjectRef(module, "STATUS", table) < 0;
    Py_XDECREF(table);
    return failed ? -1 : 0;
}

static int
add_constants(PyObject *module)
{
#define PS_TEXT_(name, text) text,
    static const char *const methods[] = {PS_METHOD_LIST(PS_TEXT_)};
    static const char *const dtypes[] = {PS_DTYPE_LIST(PS_TEXT_)};
    static const char *const trans[] = {PS_TRANS_LIST(PS_TEXT_)};
    static const char *const pivots[] = {PS_PIVOT_LIST(PS_TEXT_)};
#undef PS_TEXT_
    const ps_backend *const backend = ps_backend_get();

    if (add_codes(module, "METHODS", methods, PS_METHOD_COUNT) < 0 ||
        add_codes(module, "DTYPES", dtypes, PS_DTYPE_COUNT) < 0 ||
        add_codes(module, "TRANS", trans, PS_TRANS_COUNT) < 0 ||
        add_codes(module, "PIVOTS", pivots, PS_PIVOT_COUNT) < 0 ||
        add_status(module) < 0 || cavity_add_constants(module) < 0 ||
        relax_add_constants(module) < 0 || gceidd_add_constants(module) < 0 ||
        heat_add_constants(module) < 0 || staggered_add_constants(module) < 0 ||
        PyModule_AddIntConstant(module, "PERIODIC", PS_PERIODIC) < 0 ||
        PyModule_AddIntConstant(module, "ROW_SUMS", PS_ROW_SUMS) < 0 ||
        PyModule_AddIntConstant(module, "COLUMNS", PS_COLUMNS) < 0 ||
        PyModule_AddIntConstant(module, "SHORT_LOWER", PS_SHORT_LOWER) < 0 ||
        PyModule_AddIntConstant(module, "SHORT_UPPER", PS_SHORT_UPPER) < 0 ||
        PyModule_AddIntConstant(module, "MAX_ROWS", INT32_MAX - 1) < 0 ||
        PyModule_AddIntConstant(module, "ABI", PS_ABI_VERSION) < 0) {
        return -1;
    }
    return PyModule_AddStringConstant(module, "NAME", backend->name);
}

/* Set module.C_API, the capsule of pysolvers_api.h, if there is one. */
static int
add_c_api(PyObject *module)
{
    union {
        const void *found;
        void *table; /* a capsule takes a pointer without const */
    } api = {ps_c_api()};

    if (api.found == NULL) {
        return 0;
    }
    PyObject *const capsule = PyCapsule_New(api.table, "pysolvers._core.C_API", NULL);
    const int failed =
        capsule == NULL || PyModule_AddObjectRef(module, "C_API", capsule) < 0;

    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

static PyObject *
describe(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString(ps_backend_get()->describe());
}

static PyObject *
default_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(ps_backend_get()->default_threads());
}

static int
module_exec(PyObject *module)
{
    module_state *const state = PyModule_GetState(module);

    if (PyArray_ImportNumPyAPI() < 0) {
        return -1;
    }
    state->factor_type = factor_type_new(module);
    if (state->factor_type == NULL ||
        PyModule_AddObjectRef(module, "Factor", state->factor_type) < 0) {
        return -1;
    }
    if (xla_add(module) < 0) {
        return -1;
    }
    if (ps_backend_get()->memory == PS_DEVICE &&
        (memory_add(module) < 0 || transform_add(module) < 0 || part_add(module) < 0)) {
        return -1;
    }
    if (ps_backend_get()->memory == PS_HOST &&
        (spikes_add(module) < 0 || fp_mode_add(module) < 0)) {
        return -1;
    }
    if (cylinder_add(module) < 0 || spline_add(module) < 0 || diffusion_add(module) < 0 ||
        step_add(module) < 0 || recurrence_add(module) < 0 || blocks_add(module) < 0 ||
        rates_add(module) < 0 || modes_add(module) < 0 || differences_add(module) < 0 ||
        add_c_api(module) < 0) {
        return -1;
    }
    return add_constants(module);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((module_state *)PyModule_GetState(module))->factor_type);
    return 0;
}

static int
module_clear(PyObject *module)
{
    Py_CLEAR(((module_state *)PyModule_GetState(module))->factor_type);
    return 0;
}

PyDoc_STRVAR(tridiag_solve_doc,
             "tridiag_solve($module, method, pivot, flags, lower, diag, upper, rhs, x, "
             "info, threads, variant=0, device=0, stream=0, count=0, /)\n--\n\n"
             "Solve a batch of systems of shape (outer, inner, rows); return status "
             "and report.");
PyDoc_STRVAR(
    tridiag_direct_doc,
    "tridiag_direct($module, lower, diag, upper, rhs, axis, out, pivot, "
    "periodic, threads, device=0, stream=0, singular=1, sums=0, step=None, "
    "method=0, reports=False, /)\n--\n\n"
    "Solve, or make a step, for operands that need no planning; return x, (x, "
    "info), a status or NotImplemented; with a report (x, info or None, report).");
PyDoc_STRVAR(tridiag_borrowed_doc,
             "tridiag_borrowed($module, lower, diag, upper, rhs, axis, out, pivot, "
             "periodic, threads, device, asks, library, step=None, /)\n--\n\n"
             "Solve for arrays of a library that need no planning; return as "
             "tridiag_direct does.");
PyDoc_STRVAR(factor_make_doc,
             "factor_make($module, pivot, flags, lower, diag, upper, info, threads, "
             "device=0, stream=0, count=0, /)\n--\n\n"
             "Factor a batch of matrices; return status, report and Factor.");
PyDoc_STRVAR(cavity_iterate_doc,
             "cavity_iterate($module, scheme, wall, direction, stages, viscosity, lid, "
             "step, psi_sweeps, iteration, psi, omega, count, method, variant, "
             "threads, made, device=0, stream=0, /)\n--\n\n"
             "Iterate the lid-driven cavity; return status and report.");
PyDoc_STRVAR(staggered_step_doc,
             "staggered_step($module, codes, numbers, most_sweeps, u, v, p, f, g, q, "
             "clock, force, count, threads, made, device=0, stream=0, /)\n--\n\n"
             "Make steps of the cavity on a staggered grid; return status and report.");
PyDoc_STRVAR(lmsor_iterate_doc,
             "lmsor_iterate($module, kernel, relaxation, omega, nx, ny, pitch, periodic, "
             "cx, cy, u, fields, tables, stop, count, threads, made, device=0, "
             "stream=0, /)\n--\n\n"
             "Relax convection and diffusion; return status and report.");
PyDoc_STRVAR(
    laplace_iterate_doc,
    "laplace_iterate($module, variant, coefficients, nx, ny, pitch, periodic, ax, ay, t, "
    "diag, gain, source, stop, count, threads, made, device=0, stream=0, /)\n--\n\n"
    "Relax the temperatures of a plate; return status and report.");
PyDoc_STRVAR(
    gceidd_step_doc,
    "gceidd_step($module, codes, strips, lost, spacing, dt, limits, fields, before, "
    "velocity, diffusion, source, kinds, edges, exchange, count, threads, made, "
    "device=0, stream=0, /)\n--\n\n"
    "Make steps of convection and diffusion; return status and report.");
PyDoc_STRVAR(heat_step_doc,
             "heat_step($module, codes, switches, ratios, sides, tables, source, "
             "source_steps, k, t, w, largest, kept, count, threads, made, device=0, "
             "stream=0, /)\n--\n\n"
             "Make time steps of heat conduction; return status and report.");
PyDoc_STRVAR(heat_keep_doc,
             "heat_keep($module, /)\n--\n\n"
             "Return an empty capsule for the factors that a solver keeps from call to "
             "call.");
PyDoc_STRVAR(heat_cut_doc,
             "heat_cut($module, applies, place, ends, beyond, first, used, t, before, "
             "differences, outer, weights, spikes, device=0, stream=0, /)\n--\n\n"
             "Apply what other ranks change of a temperature; return status.");
PyDoc_STRVAR(diffusion_apply_doc,
             "diffusion_apply($module, ends, system, x, out, threads, device=0, "
             "stream=0, /)\n--\n\n"
             "Apply the operator of diffusion to a field; return status.");
PyDoc_STRVAR(diffusion_solve_doc,
             "diffusion_solve($module, limits, ends, system, levels, rhs, x, scale, "
             "basis, threads, device=0, stream=0, /)\n--\n\n"
             "Solve an implicit equation of diffusion; return status and report.");
PyDoc_STRVAR(copy_doc,
             "copy($module, source, target, threads, device=0, stream=0, /)\n--\n\n"
             "Copy as fast as the machine can; return status.");
PyDoc_STRVAR(borrow_doc,
             "borrow($module, array, device=0, stream=0, /)\n--\n\n"
             "View an array of another library as an ndarray, or return None.");
PyDoc_STRVAR(borrow_operands_doc,
             "borrow_operands($module, *operands_device_library)\n--\n\n"
             "View operands from a library on its current stream as ndarrays; return "
             "device, stream and ndarrays, or None.");
PyDoc_STRVAR(describe_doc, "describe($module)\n--\n\n"
                           "Say what the backend runs on.");
PyDoc_STRVAR(default_threads_doc,
             "default_threads($module)\n--\n\n"
             "Return the number of threads of a call with threads=0.");

static PyMethodDef module_methods[] = {
    {"tridiag_solve", tridiag_solve, METH_VARARGS, tridiag_solve_doc},
    {"tridiag_direct", (PyCFunction)(void (*)(void))tridiag_direct, METH_FASTCALL,
     tridiag_direct_doc},
    {"tridiag_borrowed", (PyCFunction)(void (*)(void))tridiag_borrowed, METH_FASTCALL,
     tridiag_borrowed_doc},
    {"factor_make", factor_make, METH_VARARGS, factor_make_doc},
    {"cavity_iterate", cavity_iterate, METH_VARARGS, cavity_iterate_doc},
    {"staggered_step", staggered_step, METH_VARARGS, staggered_step_doc},
    {"lmsor_iterate", lmsor_iterate, METH_VARARGS, lmsor_iterate_doc},
    {"laplace_iterate", laplace_iterate, METH_VARARGS, laplace_iterate_doc},
    {"gceidd_step", gceidd_step, METH_VARARGS, gceidd_step_doc},
    {"heat_step", heat_step, METH_VARARGS, heat_step_doc},
    {"heat_keep", heat_keep, METH_NOARGS, heat_keep_doc},
    {"heat_cut", heat_cut, METH_VARARGS, heat_cut_doc},
    {"diffusion_apply", diffusion_apply, METH_VARARGS, diffusion_apply_doc},
    {"diffusion_solve", diffusion_solve, METH_VARARGS, diffusion_solve_doc},
    {"copy", copy, METH_VARARGS, copy_doc},
    {"borrow", borrow, METH_VARARGS, borrow_doc},
    {"borrow_operands", (PyCFunction)(void (*)(void))borrow_operands, METH_FASTCALL,
     borrow_operands_doc},
    {"describe", describe, METH_NOARGS, describe_doc},
    {"default_threads", default_threads, METH_NOARGS, default_threads_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

#define PS_INIT_OF_(name) PyInit_##name
#define PS_INIT_OF(name) PS_INIT_OF_(name)

static PyModuleDef module_definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = PS_TEXT_OF(PS_MODULE_NAME),
    .m_size = sizeof(module_state),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PS_INIT_OF(PS_MODULE_NAME)(void);

PyMODINIT_FUNC
PS_INIT_OF(PS_MODULE_NAME)(void)
{
    return PyModuleDef_Init(&module_definition);
}
