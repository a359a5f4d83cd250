/* What both parts of the tracer's core in C share: record.c, which hears each event, and rows.c,
   which makes rows of what was recorded.

   A Core is one trace, a Lane is one thread in it. Only its own thread writes to a lane, and holds
   the GIL. For an event nothing is allocated that the garbage collector tracks. */

#ifndef PYTEST_INSTRCOUNT_CORE_H
#define PYTEST_INSTRCOUNT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A record is a pointer to a function, or to another object for RAW, with one of these in its low
   bits: objects are aligned to 8 bytes. The other kinds are what marks are in stream.py. */
enum {
    ENTERED, RESUMED, THROWN,
#ifdef Py_LIMITED_API
    CLOSED,
#else
    VOIDED,                     /* the place of CLOSED, which a profile function cannot tell */
#endif
    LEFT, YIELDED, UNWOUND,
    RAW
};
#define KIND_BITS ((uintptr_t)7)
#ifdef Py_LIMITED_API
#define IS_ENTRY(kind) ((kind) < LEFT)
#else
#define IS_ENTRY(kind) ((kind) < VOIDED)
#endif


/* ---- tables: a pair of addresses -> an object ------------------------------------------------ */

typedef struct {
    uintptr_t first, second;    /* first is 0 where nothing is stored */
    PyObject *value;            /* or NULL: known, but without a value */
    PyObject *pin;              /* keeps the addresses from being used again */
    long kind, number;          /* for rows, see meaning() */
} Slot;

typedef struct {
    Slot *slots;
    size_t size, used;          /* size is a power of two */
} Table;

static inline Slot *
table_slot(const Table *table, uintptr_t first, uintptr_t second)
{
    size_t at = ((first >> 4) ^ (first >> 12) ^ (second >> 3)) & (table->size - 1);
    while (table->slots[at].first
           && (table->slots[at].first != first || table->slots[at].second != second)) {
        at = (at + 1) & (table->size - 1);
    }
    return &table->slots[at];
}

/* Returns NULL if there is none. */
static inline Slot *
table_find(const Table *table, uintptr_t first, uintptr_t second)
{
    if (!table->used) {
        return NULL;
    }
    Slot *slot = table_slot(table, first, second);
    return slot->first ? slot : NULL;
}

/* Returns NULL on error. */
static inline Slot *
table_add(Table *table, uintptr_t first, uintptr_t second, PyObject *value, PyObject *pin)
{
    if (2 * (table->used + 1) > table->size) {
        Table larger = {.size = table->size ? 2 * table->size : 64, .used = table->used};
        larger.slots = calloc(larger.size, sizeof(Slot));
        if (larger.slots == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        for (size_t at = 0; at < table->size; at++) {
            if (table->slots[at].first) {
                *table_slot(&larger, table->slots[at].first, table->slots[at].second) =
                    table->slots[at];
            }
        }
        free(table->slots);
        *table = larger;
    }
    Slot *slot = table_slot(table, first, second);
    if (!slot->first) {
        table->used++;
        *slot = (Slot){first, second, Py_XNewRef(value), Py_NewRef(pin), 0, 0};
    }
    return slot;
}

static inline void
table_clear(Table *table)
{
    Table old = *table;
    *table = (Table){0};
    for (size_t at = 0; at < old.size; at++) {
        Py_XDECREF(old.slots[at].value);
        Py_XDECREF(old.slots[at].pin);
    }
    free(old.slots);
}


/* ---- types ----------------------------------------------------------------------------------- */

/* Records, and behind them, with a clock, a reading for each. */
typedef struct Chunk {
    struct Chunk *next;
    size_t used;
    uintptr_t records[];
} Chunk;

typedef struct {
    PyObject_HEAD
    unsigned long long number;  /* of this trace in the process, from 1 */
    int timed, ended;
    PyObject *describe;         /* function written in C -> (CFunction, may it be kept?); or None */
    PyObject *adopt;            /* opens a lane for the running thread, which has none */
    PyObject *renew;            /* lane whose chunk is full -> makes room if there is too much */
    PyObject *see;              /* the object of a watched code that was entered, or None */
    int filters;                /* is any of the following given? */
    PyObject *judge;            /* Filter.judge() of filters.py; or None */
    PyObject *disable;          /* sys.monitoring.DISABLE */
    long max_depth;             /* 0: none */
    long min_ns;                /* 0: none */
    PyObject *lanes;            /* list: all lanes of this trace */
    PyTypeObject *lane_type;
    PyTypeObject *method_type;  /* types.MethodType */
    Table functions;            /* see find() */
    Table watched;              /* code objects, for see */
    Table verdicts;             /* of judge */
#ifndef Py_LIMITED_API
    PyObject *setprofile;       /* sys.setprofile */
    Table byte_codes;           /* code object -> bytes */
#endif
} Core;

typedef struct {
    PyObject_HEAD
    Core *core;
    Chunk *first, *last;        /* there is always one, and it is never full */
    size_t capacity;            /* records of a chunk */
    size_t before;              /* records of all chunks but the last */
    long depth;                 /* calls that are open, of those that are a level */
} Lane;

/* Of the module. */
typedef struct {
    PyTypeObject *core_type, *lane_type;
} State;

static inline int64_t *
chunk_times(const Lane *lane, Chunk *chunk)
{
    return (int64_t *)(chunk->records + lane->capacity);
}

void chunks_free(Chunk *chunk);
Chunk *lane_detach(Lane *lane);

/* A function of the module, in rows.c. */
PyObject *feed(PyObject *module, PyObject *args);

#endif
