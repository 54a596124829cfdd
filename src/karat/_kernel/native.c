/* The kernel: the few loops over the user's items that take most of the time of an evaluation.
 *
 * Each function has a twin in Python, which is the definition of the result. A function returns None if the data is
 * not plain (exact lists, dicts, strings and numbers): then the twin decides, also about errors. So nothing here runs
 * code of the user, except for `__eq__` of a dict's unusual keys, and nothing is kept in or changed in their objects.
 *
 * Only the limited API of Python 3.11 is used: one build serves all later versions. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef Py_GIL_DISABLED
#error "The kernel relies on the GIL; free-threaded Python uses the twins."
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif
#define AHEAD 16 /* items whose memory is requested before the first of them is read */
#define ITEMS_PER_SIGNAL_CHECK (1 << 18)

typedef enum { FAILED = -1, PLAIN = 0, UNUSUAL = 1 } Status; /* FAILED: a Python error is set, or memory is used up */

/* ---- Arguments ---- */

/* Memory for at least `needed` items, with the old content; NULL if there is none. It may be called without the GIL. */
static void *
grown(void *old, Py_ssize_t *room, Py_ssize_t needed, size_t itemsize)
{
    if (needed <= *room)
        return old;
    if (needed > PY_SSIZE_T_MAX / 2 / (Py_ssize_t)itemsize - 64)
        return NULL;
    Py_ssize_t size = needed + needed / 2 + 64;
    void *memory = realloc(old, (size_t)size * itemsize);
    if (memory != NULL)
        *room = size;
    return memory;
}

#define INTEGERS "lq" /* formats of 8-byte integers: `long`, `long long` */
#define FLOATS "d"
#define TRUTH "?"
#define NOT_EMPTY (-1)

/* An array of a given length, or NOT_EMPTY, and a given format and item size from an object with a buffer. */
static int
open_array(PyObject *object, Py_buffer *view, Py_ssize_t size, const char *formats, Py_ssize_t itemsize, int writable)
{
    if (PyObject_GetBuffer(object, view, PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    const char *format = view->format == NULL ? "B" : view->format;
    int fits = view->itemsize == itemsize && (uintptr_t)view->buf % itemsize == 0;
    fits = fits && (size == NOT_EMPTY ? view->len > 0 : view->len / itemsize == size);
    if (fits && strlen(format) == 1 && strchr(formats, *format) != NULL)
        return 0;
    PyErr_Format(PyExc_ValueError, "expected an aligned array of %zd items of format %s, got %zd bytes of format %s",
                 size, formats, view->len, format);
    PyBuffer_Release(view);
    return -1;
}

/* The range of a query's keys among all `size` keys. */
static int
read_range(const Py_buffer *start, Py_ssize_t query, Py_ssize_t size, int64_t *begin, int64_t *end)
{
    const int64_t *offsets = start->buf;
    *begin = offsets[query];
    *end = offsets[query + 1];
    if (*begin >= 0 && *begin <= *end && *end <= size)
        return 0;
    PyErr_SetString(PyExc_ValueError, "the offsets do not fit the keys");
    return -1;
}

/* The item of an exact list or tuple, borrowed. */
static PyObject *
item_of(PyObject *sequence, int is_list, Py_ssize_t at)
{
    return is_list ? PyList_GetItem(sequence, at) : PyTuple_GetItem(sequence, at);
}

/* Let Ctrl-C end a call, now and then. Signal handlers are the user's code: no borrowed reference survives them. */
static int
check_signals(Py_ssize_t *work)
{
    if (*work < ITEMS_PER_SIGNAL_CHECK)
        return 0;
    *work = 0;
    return PyErr_CheckSignals();
}

/* ---- Results ---- */

typedef struct {
    int64_t *numbers;
    Py_ssize_t count, room;
} Found;

/* Add the numbers of a match. May be called without the GIL. */
static int
add_found(Found *found, const int64_t *match, int size)
{
    int64_t *numbers = grown(found->numbers, &found->room, found->count + size, sizeof(int64_t));
    if (numbers == NULL)
        return -1;
    found->numbers = numbers;
    for (int i = 0; i < size; i++)
        numbers[found->count++] = match[i];
    return 0;
}

static PyObject *
numbers_in(const Found *found)
{
    return PyByteArray_FromStringAndSize((const char *)found->numbers, found->count * (Py_ssize_t)sizeof(int64_t));
}

/* A new reference to the result of plain data; None if they are not plain. */
static PyObject *
result_of(Status status, PyObject *plain)
{
    if (status == FAILED)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return Py_NewRef(status == UNUSUAL ? Py_None : plain);
}

/* ---- Gold keys in lists ---- */

/* The gold keys of one query in a hash table. Few ASCII keys have a code of their bytes, which costs less to compute
 * than a string's hash; it could be attacked, so many keys have the hash. Other strings are encoded to read their
 * bytes, and keep them: after the first one, all keys of the call have the hash. */
#define FEW_KEYS 64
#define MOST_KEYS INT32_MAX /* what a slot can number */

typedef struct {
    uint64_t code;
    PyObject *key;
    const char *bytes;
    Py_ssize_t size;
    int64_t gold;
} Key;

typedef struct {
    Key *keys;
    uint32_t *slots; /* the number of a key, from 1; 0 is empty */
    Py_ssize_t room, slots_room;
    Py_ssize_t count;
    uint64_t mask;
    int by_bytes;
    int met_other; /* a string that is not ASCII */
} KeyTable;

static uint64_t
mixed(uint64_t number)
{
    number *= UINT64_C(0x9E3779B97F4A7C15);
    return number ^ (number >> 32);
}

/* A code of which any few bits depend on all bits of a number; the low ones of `mixed` do not depend on the high ones.
 * The shift is not that of `mixed`, which would be undone. */
static uint64_t
spread(uint64_t number)
{
    return mixed(number ^ (number >> 29));
}

static uint64_t
eight_bytes(const char *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
    return number;
}

/* The code of a string's bytes: of its length, and its first, middle and last bytes. -1 if the string is not ASCII. */
static int
read_code(PyObject *string, const char *bytes, Py_ssize_t size, uint64_t *code)
{
    uint64_t first = 0, middle = 0, last = 0;
    if (size >= 8) {
        last = eight_bytes(bytes + size - 8);
        first = eight_bytes(bytes);
        if (size > 16)
            middle = eight_bytes(bytes + size / 2 - 4);
    } else if (size >= 4) {
        uint32_t four[2];
        memcpy(four, bytes, 4);
        memcpy(four + 1, bytes + size - 4, 4);
        last = ((uint64_t)four[0] << 32) | four[1];
    } else
        for (Py_ssize_t at = 0; at < size; at++)
            last = (last << 8) | (unsigned char)bytes[at];
    *code = spread(last ^ mixed((first ^ mixed(middle)) + (uint64_t)size));
    if ((first | middle | last) & UINT64_C(0x8080808080808080))
        return -1;
    return size <= 24 || PyUnicode_GetLength(string) == size ? 0 : -1; /* up to 24, these are all bytes */
}

/* A string that has no UTF-8 form because of a lone surrogate is unusual. Making the error may run the garbage
 * collector, and so the user's code: no borrowed reference survives that. */
static Status
no_bytes(void)
{
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return FAILED;
    PyErr_Clear();
    return UNUSUAL;
}

/* The bytes of each key and their code, unless a key is not ASCII. */
static Status
read_bytes(KeyTable *table)
{
    for (Py_ssize_t i = 0; !table->met_other && i < table->count; i++) {
        Key *own = &table->keys[i];
        own->bytes = PyUnicode_AsUTF8AndSize(own->key, &own->size);
        if (own->bytes == NULL)
            return no_bytes();
        table->met_other = read_code(own->key, own->bytes, own->size, &own->code) < 0;
    }
    return PLAIN;
}

/* Same key, given the same code. */
static int
same_key(const KeyTable *table, const Key *own, PyObject *item, const char *bytes, Py_ssize_t size)
{
    if (table->by_bytes)
        return own->size == size && memcmp(own->bytes, bytes, (size_t)size) == 0;
    return own->key == item || PyUnicode_Compare(own->key, item) == 0;
}

/* Put the keys into the slots. A key that occurs twice is unusual. */
static Status
fill_slots(KeyTable *table)
{
    Status status = table->count <= FEW_KEYS ? read_bytes(table) : PLAIN;
    if (status != PLAIN)
        return status;
    table->by_bytes = table->count <= FEW_KEYS && !table->met_other;
    memset(table->slots, 0, ((size_t)table->mask + 1) * sizeof(uint32_t));
    for (Py_ssize_t i = 0; i < table->count; i++) {
        Key *own = &table->keys[i];
        if (!table->by_bytes)
            own->code = mixed((uint64_t)PyObject_Hash(own->key));
        uint64_t slot = own->code & table->mask;
        for (; table->slots[slot]; slot = (slot + 1) & table->mask) {
            const Key *other = &table->keys[table->slots[slot] - 1];
            if (other->code == own->code && same_key(table, other, own->key, own->bytes, own->size))
                return UNUSUAL;
        }
        table->slots[slot] = (uint32_t)i + 1;
    }
    return PLAIN;
}

/* Room for at least `needed` slots, as a power of two. */
static int
grow_slots(uint32_t **slots, Py_ssize_t *room, Py_ssize_t needed, uint64_t *mask)
{
    Py_ssize_t size = 64;
    while (size < needed)
        size *= 2;
    uint32_t *larger = grown(*slots, room, size, sizeof(uint32_t));
    *slots = larger == NULL ? *slots : larger;
    *mask = (uint64_t)size - 1;
    return larger == NULL ? -1 : 0;
}

/* Fill the table with the keys of a query. */
static Status
fill_table(KeyTable *table, PyObject *keys, int64_t begin, int64_t end)
{
    if (end - begin > MOST_KEYS)
        return UNUSUAL;
    table->count = (Py_ssize_t)(end - begin);
    Key *larger = grown(table->keys, &table->room, table->count, sizeof(Key));
    if (larger == NULL && table->count)
        return FAILED;
    table->keys = larger;
    for (int64_t gold = begin; gold < end; gold++) {
        PyObject *key = PyList_GetItem(keys, (Py_ssize_t)gold);
        if (key == NULL)
            return FAILED;
        if (!PyUnicode_CheckExact(key))
            return UNUSUAL;
        table->keys[gold - begin] = (Key){.key = key, .gold = gold};
    }
    if (grow_slots(&table->slots, &table->slots_room, 8 * table->count, &table->mask) < 0)
        return FAILED;
    return fill_slots(table);
}

/* The number of the gold key that an item is, or -1. */
static Status
gold_of(KeyTable *table, PyObject *item, int64_t *gold)
{
    const char *bytes = NULL;
    Py_ssize_t size = 0;
    uint64_t code;
    *gold = -1;
    if (table->by_bytes) {
        bytes = PyUnicode_AsUTF8AndSize(item, &size);
        if (bytes == NULL)
            return no_bytes();
        if (read_code(item, bytes, size, &code) < 0) {
            table->met_other = 1;
            return fill_slots(table);
        }
    } else
        code = mixed((uint64_t)PyObject_Hash(item));
    for (uint64_t slot = code & table->mask; table->slots[slot]; slot = (slot + 1) & table->mask) {
        const Key *own = &table->keys[table->slots[slot] - 1];
        if (own->code == code && same_key(table, own, item, bytes, size)) {
            *gold = own->gold;
            break;
        }
    }
    return PLAIN;
}

static Status
search_ranking(KeyTable *table, PyObject *ranking, int64_t query, int64_t *depth, Found *found)
{
    int is_list = PyList_CheckExact(ranking);
    if (!is_list && !PyTuple_CheckExact(ranking))
        return UNUSUAL;
    Py_ssize_t size = is_list ? PyList_Size(ranking) : PyTuple_Size(ranking);
    *depth = size;
    PyObject *items[AHEAD];
    for (Py_ssize_t first = 0; first < size; first += AHEAD) {
        int count = (int)(size - first < AHEAD ? size - first : AHEAD);
        for (int i = 0; i < count; i++) {
            items[i] = item_of(ranking, is_list, first + i);
            PREFETCH(items[i]);
        }
        for (int i = 0; i < count; i++) {
            if (!PyUnicode_CheckExact(items[i]))
                return UNUSUAL;
            int64_t gold = -1;
            Status status = table->count ? gold_of(table, items[i], &gold) : PLAIN;
            if (status != PLAIN)
                return status;
            if (gold >= 0 && add_found(found, (int64_t[]){query, first + i + 1, gold}, 3) < 0)
                return FAILED;
        }
    }
    return PLAIN;
}

PyDoc_STRVAR(find_in_lists_doc,
    "find_in_lists(rankings, keys, start, depth)\n--\n\n"
    "Every place of the gold keys in lists of strings: query, rank and gold number of each as one bytearray.\n\n"
    "None if the data is not plain, or a query has a key twice. `depth` receives the length of each ranking.");

static PyObject *
find_in_lists(PyObject *module, PyObject *arguments)
{
    PyObject *rankings, *keys, *starts, *depths, *result;
    if (!PyArg_ParseTuple(arguments, "O!O!OO:find_in_lists", &PyList_Type, &rankings, &PyList_Type, &keys, &starts,
                          &depths))
        return NULL;
    Py_ssize_t queries = PyList_Size(rankings);
    Py_buffer start = {0}, depth = {0}; /* to release one that was not opened does nothing */
    Status status = PLAIN;
    if (open_array(starts, &start, queries + 1, INTEGERS, 8, 0) < 0 ||
        open_array(depths, &depth, queries, INTEGERS, 8, 1) < 0)
        status = FAILED;
    int64_t *sizes = depth.buf, begin, end;
    KeyTable table = {0};
    Found found = {0};
    for (Py_ssize_t query = 0, work = 0; status == PLAIN && query < queries; query++) {
        PyObject *ranking = check_signals(&work) < 0 ? NULL : PyList_GetItem(rankings, query);
        if (ranking == NULL || read_range(&start, query, PyList_Size(keys), &begin, &end) < 0) {
            status = FAILED;
            break;
        }
        status = fill_table(&table, keys, begin, end);
        if (status == PLAIN)
            status = search_ranking(&table, ranking, query, &sizes[query], &found);
        work += status == PLAIN ? table.count + sizes[query] + 1 : 0;
    }
    result = status == PLAIN ? numbers_in(&found) : result_of(status, NULL);
    free(table.keys);
    free(table.slots);
    free(found.numbers);
    PyBuffer_Release(&start);
    PyBuffer_Release(&depth);
    return result;
}

/* ---- Gold keys in dicts of scores ---- */

#define MOST_ROUGH (1 << 30) /* scores that a counter of 32 bits can count */
#define MANY_KEYS 128 /* of one query, from which sorting its scores pays */

typedef struct {
    double *all;
    Py_ssize_t count, room;
    int descending, finite, single;
    float *rough; /* the scores in single precision, if they are `rounded` */
    Py_ssize_t rough_room;
    int rounded;
} Scores;

/* A score as a number; floats of all kinds and plain integers are, True and objects that can be converted are not. */
static Status
number_in(PyObject *value, int single, double *number)
{
    if (Py_TYPE(value) == &PyFloat_Type || PyFloat_Check(value))
        *number = PyFloat_AsDouble(value);
    else if (PyLong_CheckExact(value)) {
        *number = PyLong_AsDouble(value);
        if (*number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear(); /* too large */
            return UNUSUAL;
        }
    } else
        return UNUSUAL;
    if (single)
        *number = (double)(float)*number;
    return isnan(*number) ? UNUSUAL : PLAIN;
}

/* Read all scores of a dict by an iterator over its values: `PyDict_Next` reads the hash of each key, in cold memory. */
static Status
read_scores(Scores *scores, PyObject *dict)
{
    Py_ssize_t size = PyDict_Size(dict);
    double *all = grown(scores->all, &scores->room, size, sizeof(double)), before = INFINITY;
    if (all == NULL && size)
        return FAILED;
    scores->all = all;
    scores->count = 0;
    scores->rounded = 0;
    scores->descending = 1;
    PyObject *view = PyObject_CallMethod(dict, "values", NULL);
    PyObject *values = view == NULL ? NULL : PyObject_GetIter(view);
    Py_XDECREF(view);
    if (values == NULL)
        return FAILED;
    Status status = PLAIN;
    for (PyObject *value; status == PLAIN && (value = PyIter_Next(values)) != NULL; Py_DECREF(value)) {
        double number = 0;
        status = scores->count < size ? number_in(value, scores->single, &number) : UNUSUAL;
        if (status == PLAIN) {
            scores->descending &= number <= before;
            scores->finite &= number - number == 0;
            all[scores->count++] = before = number;
        }
    }
    Py_DECREF(values);
    return PyErr_Occurred() ? FAILED : status;
}

static int
greater_first(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* Count greater and equal scores in single precision, which takes half the time. False if other scores are then equal
 * to an item's own: they must be compared as they are. */
static int
count_rough(Scores *scores, double own, int64_t *above)
{
    if (scores->count > MOST_ROUGH)
        return 0;
    if (!scores->rounded) {
        float *rough = grown(scores->rough, &scores->rough_room, scores->count, sizeof(float));
        if (rough == NULL)
            return 0;
        for (Py_ssize_t at = 0; at < scores->count; at++)
            rough[at] = (float)scores->all[at];
        scores->rough = rough;
        scores->rounded = 1;
    }
    const float *rough = scores->rough, mine = (float)own;
    int32_t greater = 0, not_less = 0;
    for (Py_ssize_t at = 0; at < scores->count; at++) {
        greater += rough[at] > mine;
        not_less += rough[at] >= mine;
    }
    *above = greater;
    return not_less == greater + 1;
}

/* The number of greater scores, and whether another score is equal. */
static void
count_above(Scores *scores, double own, int64_t *above, char *tied)
{
    int64_t greater = 0, equal = 0;
    *tied = 0;
    if (!scores->descending && count_rough(scores, own, above))
        return;
    if (scores->descending) {
        Py_ssize_t low = 0, high = scores->count;
        while (low < high) {
            Py_ssize_t middle = low + (high - low) / 2;
            if (scores->all[middle] > own)
                low = middle + 1;
            else
                high = middle;
        }
        greater = low;
        equal = low + 1 < scores->count && scores->all[low + 1] == own ? 2 : 1;
    } else
        for (Py_ssize_t at = 0; at < scores->count; at++) {
            greater += scores->all[at] > own;
            equal += scores->all[at] == own;
        }
    *above = greater;
    *tied = equal > 1;
}

/* The integer that is the same id as a key, or NULL if there is none; NULL with a Python error if that fails. */
static PyObject *
integer_of(PyObject *key)
{
    Py_ssize_t size = PyUnicode_GetLength(key), sign = size > 0 && PyUnicode_ReadChar(key, 0) == '-';
    if (size == sign || size > 4000 || (size > 1 && PyUnicode_ReadChar(key, sign) == '0'))
        return NULL;
    for (Py_ssize_t at = sign; at < size; at++)
        if (PyUnicode_ReadChar(key, at) - '0' > 9)
            return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(key, NULL); /* ASCII: it has these bytes */
    return text == NULL ? NULL : PyLong_FromString(text, NULL, 10);
}

/* The value of a gold key, a new reference: found as text or as an integer; NULL if it is not there. Both is unusual. */
static Status
look_up(PyObject *dict, PyObject *key, int numbers, PyObject **value)
{
    *value = Py_XNewRef(PyDict_GetItemWithError(dict, key)); /* the next lookup may remove it from the dict */
    if (*value == NULL && PyErr_Occurred())
        return FAILED;
    if (!numbers)
        return PLAIN;
    PyObject *number = integer_of(key);
    if (number == NULL)
        return PyErr_Occurred() ? FAILED : PLAIN;
    PyObject *other = Py_XNewRef(PyDict_GetItemWithError(dict, number));
    Py_DECREF(number);
    if (other == NULL)
        return PyErr_Occurred() ? FAILED : PLAIN;
    if (*value == NULL) {
        *value = other;
        return PLAIN;
    }
    Py_DECREF(other);
    return UNUSUAL;
}

typedef struct {
    double *own;
    int64_t *above;
    char *tied;
} Ranks;

static Status
rank_gold(Scores *scores, PyObject *dict, PyObject *keys, int64_t begin, int64_t end, int numbers, Ranks ranks)
{
    if (!PyDict_CheckExact(dict))
        return UNUSUAL;
    Status status = read_scores(scores, dict);
    if (status == PLAIN && !scores->descending && end - begin > MANY_KEYS) {
        qsort(scores->all, (size_t)scores->count, sizeof(double), greater_first);
        scores->descending = 1;
    }
    for (int64_t gold = begin; status == PLAIN && gold < end; gold++) {
        PyObject *key = PyList_GetItem(keys, (Py_ssize_t)gold), *value;
        if (key == NULL)
            return FAILED;
        if (!PyUnicode_CheckExact(key))
            return UNUSUAL;
        Py_INCREF(key);
        status = look_up(dict, key, numbers, &value);
        ranks.own[gold] = NAN;
        if (status == PLAIN && value != NULL) {
            status = number_in(value, scores->single, &ranks.own[gold]);
            count_above(scores, ranks.own[gold], &ranks.above[gold], &ranks.tied[gold]);
        }
        Py_XDECREF(value);
        Py_DECREF(key);
    }
    return status;
}

/* Keys that are no ids are unusual: the first one shows the type, and True and False would be found as 1 and 0. */
static Status
check_ids(PyObject *dict)
{
    PyObject *key, *value, *const others[] = {Py_None, Py_True, Py_False};
    Py_ssize_t place = 0;
    if (!PyDict_Next(dict, &place, &key, &value))
        return PLAIN;
    int known = !PyUnicode_CheckExact(key);
    for (int i = 0; known == 0 && i < 3; i++)
        known = PyDict_Contains(dict, others[i]);
    return known < 0 ? FAILED : known ? UNUSUAL : PLAIN;
}

PyDoc_STRVAR(find_in_dicts_doc,
    "find_in_dicts(dicts, keys, start, single, numbers, check, own, above, tied)\n--\n\n"
    "The score of each gold key, the number of greater ones in its dict, and whether another is equal.\n\n"
    "The last three arguments receive them; the score is NaN if the key is not there. `single` compares in single\n"
    "precision, `numbers` looks for keys as integers, too, `check` refuses keys that are no ids. Returns True if all\n"
    "scores are finite, None if the data is not plain.");

static PyObject *
find_in_dicts(PyObject *module, PyObject *arguments)
{
    PyObject *dicts, *keys, *given[4], *result;
    int single, numbers, check;
    if (!PyArg_ParseTuple(arguments, "O!O!OpppOOO:find_in_dicts", &PyList_Type, &dicts, &PyList_Type, &keys, &given[0],
                          &single, &numbers, &check, &given[1], &given[2], &given[3]))
        return NULL;
    Py_ssize_t queries = PyList_Size(dicts), size = PyList_Size(keys);
    const char *const formats[4] = {INTEGERS, FLOATS, INTEGERS, TRUTH};
    const Py_ssize_t sizes[4] = {queries + 1, size, size, size}, itemsizes[4] = {8, 8, 8, 1};
    Py_buffer views[4] = {{0}}; /* `start`, and the three results */
    Status status = PLAIN;
    for (int i = 0; status == PLAIN && i < 4; i++)
        status = open_array(given[i], &views[i], sizes[i], formats[i], itemsizes[i], i > 0) < 0 ? FAILED : PLAIN;
    int64_t begin, end;
    Scores scores = {.single = single, .finite = 1};
    for (Py_ssize_t query = 0, work = 0; status == PLAIN && query < queries; query++) {
        PyObject *dict = check_signals(&work) < 0 ? NULL : PyList_GetItem(dicts, query);
        if (dict == NULL || read_range(&views[0], query, size, &begin, &end) < 0) {
            status = FAILED;
            break;
        }
        Ranks ranks = {views[1].buf, views[2].buf, views[3].buf};
        Py_INCREF(dict); /* `__eq__` of a key may remove it from the list */
        status = rank_gold(&scores, dict, keys, begin, end, numbers, ranks);
        if (status == PLAIN && check)
            status = check_ids(dict);
        Py_DECREF(dict);
        work += scores.count * (scores.descending ? 1 : (Py_ssize_t)(end - begin) + 1) + 1;
    }
    result = result_of(status, scores.finite ? Py_True : Py_False);
    free(scores.all);
    free(scores.rough);
    for (int i = 0; i < 4; i++)
        PyBuffer_Release(&views[i]);
    return result;
}

/* ---- Gold keys in columns ---- */

/* The structures of Arrow's C data interface, by which Polars passes columns without copying them. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#define STRINGS "vu" /* formats of columns: string views, numbers of double precision */
#define NUMBERS "g"
#define ROWS_AHEAD 256 /* rows whose memory is requested before they are read */
#define MOST_INLINE 12 /* bytes of a string that its view holds */
#define PROBES_PER_ROW 16 /* strings with one code may be made: a search that takes longer is left to the twin */

/* A string: `head` has its size and first four bytes; `tail` has the other ones, or the buffer and the place of all. */
typedef struct {
    uint64_t head, tail;
} View;

typedef struct {
    struct ArrowArray array;
    const View *views; /* or NULL */
    const double *numbers; /* or NULL */
} Chunk;

typedef struct {
    Chunk *chunks;
    Py_ssize_t count, room;
    int64_t size;
} Column;

static uint32_t
size_of(View view)
{
    uint32_t size;
    memcpy(&size, &view.head, sizeof(size));
    return size;
}

/* The bytes of a string that is not inline. */
static const char *
bytes_of(const Chunk *chunk, View view)
{
    uint32_t place[2];
    memcpy(place, &view.tail, sizeof(place));
    return (const char *)chunk->array.buffers[2 + place[0]] + place[1];
}

static int
same_string(const Chunk *chunk, View view, const Chunk *other_chunk, View other)
{
    if (view.head != other.head)
        return 0;
    if (view.tail == other.tail && (chunk == other_chunk || size_of(view) <= MOST_INLINE))
        return 1;
    return size_of(view) > MOST_INLINE &&
           memcmp(bytes_of(chunk, view), bytes_of(other_chunk, other), size_of(view)) == 0;
}

/* The code of a string: of its size, and its first, middle and last bytes. */
static uint64_t
code_of(const Chunk *chunk, View view)
{
    uint64_t head = mixed(view.head), tail = view.tail;
    if (size_of(view) > MOST_INLINE) {
        const char *bytes = bytes_of(chunk, view);
        head = mixed(head ^ eight_bytes(bytes + size_of(view) / 2 - 4));
        tail = eight_bytes(bytes + size_of(view) - 8);
    }
    return spread(tail ^ head);
}

static void
close_column(Column *column)
{
    while (column->count > 0) {
        struct ArrowArray *array = &column->chunks[--column->count].array;
        array->release(array);
    }
    free(column->chunks);
}

/* Read the chunks of a stream. Another format is unusual, and so are missing or unaligned values. */
static Status
open_column(PyObject *capsule, const char *format, Column *column)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream == NULL)
        return FAILED;
    struct ArrowSchema schema;
    if (stream->release == NULL || stream->get_schema(stream, &schema) != 0)
        return UNUSUAL;
    int fits = strcmp(schema.format, format) == 0;
    schema.release(&schema);
    for (Status status = fits ? PLAIN : UNUSUAL;;) {
        Chunk chunk;
        if (status != PLAIN || stream->get_next(stream, &chunk.array) != 0)
            return status == PLAIN ? UNUSUAL : status;
        if (chunk.array.release == NULL)
            return PLAIN;
        Chunk *chunks = grown(column->chunks, &column->room, column->count + 1, sizeof(Chunk));
        if (chunks == NULL) {
            chunk.array.release(&chunk.array);
            return FAILED;
        }
        const void *values = chunk.array.buffers[1];
        chunk.views = *format == *STRINGS ? (const View *)values + chunk.array.offset : NULL;
        chunk.numbers = *format == *NUMBERS ? (const double *)values + chunk.array.offset : NULL;
        column->chunks = chunks;
        column->chunks[column->count++] = chunk;
        column->size += chunk.array.length;
        int aligned = (uintptr_t)values % 8 == 0 || chunk.array.length == 0;
        status = chunk.array.null_count == 0 && aligned ? PLAIN : UNUSUAL;
    }
}

/* A place in a column: a row of a chunk. */
typedef struct {
    const Chunk *chunk;
    int64_t row;
} Place;

/* The next rows of a column that are in one chunk, at most some; there is at least one. */
static Place
next_rows(Place *next, int64_t most, int64_t *count)
{
    while (next->row == next->chunk->array.length)
        *next = (Place){.chunk = next->chunk + 1};
    Place first = *next;
    int64_t left = first.chunk->array.length - first.row;
    *count = most < left ? most : left;
    next->row += *count;
    return first;
}

static View
view_at(Place place)
{
    return place.chunk->views[place.row];
}

typedef struct {
    Place place;
    uint64_t code;
} ColumnKey;

typedef struct {
    Column items, keys, scores;
    int scored;
    const int64_t *start, *key_start;
    Place next_item, next_key, next_score;
    ColumnKey *own; /* the keys of one query */
    uint32_t *slots; /* the number of a key, from 1; 0 is empty */
    Py_ssize_t own_room, slots_room;
    uint64_t mask;
    int64_t probes;
    Scores compared; /* those of one query */
    Found found;
} ColumnSearch;

/* The slot of a string's key, or the empty one where it would be. */
static uint64_t
slot_of(ColumnSearch *search, Place place, uint64_t code)
{
    uint64_t slot = code & search->mask;
    for (; search->slots[slot]; slot = (slot + 1) & search->mask) {
        const ColumnKey *key = &search->own[search->slots[slot] - 1];
        if (key->code == code &&
            same_string(place.chunk, view_at(place), key->place.chunk, view_at(key->place)))
            break;
        search->probes--;
    }
    return slot;
}

/* Put the next keys into the slots. A key that occurs twice is unusual. */
static Status
fill_column_slots(ColumnSearch *search, int64_t count)
{
    if (count > MOST_KEYS)
        return UNUSUAL;
    ColumnKey *own = grown(search->own, &search->own_room, (Py_ssize_t)count + 1, sizeof(ColumnKey));
    if (own == NULL)
        return FAILED;
    search->own = own;
    if (grow_slots(&search->slots, &search->slots_room, 16 * (Py_ssize_t)count, &search->mask) < 0)
        return FAILED;
    uint32_t *slots = search->slots;
    memset(slots, 0, ((size_t)search->mask + 1) * sizeof(uint32_t));
    for (int64_t number = 0, one; number < count; number++) {
        Place place = next_rows(&search->next_key, 1, &one);
        own[number] = (ColumnKey){place, code_of(place.chunk, view_at(place))};
        uint64_t slot = slot_of(search, place, own[number].code);
        if (slots[slot] || search->probes < 0)
            return UNUSUAL;
        slots[slot] = (uint32_t)number + 1;
    }
    return PLAIN;
}

/* Read the next scores, in the precision in which they are compared. */
static Status
read_column_scores(Scores *scores, Place *next, int64_t size)
{
    double *all = grown(scores->all, &scores->room, (Py_ssize_t)size + 1, sizeof(double));
    if (all == NULL)
        return FAILED;
    scores->all = all;
    scores->count = (Py_ssize_t)size;
    scores->rounded = 0;
    int descending = 1, finite = 1;
    for (int64_t at = 0, count; at < size; at += count) {
        Place first = next_rows(next, size - at, &count);
        const double *numbers = first.chunk->numbers + first.row;
        for (int64_t i = 0; i < count; i++) {
            PREFETCH(numbers + i + ROWS_AHEAD);
            all[at + i] = scores->single ? (double)(float)numbers[i] : numbers[i];
            finite &= all[at + i] - all[at + i] == 0;
        }
    }
    for (int64_t i = 1; i < size; i++)
        descending &= all[i] <= all[i - 1];
    scores->descending = descending;
    scores->finite &= finite;
    for (int64_t i = 0; !finite && i < size; i++)
        if (isnan(all[i]))
            return UNUSUAL;
    return PLAIN;
}

/* Add to the matches of a query, from `match` to `end`, the number of greater scores, and whether another is equal. */
static void
rank_matches(Scores *scores, int64_t *match, const int64_t *end, int64_t begin)
{
    for (int64_t *one = match; one < end; one += 4)
        memcpy(&one[2], &scores->all[one[1] - begin], sizeof(double)); /* for the scores may be sorted */
    if (!scores->descending && end - match > 4 * MANY_KEYS) {
        qsort(scores->all, (size_t)scores->count, sizeof(double), greater_first);
        scores->descending = 1;
    }
    for (; match < end; match += 4) {
        double own;
        char tied;
        memcpy(&own, &match[2], sizeof(double));
        count_above(scores, own, &match[2], &tied);
        match[3] = tied;
    }
}

/* Find the keys of a query among items in one chunk, of which the first has the number `row`. */
static Status
search_items(ColumnSearch *search, Place first, int64_t count, int64_t row, int64_t first_key)
{
    const Chunk *chunk = first.chunk;
    const View *views = chunk->views + first.row;
    const uint32_t *slots = search->slots;
    const uint64_t mask = search->mask;
    for (int64_t i = 0; i < count; i++) {
        PREFETCH(views + i + ROWS_AHEAD);
        uint64_t code = code_of(chunk, views[i]);
        if (slots[code & mask] == 0)
            continue;
        uint64_t slot = slot_of(search, (Place){chunk, first.row + i}, code);
        if (search->probes < 0)
            return UNUSUAL;
        int64_t match[] = {first_key + slots[slot] - 1, row + i, 0, 0};
        if (slots[slot] && add_found(&search->found, match, 4) < 0)
            return FAILED;
    }
    return PLAIN;
}

/* Find the keys of one query among its items, and rank them. */
static Status
search_column_query(ColumnSearch *search, int64_t query)
{
    int64_t begin = search->start[query], end = search->start[query + 1], first_key = search->key_start[query];
    Status status = fill_column_slots(search, search->key_start[query + 1] - first_key);
    Py_ssize_t first = search->found.count;
    for (int64_t row = begin, count; status == PLAIN && row < end; row += count) {
        Place at = next_rows(&search->next_item, end - row, &count);
        status = search_items(search, at, count, row, first_key);
    }
    if (status != PLAIN || !search->scored)
        return status;
    status = read_column_scores(&search->compared, &search->next_score, end - begin);
    if (status == PLAIN && search->found.count > first)
        rank_matches(&search->compared, search->found.numbers + first, search->found.numbers + search->found.count,
                     begin);
    return status;
}

/* Find the keys of all queries. May be called without the GIL. */
static Status
search_columns(ColumnSearch *search, Py_ssize_t queries)
{
    search->next_item.chunk = search->items.chunks;
    search->next_key.chunk = search->keys.chunks;
    search->next_score.chunk = search->scores.chunks;
    search->probes = 4096 + PROBES_PER_ROW * (search->items.size + search->keys.size);
    Status status = PLAIN;
    for (Py_ssize_t query = 0; status == PLAIN && query < queries; query++)
        status = search_column_query(search, query);
    return status;
}

/* Check that some offsets are those of consecutive parts of a column. */
static int
check_parts(const Py_buffer *start, Py_ssize_t parts, int64_t size)
{
    const int64_t *offsets = start->buf;
    int fits = offsets[0] == 0 && offsets[parts] == size;
    for (Py_ssize_t i = 0; fits && i < parts; i++)
        fits = offsets[i] <= offsets[i + 1];
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the offsets do not fit the columns");
    return fits ? 0 : -1;
}

static Status
open_columns(ColumnSearch *search, PyObject *items, PyObject *keys, PyObject *scores)
{
    Status status = open_column(items, STRINGS, &search->items);
    if (status == PLAIN)
        status = open_column(keys, STRINGS, &search->keys);
    search->scored = scores != Py_None;
    if (status == PLAIN && search->scored) {
        status = open_column(scores, NUMBERS, &search->scores);
        if (status == PLAIN && search->scores.size != search->items.size) {
            PyErr_SetString(PyExc_ValueError, "the scores do not fit the items");
            return FAILED;
        }
    }
    return status;
}

static Status
search_parts(ColumnSearch *search, const Py_buffer *start, const Py_buffer *key_start, Py_ssize_t queries)
{
    if (check_parts(start, queries, search->items.size) < 0 || check_parts(key_start, queries, search->keys.size) < 0)
        return FAILED;
    search->start = start->buf;
    search->key_start = key_start->buf;
    PyThreadState *state = PyEval_SaveThread();
    Status status = search_columns(search, queries);
    PyEval_RestoreThread(state);
    return status;
}

PyDoc_STRVAR(find_in_column_doc,
    "find_in_column(items, start, keys, key_start, scores, single)\n--\n\n"
    "Every place of the gold keys in a column of strings, as one bytearray: key number, row, the number of greater\n"
    "scores in its query, and whether another is equal. And True if all scores are finite.\n\n"
    "The columns are Arrow streams, and are used up; `scores` may be None. `single` compares in single precision.\n"
    "None if the data is not plain, or a query has a key twice. Other threads may run meanwhile.");

static PyObject *
find_in_column(PyObject *module, PyObject *arguments)
{
    PyObject *items, *starts, *keys, *key_starts, *scores, *result = NULL;
    ColumnSearch search = {.compared = {.finite = 1}};
    if (!PyArg_ParseTuple(arguments, "OOOOOp:find_in_column", &items, &starts, &keys, &key_starts, &scores,
                          &search.compared.single))
        return NULL;
    Py_buffer start = {0}, key_start = {0};
    Status status = FAILED;
    if (open_array(starts, &start, NOT_EMPTY, INTEGERS, 8, 0) == 0 &&
        open_array(key_starts, &key_start, start.len / 8, INTEGERS, 8, 0) == 0)
        status = open_columns(&search, items, keys, scores);
    if (status == PLAIN)
        status = search_parts(&search, &start, &key_start, start.len / 8 - 1);
    if (status == PLAIN) {
        PyObject *found = numbers_in(&search.found);
        result = found == NULL ? NULL : PyTuple_Pack(2, found, search.compared.finite ? Py_True : Py_False);
        Py_XDECREF(found);
    } else
        result = result_of(status, NULL);
    close_column(&search.items);
    close_column(&search.keys);
    close_column(&search.scores);
    free(search.own);
    free(search.slots);
    free(search.compared.all);
    free(search.compared.rough);
    free(search.found.numbers);
    PyBuffer_Release(&start);
    PyBuffer_Release(&key_start);
    return result;
}

/* Add each row of a column at which the string changes. May be called without the GIL. */
static Status
find_changes(const Column *column, Found *found)
{
    const Chunk *last_chunk = NULL;
    View last = {0};
    int64_t row = 0;
    for (Py_ssize_t number = 0; number < column->count; number++) {
        const Chunk *chunk = &column->chunks[number];
        for (int64_t i = 0; i < chunk->array.length; i++, row++) {
            View own = chunk->views[i];
            PREFETCH(chunk->views + i + ROWS_AHEAD);
            int changed = last_chunk == NULL || !same_string(chunk, own, last_chunk, last);
            if (changed && add_found(found, &row, 1) < 0)
                return FAILED;
            last_chunk = chunk;
            last = own;
        }
    }
    return PLAIN;
}

PyDoc_STRVAR(changes_in_column_doc,
    "changes_in_column(column)\n--\n\n"
    "The rows at which a column of strings changes, and the first row, as one bytearray.\n\n"
    "The column is an Arrow stream, and is used up. None if it is not plain. Other threads may run meanwhile.");

static PyObject *
changes_in_column(PyObject *module, PyObject *stream)
{
    Column column = {0};
    Found found = {0};
    Status status = open_column(stream, STRINGS, &column);
    if (status == PLAIN) {
        PyThreadState *state = PyEval_SaveThread();
        status = find_changes(&column, &found);
        PyEval_RestoreThread(state);
    }
    PyObject *result = status == PLAIN ? numbers_in(&found) : result_of(status, NULL);
    close_column(&column);
    free(found.numbers);
    return result;
}

/* ---- The best items of a dict of scores ---- */

#define MOST_BEST 128 /* from which sorting all scores pays */

typedef struct {
    double given, compared;
    Py_ssize_t place; /* among the values of the dict */
} Best;

/* The greatest scores, one more than wanted if there are so many: a tie at the end is then seen. Ties are unusual. */
static Status
read_best(PyObject *values, Py_ssize_t most, int single, Best *best, Py_ssize_t *count)
{
    Py_ssize_t size = PyList_Size(values);
    *count = 0;
    for (Py_ssize_t place = 0; place < size; place++) {
        Best own = {.place = place};
        if (number_in(PyList_GetItem(values, place), 0, &own.given) == UNUSUAL)
            return UNUSUAL;
        own.compared = single ? (double)(float)own.given : own.given;
        if (*count == most && own.compared <= best[most - 1].compared)
            continue;
        Py_ssize_t at = *count < most ? (*count)++ : most - 1;
        for (; at > 0 && best[at - 1].compared < own.compared; at--)
            best[at] = best[at - 1];
        best[at] = own;
    }
    for (Py_ssize_t i = 1; i < *count; i++)
        if (best[i].compared == best[i - 1].compared)
            return UNUSUAL;
    return PLAIN;
}

/* The keys at places of a dict. To iterate over all keys would read each from cold memory, which takes most of the
 * time. What the places of `PyDict_Next` mean is not promised: the value there must be the one that was found; no
 * other key has it, for there are no ties. */
static Status
keys_at(PyObject *dict, PyObject *values, const Best *best, PyObject *items, PyObject *scores)
{
    for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
        Py_ssize_t place = best[i].place;
        PyObject *key, *value;
        if (!PyDict_Next(dict, &place, &key, &value) || value != PyList_GetItem(values, best[i].place))
            return UNUSUAL;
        PyObject *number = PyFloat_FromDouble(best[i].given);
        if (number == NULL || PyList_SetItem(items, i, Py_NewRef(key)) < 0 || PyList_SetItem(scores, i, number) < 0)
            return FAILED;
    }
    return PLAIN;
}

PyDoc_STRVAR(best_of_dict_doc,
    "best_of_dict(scored, ranks, single)\n--\n\n"
    "The items with the greatest scores, best first, and these scores; `single` compares in single precision.\n\n"
    "None if the data is not plain, if many items are wanted, or if ids decide: a score is tied with another.");

static PyObject *
best_of_dict(PyObject *module, PyObject *arguments)
{
    PyObject *dict, *items = NULL, *scores = NULL, *pair = NULL;
    Py_ssize_t ranks, count = 0;
    int single;
    if (!PyArg_ParseTuple(arguments, "Onp:best_of_dict", &dict, &ranks, &single))
        return NULL;
    if (!PyDict_CheckExact(dict) || ranks < 1 || ranks > MOST_BEST)
        return Py_NewRef(Py_None);
    PyObject *view = PyObject_CallMethod(dict, "values", NULL);
    PyObject *values = view == NULL ? NULL : PySequence_List(view);
    Py_XDECREF(view);
    if (values == NULL)
        return NULL;
    Best best[MOST_BEST + 1];
    Status status = read_best(values, ranks + 1, single, best, &count);
    if (status == PLAIN) {
        count = count < ranks ? count : ranks;
        items = PyList_New(count);
        scores = PyList_New(count);
        status = items == NULL || scores == NULL ? FAILED : keys_at(dict, values, best, items, scores);
    }
    if (status == PLAIN && (pair = PyTuple_Pack(2, items, scores)) == NULL)
        status = FAILED;
    PyObject *result = result_of(status, pair);
    Py_XDECREF(pair);
    Py_XDECREF(items);
    Py_XDECREF(scores);
    Py_DECREF(values);
    return result;
}

/* ---- Texts in texts, whatever their white space ---- */

typedef unsigned char Byte;

typedef struct {
    PyObject *owner; /* the encoded text */
    const Byte *begin, *end; /* without white space at the ends */
    const Byte *anchor; /* bytes without white space near the beginning: where they are not, the text is not */
    Py_ssize_t anchor_size;
} Text;

#define ANCHOR_WITHIN 64 /* bytes */
#define LONG_ANCHOR 4 /* bytes, from which no longer one is looked for among words that are not ASCII */
#define FETCHED 256 /* bytes of each text */
#define LONG_SEARCH (1 << 22) /* bytes to search, from which other threads may run meanwhile */
#define BYTES_PER_SIGNAL_CHECK (1 << 26)
#define MANY_PAIRS 20000 /* of one query, from which the twin is faster, by an index */
#define STEPS_PER_BYTE 16 /* comparisons, after which a search is left to the twin, whose time is always linear */

/* The size of the white space character at a place, 0 if there is none: the characters at which `str.split` splits. */
static int
space_at(const Byte *at, const Byte *end)
{
    if (at == end)
        return 0;
    if (*at < 0x80)
        return *at == ' ' || (*at >= 0x09 && *at <= 0x0D) || (*at >= 0x1C && *at <= 0x1F);
    if (*at == 0xC2)
        return end - at > 1 && (at[1] == 0x85 || at[1] == 0xA0) ? 2 : 0;
    if (*at < 0xE1 || *at > 0xE3 || end - at < 3)
        return 0;
    switch (*at << 8 | at[1]) {
    case 0xE19A:
    case 0xE380:
        return at[2] == 0x80 ? 3 : 0;
    case 0xE280:
        return at[2] <= 0x8A || at[2] == 0xA8 || at[2] == 0xA9 || at[2] == 0xAF ? 3 : 0;
    case 0xE281:
        return at[2] == 0x9F ? 3 : 0;
    default:
        return 0;
    }
}

/* The size of the white space character that ends at a place. */
static int
space_before(const Byte *begin, const Byte *at)
{
    if (at > begin && at[-1] < 0x80)
        return space_at(at - 1, at);
    for (int size = 2; size <= 3 && at - begin >= size; size++)
        if (space_at(at - size, at) == size)
            return size;
    return 0;
}

#ifdef __SSE2__
/* The longest ASCII word near the beginning as the anchor, 64 bytes at once; false if there is only a short one. */
static int
choose_ascii_anchor(Text *text)
{
    if (text->end - text->begin < ANCHOR_WITHIN)
        return 0;
    uint64_t words = 0; /* a bit for each byte: of a word, or not */
    for (int at = 0; at < ANCHOR_WITHIN; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text->begin + at));
        words |= (uint64_t)_mm_movemask_epi8(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(' '))) << at;
    }
    text->anchor_size = 0;
    for (int at = 0; at < ANCHOR_WITHIN && words >> at;) {
        at += __builtin_ctzll(words >> at);
        uint64_t others = ~(words >> at);
        int size = others ? __builtin_ctzll(others) : ANCHOR_WITHIN;
        if (size > text->anchor_size) {
            text->anchor = text->begin + at;
            text->anchor_size = size;
        }
        at += size;
    }
    return text->anchor_size >= LONG_ANCHOR;
}
#endif

/* Cut white space off both ends, and choose the anchor: the longest word, or part of a word, near the beginning. */
static void
prepare(Text *text)
{
    int size;
    while ((size = space_at(text->begin, text->end)) > 0)
        text->begin += size;
    while ((size = space_before(text->begin, text->end)) > 0)
        text->end -= size;
#ifdef __SSE2__
    if (choose_ascii_anchor(text))
        return;
#endif
    const Byte *end = text->end - text->begin > ANCHOR_WITHIN ? text->begin + ANCHOR_WITHIN : text->end;
    text->anchor = text->begin;
    text->anchor_size = 0;
    for (const Byte *word = text->begin, *at = text->begin; word < end; at++) {
        while (at < end && *at > ' ' && *at < 0x80)
            at++;
        size = at < end ? space_at(at, text->end) : 1;
        if (size == 0)
            continue;
        if (at - word > text->anchor_size) {
            text->anchor = word;
            text->anchor_size = at - word;
        }
        at += size - 1;
        word = at + 1;
    }
}

#ifdef __SSE2__
/* The places, of 16, at which a byte is, and another one `size - 1` bytes later: a bit for each. */
static inline unsigned
places_of(const Byte *at, Py_ssize_t size, __m128i first, __m128i last)
{
    __m128i here = _mm_cmpeq_epi8(first, _mm_loadu_si128((const __m128i *)at));
    __m128i there = _mm_cmpeq_epi8(last, _mm_loadu_si128((const __m128i *)(at + size - 1)));
    return (unsigned)_mm_movemask_epi8(_mm_and_si128(here, there));
}
#endif

/* The first place of some bytes, or NULL: where their first and their last byte are, the others are compared. */
static const Byte *
find_bytes(const Byte *at, const Byte *end, const Byte *bytes, Py_ssize_t size, int64_t *steps)
{
#ifdef __SSE2__ /* 32 places at once */
    const __m128i first = _mm_set1_epi8((char)bytes[0]), last = _mm_set1_epi8((char)bytes[size - 1]);
    for (; end - at >= size + 31; at += 32) {
        unsigned places = places_of(at, size, first, last) | places_of(at + 16, size, first, last) << 16;
        for (; places; places &= places - 1) {
            const Byte *place = at + __builtin_ctz(places);
            *steps += size;
            if (memcmp(place, bytes, (size_t)size) == 0)
                return place;
        }
    }
#endif
    for (; end - at >= size; at++) {
        at = memchr(at, bytes[0], (size_t)(end - at - size + 1));
        if (at == NULL)
            return NULL;
        *steps += size;
        if (at[size - 1] == bytes[size - 1] && memcmp(at, bytes, (size_t)size) == 0)
            return at;
    }
    return NULL;
}

/* True if the rest of a text, from a place on, is at a place of another one. */
static int
matches_after(const Byte *at, const Byte *end, const Byte *place, const Byte *last, int64_t *steps)
{
    const Byte *own = at, *begin = place;
    int same = 1;
    while (same && at < end) {
        int size = space_at(at, end), other = space_at(place, last);
        if (size == 0) {
            same = place < last && *at++ == *place;
            place++;
            continue;
        }
        same = other > 0;
        for (; size > 0; size = space_at(at, end))
            at += size;
        for (; other > 0; other = space_at(place, last))
            place += other;
    }
    *steps += (at - own) + (place - begin); /* white space of either may be much longer than that of the other */
    return same;
}

/* True if the beginning of a text, up to a place, is before a place of another one. */
static int
matches_before(const Byte *begin, const Byte *at, const Byte *first, const Byte *place, int64_t *steps)
{
    const Byte *own = at, *end = place;
    int same = 1;
    while (same && at > begin) {
        int size = space_before(begin, at), other = space_before(first, place);
        if (size == 0) {
            same = place > first && *--at == place[-1];
            place -= place > first;
            continue;
        }
        same = other > 0;
        for (; size > 0; size = space_before(begin, at))
            at -= size;
        for (; other > 0; other = space_before(first, place))
            place -= other;
    }
    *steps += (own - at) + (end - place);
    return same;
}

/* 1 if a text occurs in another one, 0 if not, -1 if that takes too many comparisons. A blank text does not occur. */
static int
occurs(const Text *needle, const Text *text)
{
    if (needle->anchor_size == 0)
        return 0;
    int64_t steps = 0, most = 4096 + STEPS_PER_BYTE * ((text->end - text->begin) + (needle->end - needle->begin));
    const Byte *anchor = needle->anchor, *at = text->begin;
    Py_ssize_t size = needle->anchor_size;
    while ((at = find_bytes(at, text->end, anchor, size, &steps)) != NULL) {
        if (matches_after(anchor + size, needle->end, at + size, text->end, &steps) &&
            matches_before(needle->begin, anchor, text->begin, at, &steps))
            return 1;
        if (steps > most)
            return -1;
        at++;
    }
    return 0;
}

typedef struct {
    Text *all;
    Py_ssize_t count, room;
    Py_ssize_t bytes;
} Texts;

static void
close_texts(Texts *texts)
{
    while (texts->count > 0)
        Py_DECREF(texts->all[--texts->count].owner);
    texts->bytes = 0;
}

/* The UTF-8 form of a string: its own bytes if it is ASCII, else a copy, for the string would keep what it encodes. */
static Status
encode(PyObject *item, PyObject *isascii, Text *text)
{
    PyObject *ascii = PyObject_CallFunctionObjArgs(isascii, item, NULL);
    if (ascii == NULL)
        return FAILED;
    Py_DECREF(ascii); /* True and False live on */
    char *bytes;
    Py_ssize_t size;
    text->owner = ascii == Py_True ? Py_NewRef(item) : PyUnicode_AsUTF8String(item);
    if (text->owner == NULL)
        return no_bytes();
    if (ascii == Py_True)
        bytes = (char *)PyUnicode_AsUTF8AndSize(item, &size);
    else if (PyBytes_AsStringAndSize(text->owner, &bytes, &size) < 0)
        bytes = NULL;
    text->begin = (const Byte *)bytes;
    text->end = text->begin + (bytes == NULL ? 0 : size);
    return bytes == NULL ? FAILED : PLAIN;
}

/* Encode and prepare the texts of a list, from `begin` to `end`. */
static Status
open_texts(Texts *texts, PyObject *list, int64_t begin, int64_t end, PyObject *isascii)
{
    Text *all = grown(texts->all, &texts->room, (Py_ssize_t)(end - begin), sizeof(Text));
    if (all == NULL && end > begin)
        return FAILED;
    texts->all = all;
    for (int64_t i = begin; i < end; i++) {
        PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
        if (item == NULL)
            return FAILED;
        if (!PyUnicode_CheckExact(item))
            return UNUSUAL;
        Text *text = &all[texts->count];
        text->owner = NULL;
        Status status = encode(item, isascii, text);
        if (text->owner != NULL)
            texts->count++;
        if (status != PLAIN)
            return status;
        texts->bytes += text->end - text->begin;
        prepare(text);
    }
    return PLAIN;
}

#define NEEDLE_IN_TEXT 1
#define TEXT_IN_NEEDLE 2
#define BOTH_BLANK 4

/* The way in which one of two texts occurs in the other, of those that count; 0 if in none, -1 if that takes too long. */
static int
way_of(const Text *needle, const Text *text, int ways)
{
    if (needle->anchor_size == 0)
        return text->anchor_size == 0 ? ways & BOTH_BLANK : 0;
    int there = ways & NEEDLE_IN_TEXT ? occurs(needle, text) : 0;
    if (there)
        return there < 0 ? -1 : NEEDLE_IN_TEXT;
    there = ways & TEXT_IN_NEEDLE ? occurs(text, needle) : 0;
    return there > 0 ? TEXT_IN_NEEDLE : there;
}

typedef struct {
    Texts needles, texts;
    int64_t query, first; /* the number of the first needle among those of all queries */
    int ways;
    Found found;
} Search;

/* Compare the next needles of a query with every text, up to a number of bytes. May be called without the GIL. */
static Status
search_some(Search *search, Py_ssize_t *next, int64_t most)
{
    const Texts *needles = &search->needles, *texts = &search->texts;
    for (int64_t bytes = 0; *next < needles->count && bytes < most; ++*next) {
        const Text *needle = &needles->all[*next];
        bytes += texts->bytes + texts->count * (needle->end - needle->begin);
        for (Py_ssize_t j = 0; j < texts->count; j++) {
            int way = way_of(needle, &texts->all[j], search->ways);
            if (way < 0)
                return UNUSUAL;
            int64_t match[] = {search->query, search->first + *next, j + 1, way};
            if (way && add_found(&search->found, match, 4) < 0)
                return FAILED;
        }
    }
    return PLAIN;
}

/* Compare every needle of a query with every text. */
static Status
search_all(Search *search)
{
    const Texts *needles = &search->needles, *texts = &search->texts;
    Status status = PLAIN;
    Py_ssize_t next = 0;
    if ((int64_t)needles->count * texts->bytes + (int64_t)texts->count * needles->bytes < LONG_SEARCH)
        return search_some(search, &next, INT64_MAX);
    while (status == PLAIN && next < needles->count) {
        PyThreadState *state = PyEval_SaveThread();
        status = search_some(search, &next, BYTES_PER_SIGNAL_CHECK);
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals() < 0)
            status = FAILED;
    }
    return status;
}

/* Request the memory of the texts of a query that is searched next. */
static void
fetch_ahead(PyObject *texts, Py_ssize_t query)
{
    PyObject *own = query < PyList_Size(texts) ? PyList_GetItem(texts, query) : NULL;
    if (own == NULL || !PyList_CheckExact(own))
        return;
    Py_ssize_t count = PyList_Size(own);
    for (Py_ssize_t i = 0; i < count && i < AHEAD; i++) {
        const char *item = (const char *)PyList_GetItem(own, i);
        for (int at = 0; at < FETCHED; at += 64)
            PREFETCH(item + at);
    }
}

static Status
search_query(Search *search, PyObject *needles, PyObject *texts, const Py_buffer *start, PyObject *isascii)
{
    int64_t end;
    PyObject *own = PyErr_CheckSignals() < 0 ? NULL : PyList_GetItem(texts, (Py_ssize_t)search->query);
    if (own == NULL || read_range(start, (Py_ssize_t)search->query, PyList_Size(needles), &search->first, &end) < 0)
        return FAILED;
    if (!PyList_CheckExact(own) || (end - search->first) * PyList_Size(own) > MANY_PAIRS)
        return UNUSUAL;
    fetch_ahead(texts, (Py_ssize_t)search->query + 1);
    Status status = open_texts(&search->needles, needles, search->first, end, isascii);
    if (status == PLAIN)
        status = open_texts(&search->texts, own, 0, PyList_Size(own), isascii);
    if (status == PLAIN)
        status = search_all(search);
    close_texts(&search->needles);
    close_texts(&search->texts);
    return status;
}

PyDoc_STRVAR(find_texts_doc,
    "find_texts(needles, start, texts, first, last, ways)\n--\n\n"
    "The pairs of texts of which one occurs in the other, apart from white space, in the queries from `first` to\n"
    "`last`, as one bytearray: query, number of the needle, rank of the text, and the way. The ways are 1, the needle\n"
    "is in the text, 2, the text is in the needle, and 4, both are blank; `ways` adds those that count.\n\n"
    "None if the data is not plain, has very many pairs, or takes too long to search.");

static PyObject *
find_texts(PyObject *module, PyObject *arguments)
{
    PyObject *needles, *starts, *texts, *result;
    Py_ssize_t first, last;
    Search search = {0};
    if (!PyArg_ParseTuple(arguments, "O!OO!nni:find_texts", &PyList_Type, &needles, &starts, &PyList_Type, &texts,
                          &first, &last, &search.ways))
        return NULL;
    Py_ssize_t queries = PyList_Size(texts);
    if (first < 0 || first > last || last > queries) {
        PyErr_SetString(PyExc_ValueError, "there are no such queries");
        return NULL;
    }
    Py_buffer start;
    if (open_array(starts, &start, queries + 1, INTEGERS, 8, 0) < 0)
        return NULL;
    PyObject *isascii = PyObject_GetAttrString((PyObject *)&PyUnicode_Type, "isascii");
    Status status = isascii == NULL ? FAILED : PLAIN;
    for (search.query = first; status == PLAIN && search.query < last; search.query++)
        status = search_query(&search, needles, texts, &start, isascii);
    result = status == PLAIN ? numbers_in(&search.found) : result_of(status, NULL);
    Py_XDECREF(isascii);
    free(search.needles.all);
    free(search.texts.all);
    free(search.found.numbers);
    PyBuffer_Release(&start);
    return result;
}

/* ---- The module ---- */

static PyMethodDef methods[] = {
    {"find_in_lists", find_in_lists, METH_VARARGS, find_in_lists_doc},
    {"find_in_dicts", find_in_dicts, METH_VARARGS, find_in_dicts_doc},
    {"find_in_column", find_in_column, METH_VARARGS, find_in_column_doc},
    {"changes_in_column", changes_in_column, METH_O, changes_in_column_doc},
    {"best_of_dict", best_of_dict, METH_VARARGS, best_of_dict_doc},
    {"find_texts", find_texts, METH_VARARGS, find_texts_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "native",
    .m_doc = "Loops over the user's items, compiled.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_native(void)
{
    return PyModuleDef_Init(&definition);
}
