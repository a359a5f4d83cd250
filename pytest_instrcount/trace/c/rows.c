/* The tracer's core in C: rows of what was recorded.

   feed() does what Rows.feed() of replay.py does without it; that says why. */

#include "core.h"

/* Numbers as in replay.py, stream.py and columns.py. */
#define GROUND -1L
#define SKIP (-(1L << 40))
#define START_FRAME (1 << 0)
#define ENTER_BITS (1 << 0 | 1 << 1 | 1 << 2 | 1 << 3)
#define EXIT_BITS (1 << 4 | 1 << 5)
#define UNFINISHED (1 << 6)
#define LEAVING (1 << 12)
#define VOID_CALL (1 << 13)

/* What an object of a stream is; Rows.meaning() tells. */
enum { FUNCTION, C_FUNCTION, MARK, SWITCH, SEEN, OTHER };

typedef struct {
    int32_t key, parent;
    int64_t start, end;
    uint16_t flags;
} Row;

typedef struct {
    PyObject *rows;             /* the object of replay.py */
    Table meanings;
    Row *made;                  /* rows from number `before` on */
    Py_buffer ends, flags;      /* of the rows before */
    size_t before, count, room;
    PyObject *stack_list, *function_list;   /* where the stack comes from, and is put back */
    long *stack;
    PyObject **functions;       /* borrowed of the stream, or of the list */
    size_t depth, stack_room;
    long clock, unpaired, min_ns;   /* as in Rows, and so are: */
    long stretch, last, events, unmatched, unfinished;
    long bits;                  /* of marks so far */
    PyObject *seen;             /* borrowed of the stream: what the next call was seen with */
} Feed;

static Slot *
meaning(Feed *feed, PyObject *object)
{
    Slot *slot = table_find(&feed->meanings, (uintptr_t)object, 0);
    if (slot != NULL) {
        return slot;
    }
    PyObject *answer = PyObject_CallMethod(feed->rows, "meaning", "O", object);
    long kind, number;
    if (answer != NULL && PyArg_ParseTuple(answer, "ll", &kind, &number)) {
        slot = table_add(&feed->meanings, (uintptr_t)object, 0, NULL, object);
        if (slot != NULL) {
            slot->kind = kind;
            slot->number = number;
        }
    }
    Py_XDECREF(answer);
    return slot;
}

/* Makes room for one more of what has this size. */
static int
grow(void **items, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return 0;
    }
    size_t more = *room ? *room + *room / 2 : 256;
    void *moved = realloc(*items, more * size);
    if (moved == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *items = moved;
    *room = more;
    return 0;
}

static int
push(Feed *feed, long place, PyObject *function)
{
    size_t room = feed->stack_room;
    if (grow((void **)&feed->stack, feed->depth, &room, sizeof(*feed->stack)) < 0
        || grow((void **)&feed->functions, feed->depth, &feed->stack_room,
                sizeof(*feed->functions)) < 0) {
        return -1;
    }
    feed->stack[feed->depth] = place;
    feed->functions[feed->depth++] = function;
    return 0;
}

/* Takes over the stack of one greenlet; `lists` is a new reference to a tuple of both lists. */
static int
load_stack(Feed *feed, PyObject *lists)
{
    if (lists == NULL || !PyArg_ParseTuple(lists, "O!O!", &PyList_Type, &feed->stack_list,
                                           &PyList_Type, &feed->function_list)) {
        feed->stack_list = feed->function_list = NULL;
        Py_XDECREF(lists);
        return -1;
    }
    Py_INCREF(feed->stack_list);
    Py_INCREF(feed->function_list);
    Py_DECREF(lists);
    feed->depth = 0;
    for (Py_ssize_t at = 0; at < PyList_Size(feed->stack_list); at++) {
        long place = PyLong_AsLong(PyList_GetItem(feed->stack_list, at));
        if (push(feed, place, PyList_GetItem(feed->function_list, at)) < 0) {
            return -1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int
store_stack(Feed *feed)
{
    int result = -1;
    PyObject *stack = PyList_New(0), *functions = PyList_New(0);
    for (size_t at = 0; stack != NULL && functions != NULL && at < feed->depth; at++) {
        PyObject *place = PyLong_FromLong(feed->stack[at]);
        if (place == NULL || PyList_Append(stack, place) < 0
            || PyList_Append(functions, feed->functions[at]) < 0) {
            Py_CLEAR(functions);
        }
        Py_XDECREF(place);
    }
    if (stack != NULL && functions != NULL
        && PyList_SetSlice(feed->stack_list, 0, PyList_Size(feed->stack_list), stack) == 0
        && PyList_SetSlice(feed->function_list, 0, PyList_Size(feed->function_list), functions) == 0) {
        result = 0;
    }
    Py_XDECREF(stack);
    Py_XDECREF(functions);
    Py_CLEAR(feed->stack_list);
    Py_CLEAR(feed->function_list);
    return result;
}

static int
add_row(Feed *feed, long key, long parent, int64_t now, long flags)
{
    if (grow((void **)&feed->made, feed->count, &feed->room, sizeof(Row)) < 0) {
        return -1;
    }
    feed->made[feed->count++] = (Row){(int32_t)key, (int32_t)parent, now, now, (uint16_t)flags};
    return 0;
}

static void
end_row(Feed *feed, size_t row, int64_t now, long flags)
{
    if (row >= feed->before) {
        feed->made[row - feed->before].end = now;
        feed->made[row - feed->before].flags |= flags;
    }
    else {
        ((int64_t *)feed->ends.buf)[row] = now;
        ((uint16_t *)feed->flags.buf)[row] |= flags;
    }
}

/* Finds a frame that is left though it is not on top: 1, or 0 if there is none. */
static int
unwind(Feed *feed, const Slot *left)
{
    long kind = left->kind, number = left->number;
    PyObject *function = left->pin;
    size_t depth = feed->depth - 1;
    while (depth > 0 && feed->functions[depth] != function) {
        if (kind == C_FUNCTION) {
            Slot *above = meaning(feed, feed->functions[depth]);
            if (above == NULL) {
                return -1;
            }
            if (above->kind != C_FUNCTION) {
                break;
            }
        }
        depth--;
    }
    if (depth == 0 || feed->functions[depth] != function) {
        feed->unmatched += number >= 0;
        return 0;
    }
    while (feed->depth - 1 > depth) {
        long row = feed->stack[--feed->depth];
        if (row >= 0) {
            end_row(feed, (size_t)row, feed->last, UNFINISHED);
            feed->unfinished++;
        }
    }
    return 1;
}

/* The entry on the stack of a function that is not simply shown, or SKIP; see _place(). */
static int
find_place(Feed *feed, long number, PyObject *function, int started, long *top)
{
    PyObject *place = PyObject_CallMethod(feed->rows, "place", "llOi", number, *top, function,
                                          started);
    if (place == NULL) {
        return -1;
    }
    *top = PyLong_AsLong(place);
    Py_DECREF(place);
    return PyErr_Occurred() ? -1 : 0;
}

static int
see(Feed *feed, size_t row, PyObject *seen)
{
    PyObject *objects = PyObject_GetAttrString(feed->rows, "objects");
    PyObject *number = PyLong_FromSize_t(row);
    int result = objects == NULL || number == NULL ? -1 : PyObject_SetItem(objects, number, seen);
    Py_XDECREF(objects);
    Py_XDECREF(number);
    return result;
}

/* A row was none. */
static int
forget_seen(Feed *feed, long row)
{
    PyObject *objects = PyObject_GetAttrString(feed->rows, "objects");
    PyObject *done = objects == NULL ? NULL
        : PyObject_CallMethod(objects, "pop", "lO", row, Py_None);
    Py_XDECREF(objects);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Attributes of Rows that are numbers. */
static int
get_number(PyObject *rows, const char *name, long *value)
{
    PyObject *number = PyObject_GetAttrString(rows, name);
    *value = number == NULL ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int
set_number(PyObject *rows, const char *name, long value)
{
    PyObject *number = PyLong_FromLong(value);
    int result = number == NULL ? -1 : PyObject_SetAttrString(rows, name, number);
    Py_XDECREF(number);
    return result;
}

/* One object of the stream, and the clock at it: negative for an exit; 0 if there is none. */
static int
feed_object(Feed *feed, PyObject *object, int64_t now)
{
    Slot *slot = meaning(feed, object);
    if (slot == NULL) {
        return -1;
    }
    long kind = slot->kind, number = slot->number;
    if (kind > C_FUNCTION) {
        if (kind == MARK) {
            feed->bits |= number;
        }
        else if (kind == SEEN) {
            feed->seen = object;
        }
        else if (kind == SWITCH) {
            feed->stretch = (long)(feed->before + feed->count);
            return store_stack(feed) < 0 ? -1
                : load_stack(feed, PyObject_CallMethod(feed->rows, "switch", "ll", number,
                                                       feed->stretch));
        }
        return 0;
    }
    feed->events++;
    if (now < 0) {
        now = -now;
        feed->bits |= LEAVING;
    }
    feed->last = now > feed->last ? now : feed->last + 1;
    long bits = feed->bits, top = feed->stack[feed->depth - 1];
    size_t rows = feed->before + feed->count;
    feed->bits = 0;
    if (!(bits & LEAVING)) {
        if (number < 0 || top < GROUND) {
            if (find_place(feed, number, object, !(bits & START_FRAME), &top) < 0) {
                return -1;
            }
            if (top == SKIP) {
                return 0;
            }
        }
        PyObject *seen = feed->seen;
        feed->seen = NULL;
        if (top < GROUND) {
            return push(feed, top, object);
        }
        if (seen != NULL && see(feed, rows, seen) < 0) {
            return -1;
        }
        return add_row(feed, number, top, feed->last, bits & ENTER_BITS) < 0
            ? -1 : push(feed, (long)rows, object);
    }
    int found = feed->functions[feed->depth - 1] == object ? 1 : unwind(feed, slot);
    if (found == 1) {
        long row = feed->stack[--feed->depth];
        if (row >= 0) {
            end_row(feed, (size_t)row, feed->last, bits & EXIT_BITS);
            if ((size_t)row == rows - 1 && (size_t)row >= feed->before && feed->stretch <= row
                && (bits & VOID_CALL
                    || feed->last - feed->made[row - feed->before].start < feed->min_ns)) {
                feed->count--;
                return forget_seen(feed, row);
            }
        }
    }
    else if (found == 0 && feed->unpaired && kind == C_FUNCTION && top >= GROUND && number >= 0) {
        return add_row(feed, number, top, feed->last, bits & EXIT_BITS);
    }
    return found < 0 ? -1 : 0;
}

/* A stream of lists: each function, and no other object, has a reading of the clock. */
static int
feed_lists(Feed *feed, PyObject *objs, const Py_buffer *times)
{
    size_t reading = 0, readings = (size_t)times->len / sizeof(int64_t);
    for (Py_ssize_t at = 0; at < PyList_Size(objs); at++) {
        PyObject *object = PyList_GetItem(objs, at);
        Slot *slot = meaning(feed, object);
        if (slot == NULL) {
            return -1;
        }
        int read = feed->clock && slot->kind <= C_FUNCTION && reading < readings;
        if (feed_object(feed, object, read ? ((int64_t *)times->buf)[reading++] : 0) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What is recorded in a lane, which is empty then. */
static int
feed_lane(Feed *feed, Lane *lane)
{
    static const long bits[] = {
        [ENTERED] = 0, [RESUMED] = 1 << 1, [THROWN] = 1 << 2,
#ifdef Py_LIMITED_API
        [CLOSED] = 1 << 3,
#else
        [VOIDED] = LEAVING | VOID_CALL,
#endif
        [LEFT] = LEAVING, [YIELDED] = LEAVING | 1 << 4, [UNWOUND] = LEAVING | 1 << 5, [RAW] = 0,
    };
    Chunk *chunk = lane_detach(lane);
    if (chunk == NULL) {
        return -1;
    }
    int result = 0;
    while (chunk != NULL) {
        for (size_t at = 0; result == 0 && at < chunk->used; at++) {
            uintptr_t record = chunk->records[at];
            feed->bits |= bits[record & KIND_BITS];
            result = feed_object(feed, (PyObject *)(record & ~KIND_BITS),
                                 feed->clock ? chunk_times(lane, chunk)[at] : 0);
        }
        Chunk *next = chunk->next;
        chunk->next = NULL;
        chunks_free(chunk);     /* feed->meanings keeps what the stack refers to */
        chunk = next;
    }
    return result;
}

/* Appends one column of the rows that were made to an array of Rows. */
static int
add_column(const Feed *feed, const char *name, size_t offset, size_t size)
{
    PyObject *column = PyObject_GetAttrString(feed->rows, name);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(feed->count * size));
    if (column == NULL || bytes == NULL) {
        Py_XDECREF(column);
        Py_XDECREF(bytes);
        return -1;
    }
    char *to = PyBytes_AsString(bytes);
    for (size_t row = 0; row < feed->count; row++, to += size) {
        memcpy(to, (char *)&feed->made[row] + offset, size);
    }
    PyObject *done = PyObject_CallMethod(column, "frombytes", "O", bytes);
    Py_DECREF(column);
    Py_DECREF(bytes);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

#define ADD_COLUMN(feed, name) \
    add_column(feed, #name, offsetof(Row, name), sizeof(((Row *)0)->name))

static int
get_column(PyObject *rows, const char *name, Py_buffer *buffer)
{
    PyObject *column = PyObject_GetAttrString(rows, name);
    int result = column == NULL ? -1 : PyObject_GetBuffer(column, buffer, PyBUF_WRITABLE);
    Py_XDECREF(column);
    return result;
}

static int
feed_all(Feed *feed, PyObject *objs, const Py_buffer *times, PyObject *lane)
{
    PyObject *rows = feed->rows;
    if (get_column(rows, "end", &feed->ends) < 0 || get_column(rows, "flags", &feed->flags) < 0) {
        return -1;
    }
    feed->before = (size_t)feed->ends.len / sizeof(int64_t);
    if (get_number(rows, "clock", &feed->clock) < 0
        || get_number(rows, "unpaired", &feed->unpaired) < 0
        || get_number(rows, "min_ns", &feed->min_ns) < 0
        || get_number(rows, "stretch", &feed->stretch) < 0
        || get_number(rows, "last", &feed->last) < 0
        || get_number(rows, "events", &feed->events) < 0
        || get_number(rows, "unmatched_exits", &feed->unmatched) < 0
        || get_number(rows, "unfinished", &feed->unfinished) < 0
        || load_stack(feed, PyObject_CallMethod(rows, "current", NULL)) < 0
        || feed_lists(feed, objs, times) < 0
        || (lane != Py_None && feed_lane(feed, (Lane *)lane) < 0)
        || store_stack(feed) < 0) {
        return -1;
    }
    PyBuffer_Release(&feed->ends);
    PyBuffer_Release(&feed->flags);
    return ADD_COLUMN(feed, key) < 0 || ADD_COLUMN(feed, parent) < 0
        || ADD_COLUMN(feed, start) < 0 || ADD_COLUMN(feed, end) < 0 || ADD_COLUMN(feed, flags) < 0
        || set_number(rows, "last", feed->last) < 0
        || set_number(rows, "events", feed->events) < 0
        || set_number(rows, "unmatched_exits", feed->unmatched) < 0
        || set_number(rows, "unfinished", feed->unfinished) < 0 ? -1 : 0;
}

/* feed(rows, objs, times, lane): lane may be None. */
PyObject *
feed(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    Feed feed = {0};
    PyObject *objs, *lane;
    Py_buffer times;
    if (!PyArg_ParseTuple(args, "OO!y*O:feed", &feed.rows, &PyList_Type, &objs, &times, &lane)) {
        return NULL;
    }
    int result = -1;
    if (lane != Py_None && !PyObject_TypeCheck(lane, state->lane_type)) {
        PyErr_SetString(PyExc_TypeError, "a lane is needed, or None");
    }
    else {
        result = feed_all(&feed, objs, &times, lane);
    }
    PyBuffer_Release(&feed.ends);
    PyBuffer_Release(&feed.flags);
    PyBuffer_Release(&times);
    table_clear(&feed.meanings);
    free(feed.made);
    free(feed.stack);
    free(feed.functions);
    Py_XDECREF(feed.stack_list);
    Py_XDECREF(feed.function_list);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}
