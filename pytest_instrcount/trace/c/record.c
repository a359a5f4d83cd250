/* The tracer's core in C: what hears each event.

   It records what callbacks.py and setprofile.py record. Built for 3.12 and later against the
   limited API, it has callbacks for sys.monitoring; built for 3.11, a hook for PyEval_SetProfile(),
   which the limited API does not have. */

#include "core.h"

#include <time.h>

/* The lane of this thread. The number tells whether it is of this trace: a lane of an earlier
   one may be gone. */
static _Thread_local struct {
    unsigned long long number;
    Lane *lane;
} here;

static unsigned long long traces;

static inline int64_t
read_clock(void)
{
    struct timespec now;        /* of the clock of time.perf_counter_ns() */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}


/* ---- lanes ----------------------------------------------------------------------------------- */

static size_t
chunk_size(const Lane *lane)
{
    size_t record = sizeof(uintptr_t) + (lane->core->timed ? sizeof(int64_t) : 0);
    return sizeof(Chunk) + lane->capacity * record;
}

static Chunk *
chunk_new(const Lane *lane)
{
    Chunk *chunk = malloc(chunk_size(lane));
    if (chunk == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    chunk->next = NULL;
    chunk->used = 0;
    return chunk;
}

void
chunks_free(Chunk *chunk)
{
    while (chunk != NULL) {
        Chunk *next = chunk->next;
        for (size_t at = 0; at < chunk->used; at++) {
            Py_DECREF((PyObject *)(chunk->records[at] & ~KIND_BITS));
        }
        free(chunk);
        chunk = next;
    }
}

/* The last chunk is full. The trace may be folded now, but not before the record was stored: the
   time that folding takes is added to the starts of what runs. */
static int
lane_grow(Lane *lane)
{
    PyObject *self = (PyObject *)lane;
    Chunk *chunk = chunk_new(lane);
    if (chunk == NULL) {
        Py_DECREF((PyObject *)(lane->last->records[--lane->last->used] & ~KIND_BITS));
        return -1;
    }
    lane->before += lane->last->used;
    lane->last->next = chunk;
    lane->last = chunk;
    /* what Python does here may end the trace, and drop both */
    Core *core = (Core *)Py_NewRef((PyObject *)lane->core);
    Py_INCREF(self);
    PyObject *done = PyObject_CallFunctionObjArgs(core->renew, self, NULL);
    Py_XDECREF(done);
    Py_DECREF(self);
    Py_DECREF((PyObject *)core);
    return done == NULL ? -1 : 0;
}

static inline int
lane_record(Lane *lane, PyObject *object, unsigned kind, int64_t now)
{
    Chunk *chunk = lane->last;
    size_t at = chunk->used++;
    chunk->records[at] = (uintptr_t)Py_NewRef(object) | kind;
    if (lane->core->timed) {
        chunk_times(lane, chunk)[at] = now;
    }
    return at + 1 < lane->capacity ? 0 : lane_grow(lane);
}

static inline int
lane_enter(Lane *lane, PyObject *function, unsigned kind)
{
    return lane_record(lane, function, kind, lane->core->timed ? read_clock() : 0);
}

/* A watched code object was entered. */
static int
record_seen(Lane *lane)
{
    PyObject *seen = PyObject_CallFunctionObjArgs(lane->core->see, NULL);
    int result = seen == NULL ? -1 : seen == Py_None ? 0 : lane_record(lane, seen, RAW, 0);
    Py_XDECREF(seen);
    return result;
}

static PyObject *
lane_append(PyObject *self, PyObject *object)
{
    return lane_record((Lane *)self, object, RAW, 0) < 0 ? NULL : Py_NewRef(Py_None);
}

static Py_ssize_t
lane_length(PyObject *self)
{
    Lane *lane = (Lane *)self;
    return (Py_ssize_t)(lane->before + lane->last->used);
}

/* Takes off all chunks, and leaves a new one: what Python does with them may be recorded, too. */
Chunk *
lane_detach(Lane *lane)
{
    Chunk *fresh = chunk_new(lane), *old = lane->first;
    if (fresh == NULL) {
        return NULL;
    }
    lane->first = lane->last = fresh;
    lane->before = 0;
    return old;
}

/* enter(code): as if it was entered now. */
static PyObject *
lane_enter_code(PyObject *self, PyObject *code)
{
    return lane_enter((Lane *)self, code, ENTERED) < 0 ? NULL : Py_NewRef(Py_None);
}

/* swap_depth(depth): of the greenlet that runs from here on; returns that of the one before. */
static PyObject *
lane_swap_depth(PyObject *self, PyObject *depth)
{
    PyObject *before = PyLong_FromLong(((Lane *)self)->depth);
    ((Lane *)self)->depth = PyLong_AsLong(depth);
    if (PyErr_Occurred()) {
        Py_CLEAR(before);
    }
    return before;
}

static PyObject *
lane_sizeof(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Lane *lane = (Lane *)self;
    size_t size = sizeof(Lane);
    for (Chunk *chunk = lane->first; chunk != NULL; chunk = chunk->next) {
        size += chunk_size(lane);
    }
    return PyLong_FromSize_t(size);
}

static int
lane_traverse(PyObject *self, visitproc visit, void *arg)
{
    /* records are of code objects, CFunctions and marks, none of which leads back here */
    Py_VISIT(((Lane *)self)->core);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int
lane_clear(PyObject *self)
{
    /* not the core: a hook may still ask it whether the trace has ended */
    return 0;
}

static void
lane_dealloc(PyObject *self)
{
    Lane *lane = (Lane *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    chunks_free(lane->first);
    Py_XDECREF((PyObject *)lane->core);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}


/* ---- C functions ----------------------------------------------------------------------------- */

/* Sets the CFunction of what is called (borrowed), or NULL if that is not written in C.

   What Python says of it is kept: of descriptors and of functions of modules for the object itself;
   of a bound method, which is new for each call, for its C function and the class of what it is
   bound to; where one C function has several names, for its name and that class. Where these do
   not tell it, Python is asked each time. */
static int
find(Core *core, PyObject *called, PyObject **function)
{
    uintptr_t first, second = 0;
    PyObject *pin = called;
    *function = NULL;
    if (Py_TYPE(called) == core->method_type) {
        called = PyObject_GetAttrString(called, "__func__");
        if (called == NULL) {
            return -1;
        }
        Py_DECREF(called);      /* the method keeps it */
        pin = called;
    }
    if (PyCFunction_Check(called)) {
        PyObject *owner = PyCFunction_GetSelf(called);
        if (owner == NULL || PyModule_Check(owner)) {
            first = (uintptr_t)called;
        }
        else {
            int of_class = PyType_Check(owner);
            pin = of_class ? owner : (PyObject *)Py_TYPE(owner);
            first = (uintptr_t)PyCFunction_GetFunction(called);
            second = (uintptr_t)pin | of_class;
        }
    }
    else if (Py_TYPE(called) == &PyMethodDescr_Type) {
        first = (uintptr_t)called;
    }
    else {
        return 0;
    }
    Slot *slot = table_find(&core->functions, first, second);
    if (slot != NULL && slot->value != NULL) {
        *function = slot->value;
        return 0;
    }
    PyObject *name = NULL;
    if (slot != NULL && second) {
        name = PyObject_GetAttrString(called, "__name__");
        if (name == NULL) {
            return -1;
        }
        PyUnicode_InternInPlace(&name);
        Slot *named = table_find(&core->functions, (uintptr_t)name, second);
        if (named != NULL) {
            *function = named->value;
            Py_DECREF(name);
            return 0;
        }
    }
    Py_INCREF((PyObject *)core);
    PyObject *answer = PyObject_CallFunctionObjArgs(core->describe, called, NULL);
    int result = -1, by_function, by_name;
    /* borrowed: describe keeps each that it has made as long as the trace is there */
    if (answer != NULL && PyArg_ParseTuple(answer, "Opp", function, &by_function, &by_name)) {
        if (slot == NULL) {
            PyObject *value = by_function ? *function : NULL;
            slot = table_add(&core->functions, first, second, value, pin);
        }
        else if (name != NULL && by_name) {
            /* the class is held by the slot that is there */
            slot = table_add(&core->functions, (uintptr_t)name, second, *function, name);
        }
        result = slot == NULL ? -1 : 0;
    }
    Py_XDECREF(name);
    Py_XDECREF(answer);
    Py_DECREF((PyObject *)core);
    return result;
}


/* ---- filters --------------------------------------------------------------------------------- */

/* What judge() says of a function, as in filters.py; it is asked once for each. -1 on error. */
enum { COUNTED, LEFT_OUT, NO_LEVEL, LEAF };

static long
verdict_of(Core *core, PyObject *function)
{
    Slot *slot = table_find(&core->verdicts, (uintptr_t)function, 0);
    if (slot != NULL) {
        return slot->number;
    }
    Py_INCREF((PyObject *)core);
    PyObject *answer = PyObject_CallFunctionObjArgs(core->judge, function, NULL);
    long verdict = answer == NULL ? -1 : PyLong_AsLong(answer);
    slot = verdict < 0 ? NULL : table_add(&core->verdicts, (uintptr_t)function, 0, NULL, function);
    if (slot != NULL) {
        slot->number = verdict;
    }
    Py_XDECREF(answer);
    Py_DECREF((PyObject *)core);
    return slot == NULL ? -1 : verdict;
}

/* Takes back the entry of a call that was short, and within which nothing was recorded. At the begin
   of a chunk that is not known: rows.c leaves the others out. */
static int
take_back(Lane *lane, PyObject *function, int64_t now)
{
    Chunk *chunk = lane->last;
    uintptr_t *record = chunk->records + chunk->used - 1;
    if (chunk->used < 2 || (PyObject *)(*record & ~KIND_BITS) != function
        || !IS_ENTRY(*record & KIND_BITS) || (record[-1] & KIND_BITS) == RAW
        || now - chunk_times(lane, chunk)[chunk->used - 1] >= lane->core->min_ns) {
        return 0;
    }
    chunk->used--;
    Py_DECREF(function);
    return 1;
}

/* Is an event recorded? 0: it is; 1: it is not; 2: none of this function is; -1 on error. */
static int
filter_event(Lane *lane, PyObject *function, unsigned kind, int64_t now)
{
    Core *core = lane->core;
    long verdict = core->judge == Py_None ? NO_LEVEL : verdict_of(core, function);
    if (verdict < 0 || verdict == LEFT_OUT) {
        return verdict < 0 ? -1 : 2;
    }
    if (core->max_depth && verdict != NO_LEVEL) {
        long level = lane->depth;
        if (verdict == COUNTED) {
            if (!IS_ENTRY(kind) && level > 0) {     /* else it was entered before the trace */
                level--;
            }
            lane->depth = level + IS_ENTRY(kind);
        }
        if (level >= core->max_depth) {
            return 1;
        }
    }
    return core->min_ns && !IS_ENTRY(kind) ? take_back(lane, function, now) : 0;
}

/* A call is entered, or was left at a time. Returns 1 if no event of this function is recorded, and -1
   on error. */
static inline int
lane_event(Lane *lane, PyObject *function, unsigned kind, int64_t now)
{
    Core *core = lane->core;
    if (core->filters) {
        int filtered = filter_event(lane, function, kind, now);
        if (filtered) {
            return filtered < 0 ? -1 : filtered == 2;
        }
    }
    if (!IS_ENTRY(kind)) {
        return lane_record(lane, function, kind, now);
    }
    if (kind == ENTERED && table_find(&core->watched, (uintptr_t)function, 0)
        && record_seen(lane) < 0) {
        return -1;
    }
    return lane_enter(lane, function, kind);
}


/* ---- sys.monitoring -------------------------------------------------------------------------- */

#ifdef Py_LIMITED_API

/* The lane of the running thread (borrowed). A callback of C has no frame, so adopt() finds that of
   the traced code right above its own; if it is being entered, the lane begins with its callers. */
static inline Lane *
current_lane(Core *core, int entering)
{
    if (here.number == core->number) {
        return here.lane;
    }
    Py_INCREF((PyObject *)core);
    PyObject *made = PyObject_CallFunctionObjArgs(core->adopt, entering ? Py_True : Py_False, NULL);
    Py_XDECREF(made);           /* core->lanes keeps it */
    if (made != NULL && here.number != core->number) {
        PyErr_SetString(PyExc_RuntimeError, "adopt() has opened no lane");
        made = NULL;
    }
    Py_DECREF((PyObject *)core);
    return made == NULL ? NULL : here.lane;
}

/* What sys.monitoring gives: code, offset, and of some events one or two objects more. Anybody may
   call a callback, with anything. */
static int
has(Py_ssize_t count, Py_ssize_t needed)
{
    if (count < needed) {
        PyErr_SetString(PyExc_TypeError, "a callback of sys.monitoring needs more arguments");
    }
    return count >= needed;
}

/* Returns sys.monitoring.DISABLE where no event of the function is wanted. */
static inline PyObject *
record(PyObject *self, PyObject *function, unsigned kind, int entering)
{
    Core *core = (Core *)self;
    int64_t now = core->timed && !IS_ENTRY(kind) ? read_clock() : 0;
    Lane *lane = current_lane(core, entering);
    int unwanted = lane == NULL ? -1 : lane_event(lane, function, kind, now);
    return unwanted < 0 ? NULL : Py_NewRef(unwanted ? core->disable : Py_None);
}

/* The same of an event that cannot be disabled, or not for one function. */
static inline PyObject *
record_always(PyObject *self, PyObject *function, unsigned kind, int entering)
{
    PyObject *done = record(self, function, kind, entering);
    Py_XDECREF(done);
    return done == NULL ? NULL : Py_NewRef(Py_None);
}

static PyObject *
py_start(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return has(count, 1) ? record(self, args[0], ENTERED, 1) : NULL;
}

static PyObject *
py_resume(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return has(count, 1) ? record(self, args[0], RESUMED, 1) : NULL;
}

static PyObject *
py_throw(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!has(count, 3)) {
        return NULL;
    }
    int closed = (PyObject *)Py_TYPE(args[2]) == PyExc_GeneratorExit;
    return record_always(self, args[0], closed ? CLOSED : THROWN, 1);
}

static PyObject *
py_return(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return has(count, 1) ? record(self, args[0], LEFT, 0) : NULL;
}

static PyObject *
py_yield(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return has(count, 1) ? record(self, args[0], YIELDED, 0) : NULL;
}

static PyObject *
py_unwind(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return has(count, 1) ? record_always(self, args[0], UNWOUND, 0) : NULL;
}

/* Of calls only those of what is written in C are recorded here. */
static inline PyObject *
c_event(PyObject *self, PyObject *const *args, Py_ssize_t count, unsigned kind)
{
    PyObject *function;
    if (!has(count, 3) || find((Core *)self, args[2], &function) < 0) {
        return NULL;
    }
    if (function == NULL) {
        return Py_NewRef(Py_None);
    }
    return record_always(self, function, kind, 0);
}

static PyObject *
call(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return c_event(self, args, count, ENTERED);
}

static PyObject *
c_return(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return c_event(self, args, count, LEFT);
}

static PyObject *
c_raise(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return c_event(self, args, count, UNWOUND);
}

#define CALLBACK(function) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}
#define CORE_METHODS                                                                    \
    CALLBACK(py_start), CALLBACK(py_resume), CALLBACK(py_throw), CALLBACK(py_return),   \
    CALLBACK(py_yield), CALLBACK(py_unwind), CALLBACK(call), CALLBACK(c_return), CALLBACK(c_raise)
#define LANE_METHODS
#define LANE_SLOTS

#endif


/* ---- PyEval_SetProfile() ---------------------------------------------------------------------- */

#ifndef Py_LIMITED_API

#include <frameobject.h>
#include <opcode.h>

#define GENERATORS (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

/* The byte code of a code object (borrowed), or NULL. */
static PyObject *
byte_code(Core *core, PyCodeObject *code)
{
    Slot *slot = table_find(&core->byte_codes, (uintptr_t)code, 0);
    if (slot != NULL) {
        return slot->value;
    }
    PyObject *text = PyCode_GetCode(code);
    if (text == NULL) {
        return NULL;
    }
    slot = table_add(&core->byte_codes, (uintptr_t)code, 0, text, (PyObject *)code);
    Py_DECREF(text);            /* the table keeps it */
    return slot == NULL ? NULL : text;
}

/* How a frame is entered or left, by the instruction that it is at; returns -1 on error. It decides
   as _Entry and _Exit of setprofile.py do. */
static int
kind_by_code(Core *core, PyFrameObject *frame, PyCodeObject *code, int entering, PyObject *value)
{
    PyObject *bytes = byte_code(core, code);
    if (bytes == NULL) {
        return -1;
    }
    const unsigned char *text = (unsigned char *)PyBytes_AS_STRING(bytes);
    int at = PyFrame_GetLasti(frame), first = 0, end = (int)PyBytes_GET_SIZE(bytes);
    while (first < end && (text[first] != RESUME || text[first + 1] != 0)) {
        first += 2;
    }
    if (entering) {
        return at <= first ? ENTERED : text[at] == YIELD_VALUE ? THROWN : RESUMED;
    }
    if (at < first) {
        return VOIDED;          /* a generator that never ran is deleted */
    }
    if (text[at] == RETURN_VALUE) {
        return LEFT;
    }
    if (text[at] == YIELD_VALUE && code->co_flags & GENERATORS) {
        return YIELDED;
    }
    return value != NULL && value != Py_None ? LEFT : UNWOUND;
}

static int
enter_frame(Lane *lane, PyFrameObject *frame, PyCodeObject *code)
{
    int kind = ENTERED;
    if (code->co_flags & GENERATORS) {
        kind = kind_by_code(lane->core, frame, code, 1, NULL);
    }
    return kind < 0 ? -1 : lane_event(lane, (PyObject *)code, kind, 0);
}

static int
leave_frame(Lane *lane, PyFrameObject *frame, PyCodeObject *code, PyObject *value, int64_t now)
{
    int kind = LEFT;
    if (value == NULL || code->co_flags & GENERATORS) {
        kind = kind_by_code(lane->core, frame, code, 0, value);
    }
    return kind < 0 ? -1 : lane_event(lane, (PyObject *)code, kind, now);
}

static int hook(PyObject *self, PyFrameObject *frame, int what, PyObject *argument);

/* Puts the hook back after a sys.setprofile(None) of the main thread, before the next instruction:
   that is when pending calls are made. A hook of another profiler is left where it is. */
static int
restore(void *lane)
{
    if (!((Lane *)lane)->core->ended && PyThreadState_Get()->c_profilefunc == NULL) {
        PyEval_SetProfile(hook, lane);
    }
    Py_DECREF((PyObject *)lane);
    return 0;
}

static int
hook(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    Lane *lane = (Lane *)self;
    Core *core = lane->core;
    if (core->ended) {
        PyEval_SetProfile(NULL, NULL);
        return 0;
    }
    int64_t now = core->timed && what != PyTrace_CALL ? read_clock() : 0;
    if (what == PyTrace_CALL || what == PyTrace_RETURN) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        Py_DECREF(code);        /* the frame keeps it */
        int done = what == PyTrace_CALL ? enter_frame(lane, frame, code)
                                        : leave_frame(lane, frame, code, argument, now);
        return done < 0 ? -1 : 0;
    }
    if (argument == core->setprofile) {
        if (what == PyTrace_C_CALL && Py_AddPendingCall(restore, Py_NewRef(self)) < 0) {
            Py_DECREF(self);    /* too many are pending: the end of the trace says that it is lost */
        }
        return 0;
    }
    PyObject *function = NULL;
    if (core->describe == Py_None || find(core, argument, &function) < 0 || function == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    unsigned kind = what == PyTrace_C_CALL ? ENTERED : what == PyTrace_C_RETURN ? LEFT : UNWOUND;
    return lane_event(lane, function, kind, now) < 0 ? -1 : 0;
}

/* lane(frame, event, argument): as Python calls a profile function. */
static PyObject *
lane_call(PyObject *self, PyObject *args, PyObject *names)
{
    static const struct { const char *name; int what; } events[] = {
        {"call", PyTrace_CALL}, {"return", PyTrace_RETURN}, {"c_call", PyTrace_C_CALL},
        {"c_return", PyTrace_C_RETURN}, {"c_exception", PyTrace_C_EXCEPTION}, {NULL, 0},
    };
    PyFrameObject *frame;
    const char *event;
    PyObject *argument;
    if (!PyArg_ParseTuple(args, "O!sO", &PyFrame_Type, &frame, &event, &argument)) {
        return NULL;
    }
    int at = 0;
    while (events[at].name != NULL && strcmp(events[at].name, event) != 0) {
        at++;
    }
    if (events[at].name != NULL
        && hook(self, frame, events[at].what, argument == Py_None ? NULL : argument) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
lane_install(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyEval_SetProfile(hook, self);
    Py_RETURN_NONE;
}

static PyObject *
core_end(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    ((Core *)self)->ended = 1;
    Py_RETURN_NONE;
}

#define CORE_METHODS {"end", core_end, METH_NOARGS, NULL}
#define LANE_METHODS {"install", lane_install, METH_NOARGS, NULL},
#define LANE_SLOTS {Py_tp_call, lane_call},

#endif


/* ---- cores ----------------------------------------------------------------------------------- */

/* lane(capacity): a new one, for the running thread. */
static PyObject *
core_lane(PyObject *self, PyObject *argument)
{
    Core *core = (Core *)self;
    size_t capacity = PyLong_AsSize_t(argument);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (capacity < 1 || capacity > PY_SSIZE_T_MAX / 32) {
        return PyErr_Format(PyExc_ValueError, "no capacity of a lane: %zu", capacity);
    }
    Lane *lane = PyObject_GC_New(Lane, core->lane_type);
    if (lane == NULL) {
        return NULL;
    }
    lane->core = (Core *)Py_NewRef(self);
    lane->capacity = capacity;
    lane->before = 0;
    lane->depth = 0;
    lane->first = lane->last = chunk_new(lane);
    PyObject_GC_Track(lane);
    if (lane->first == NULL || PyList_Append(core->lanes, (PyObject *)lane) < 0) {
        Py_DECREF(lane);
        return NULL;
    }
    here.number = core->number;
    here.lane = lane;
    return (PyObject *)lane;
}

static PyObject *
core_watch(PyObject *self, PyObject *code)
{
    return table_add(&((Core *)self)->watched, (uintptr_t)code, 0, NULL, code) == NULL
        ? NULL : Py_NewRef(Py_None);
}

static int
core_traverse(PyObject *self, visitproc visit, void *arg)
{
    Core *core = (Core *)self;
    Py_VISIT(core->describe);
    Py_VISIT(core->adopt);
    Py_VISIT(core->renew);
    Py_VISIT(core->see);
    Py_VISIT(core->judge);
    Py_VISIT(core->lanes);
    Py_VISIT(core->lane_type);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int
core_clear(PyObject *self)
{
    Core *core = (Core *)self;
    Py_CLEAR(core->describe);
    Py_CLEAR(core->adopt);
    Py_CLEAR(core->renew);
    Py_CLEAR(core->see);
    Py_CLEAR(core->judge);
    Py_CLEAR(core->lanes);
    return 0;
}

static void
core_dealloc(PyObject *self)
{
    Core *core = (Core *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    core_clear(self);
    Py_DECREF((PyObject *)core->lane_type);
    Py_DECREF((PyObject *)core->method_type);
    Py_DECREF(core->disable);
    table_clear(&core->functions);
    table_clear(&core->watched);
    table_clear(&core->verdicts);
#ifndef Py_LIMITED_API
    Py_CLEAR(core->setprofile);
    table_clear(&core->byte_codes);
#endif
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef core_methods[] = {
    {"lane", core_lane, METH_O, NULL},
    {"watch", core_watch, METH_O, NULL},
    CORE_METHODS,
    {NULL},
};

static PyType_Slot core_slots[] = {
    {Py_tp_methods, core_methods},
    {Py_tp_traverse, core_traverse},
    {Py_tp_clear, core_clear},
    {Py_tp_dealloc, core_dealloc},
    {0, NULL},
};

static PyType_Spec core_spec = {
    "pytest_instrcount.trace._core.Core", sizeof(Core), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, core_slots,
};

static PyMethodDef lane_methods[] = {
    {"append", lane_append, METH_O, NULL},
    {"enter", lane_enter_code, METH_O, NULL},
    {"swap_depth", lane_swap_depth, METH_O, NULL},
    {"__sizeof__", lane_sizeof, METH_NOARGS, NULL},
    LANE_METHODS
    {NULL},
};

static PyType_Slot lane_slots[] = {
    {Py_tp_methods, lane_methods},
    {Py_sq_length, lane_length},
    LANE_SLOTS
    {Py_tp_traverse, lane_traverse},
    {Py_tp_clear, lane_clear},
    {Py_tp_dealloc, lane_dealloc},
    {0, NULL},
};

static PyType_Spec lane_spec = {
    "pytest_instrcount.trace._core.Lane", sizeof(Lane), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, lane_slots,
};


/* ---- the module ------------------------------------------------------------------------------ */

/* make(timed, describe, adopt, renew, see, method_type[, judge, disable, max_depth, min_ns]): a core. */
static PyObject *
make(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    int timed;
    PyObject *describe, *adopt, *renew, *see, *method_type, *judge = Py_None, *disable = Py_None;
    long max_depth = 0, min_ns = 0;
    if (!PyArg_ParseTuple(args, "pOOOOO|OOll:make", &timed, &describe, &adopt, &renew, &see,
                          &method_type, &judge, &disable, &max_depth, &min_ns)) {
        return NULL;
    }
    PyObject *lanes = PyList_New(0);
    Core *core = lanes == NULL ? NULL : PyObject_GC_New(Core, state->core_type);
    if (core == NULL) {
        Py_XDECREF(lanes);
        return NULL;
    }
    memset((char *)core + sizeof(PyObject), 0, sizeof(Core) - sizeof(PyObject));
    core->number = ++traces;
    core->timed = timed;
    core->describe = Py_NewRef(describe);
    core->adopt = Py_NewRef(adopt);
    core->renew = Py_NewRef(renew);
    core->see = Py_NewRef(see);
    core->filters = judge != Py_None || min_ns;
    core->judge = Py_NewRef(judge);
    core->disable = Py_NewRef(disable);
    core->max_depth = max_depth;
    core->min_ns = min_ns;
    core->lanes = lanes;
    core->lane_type = (PyTypeObject *)Py_NewRef((PyObject *)state->lane_type);
    core->method_type = (PyTypeObject *)Py_NewRef(method_type);
#ifndef Py_LIMITED_API
    core->setprofile = Py_XNewRef(PySys_GetObject("setprofile"));
#endif
    PyObject_GC_Track(core);
    return (PyObject *)core;
}

static int
module_exec(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->core_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &core_spec, NULL);
    state->lane_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &lane_spec, NULL);
    return state->core_type == NULL || state->lane_type == NULL ? -1 : 0;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->core_type);
    Py_VISIT(state->lane_type);
    return 0;
}

static int
module_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->core_type);
    Py_CLEAR(state->lane_type);
    return 0;
}

static PyMethodDef module_methods[] = {
    {"make", make, METH_VARARGS, NULL},
    {"feed", feed, METH_VARARGS, NULL},
    {NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_size = sizeof(State),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

#ifdef Py_LIMITED_API
#define MINIMUM Py_LIMITED_API
#else
#define MINIMUM 0x030B0000
#endif

PyMODINIT_FUNC
PyInit__core(void)
{
    /* 3.11 would load what was built for its successors */
    if (Py_Version < MINIMUM) {
        PyErr_SetString(PyExc_ImportError, "built for a later Python");
        return NULL;
    }
    return PyModuleDef_Init(&definition);
}
