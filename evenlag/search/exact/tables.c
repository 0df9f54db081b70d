/* Steps of the pricing tables in compiled form: same results as prefix_table.py and member_tables.py, which call them.
 *
 * A table has one cell for each load and row. A partition shifts all patterns that it joins by the same number of
 * cells. Where the cells that are read and written do not overlap, compilers turn a loop into vector instructions.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

#define VERSION 1
#define AT_ONCE 2048 /* cells of a block, so that they stay in the cache */
#define APART 16     /* cells of a block from which vector instructions are of use */

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_MACHINE
#endif

/* joined: let patterns join a partition, with cells that do not overlap. add: one partition after another, from the last
 * cell to the first. keep: keep or give one own partition after another; a row's patterns that give it come from the
 * next row. */
#define STEPS(NUMBER, JOINED, ADD, KEPT, KEEP)                                                                         \
    FOR_EACH_MACHINE static void JOINED(NUMBER *restrict to, const NUMBER *restrict from, uint8_t *restrict held,      \
                                        NUMBER value, Py_ssize_t count) {                                              \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            const NUMBER found = from[i] + value;                                                                      \
            held[i] = found > to[i];                                                                                   \
            to[i] = found > to[i] ? found : to[i];                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void ADD(NUMBER *cells, uint8_t *held, const int64_t *shifts, const int64_t *values, Py_ssize_t places,     \
                    Py_ssize_t count, Py_ssize_t levels, NUMBER impossible) {                                          \
        for (Py_ssize_t n = 0; n < places; n++, held += count) {                                                       \
            const Py_ssize_t shift = (Py_ssize_t)shifts[n], block = shift < AT_ONCE ? shift : AT_ONCE;                 \
            const NUMBER value = (NUMBER)values[n];                                                                    \
            if (block < APART)                                                                                         \
                for (Py_ssize_t i = count - 1; i >= shift; i--) {                                                      \
                    const NUMBER found = cells[i - shift] + value;                                                     \
                    if (found > cells[i]) cells[i] = found, held[i] = 1;                                               \
                }                                                                                                      \
            else                                                                                                       \
                for (Py_ssize_t end = count; end > shift;) {                                                           \
                    const Py_ssize_t first = end - block > shift ? end - block : shift;                                \
                    JOINED(cells + first, cells + first - shift, held + first, value, end - first);                    \
                    end = first;                                                                                       \
                }                                                                                                      \
            if (levels)                                                                                                \
                for (Py_ssize_t i = levels - 1; i < count; i += levels) cells[i] = impossible;                         \
        }                                                                                                              \
    }                                                                                                                  \
    FOR_EACH_MACHINE static void KEPT(NUMBER *restrict after, const NUMBER *restrict from,                             \
                                      const NUMBER *restrict given, uint8_t *restrict kept, NUMBER value,              \
                                      Py_ssize_t count) {                                                              \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            const NUMBER found = from[i] + value;                                                                      \
            kept[i] = found >= given[i];                                                                               \
            after[i] = found >= given[i] ? found : given[i];                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void KEEP(NUMBER *cells, NUMBER *after, uint8_t *kept, const int64_t *shifts, const int64_t *values,        \
                     Py_ssize_t places, Py_ssize_t count, Py_ssize_t rows, const int64_t *ends, Py_ssize_t ended,      \
                     NUMBER impossible) {                                                                              \
        for (Py_ssize_t n = 0; n < places; n++, kept += count) {                                                       \
            const Py_ssize_t shift = (Py_ssize_t)shifts[n];                                                            \
            for (Py_ssize_t i = 0; i < shift && i < count - 1; i++) {                                                  \
                kept[i] = impossible >= cells[i + 1];                                                                  \
                after[i] = impossible >= cells[i + 1] ? impossible : cells[i + 1];                                     \
            }                                                                                                          \
            if (shift < count - 1)                                                                                     \
                KEPT(after + shift, cells, cells + shift + 1, kept + shift, (NUMBER)values[n], count - 1 - shift);     \
            for (Py_ssize_t e = 0; e < ended; e++)                                                                     \
                for (Py_ssize_t i = (Py_ssize_t)ends[e]; i < count; i += rows) after[i] = impossible;                  \
            NUMBER *spare = cells;                                                                                     \
            cells = after, after = spare;                                                                              \
        }                                                                                                              \
    }

STEPS(int32_t, joined_small, add_small, kept_small, keep_small)
STEPS(int64_t, joined_large, add_large, kept_large, keep_large)

#define MOST 6

/* Open the buffers of some objects; `writable` has a bit for each that is written to. Return 0 with an error set. */
static int open_all(PyObject **objects, Py_buffer *views, int count, int writable) {
    for (int i = 0; i < count; i++)
        if (PyObject_GetBuffer(objects[i], &views[i], writable >> i & 1 ? PyBUF_CONTIG : PyBUF_CONTIG_RO) < 0) {
            while (i--) PyBuffer_Release(&views[i]);
            return 0;
        }
    return 1;
}

static PyObject *closed(Py_buffer *views, int count, int fine) {
    for (int i = 0; i < count; i++) PyBuffer_Release(&views[i]);
    if (!fine) return PyErr_Format(PyExc_ValueError, "the arrays do not fit one another");
    Py_RETURN_NONE;
}

static int shifts_fit(const int64_t *shifts, Py_ssize_t places, Py_ssize_t count) {
    for (Py_ssize_t n = 0; n < places; n++)
        if (shifts[n] < 0 || shifts[n] > count) return 0;
    return 1;
}

static PyObject *add(PyObject *module, PyObject *args) {
    PyObject *objects[4];
    Py_ssize_t levels;
    long long impossible;
    if (!PyArg_ParseTuple(args, "OOOOnL", &objects[0], &objects[1], &objects[2], &objects[3], &levels, &impossible))
        return NULL;
    Py_buffer v[MOST];
    if (!open_all(objects, v, 4, 3)) return NULL;
    const Py_ssize_t size = v[0].itemsize, count = v[0].len / size, places = v[2].len / 8;
    const int fine = (size == 4 || size == 8) && v[1].len == places * count && v[3].len == v[2].len && levels >= 0 &&
                     shifts_fit(v[2].buf, places, count);
    if (fine && size == 4)
        add_small(v[0].buf, v[1].buf, v[2].buf, v[3].buf, places, count, levels, (int32_t)impossible);
    else if (fine)
        add_large(v[0].buf, v[1].buf, v[2].buf, v[3].buf, places, count, levels, (int64_t)impossible);
    return closed(v, 4, fine);
}

static PyObject *keep(PyObject *module, PyObject *args) {
    PyObject *objects[6];
    Py_ssize_t rows;
    long long impossible;
    if (!PyArg_ParseTuple(args, "OOOOOOnL", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &rows, &impossible))
        return NULL;
    Py_buffer v[MOST];
    if (!open_all(objects, v, 6, 7)) return NULL;
    const Py_ssize_t size = v[0].itemsize, count = v[0].len / size, places = v[3].len / 8, ended = v[5].len / 8;
    const int fine = (size == 4 || size == 8) && v[1].len == v[0].len && v[2].len == places * count && rows > 0 &&
                     v[4].len == v[3].len && shifts_fit(v[3].buf, places, count) &&
                     shifts_fit(v[5].buf, ended, rows - 1);
    if (fine && size == 4)
        keep_small(v[0].buf, v[1].buf, v[2].buf, v[3].buf, v[4].buf, places, count, rows, v[5].buf, ended,
                   (int32_t)impossible);
    else if (fine)
        keep_large(v[0].buf, v[1].buf, v[2].buf, v[3].buf, v[4].buf, places, count, rows, v[5].buf, ended,
                   (int64_t)impossible);
    return closed(v, 6, fine);
}

static PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "See PrefixTable.add."},
    {"keep", keep, METH_VARARGS, "See ExchangeTable."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tables", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__tables(void) {
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "VERSION", VERSION) < 0) Py_CLEAR(made);
    return made;
}
