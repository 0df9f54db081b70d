/* Number partitioning among identical members: least makespan or spread, with proof. small_groups.py calls it.
 *
 * Sequential number partitioning (Korf 2009) with iterative weakening (Schreiber and Korf 2014). A member takes the
 * largest number left and a subset of the others whose sum lies in its window. The subset is joined from two halves
 * (Horowitz and Sahni 1974). Then the next member takes its numbers. Windows follow from the allowed objective, which
 * is widened until a plan meets it. Of equal numbers the earlier ones are taken first.
 *
 * Among all best plans, the search may look for one with the least sum of squared loads. In such a plan, no two members
 * can bring their loads nearer together by handing over or exchanging a number. This rule excludes most sets that lead
 * to no plan, but also most plans. So a search with the rule and one without it take turns.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define MOST_NUMBERS 64
#define MOST_HALF 32
#define MOST_SUMS ((size_t)1 << 20)
#define UNKNOWN ((int64_t)1 << 62)
#define FIRST_TURN 10000
#define WORK_OF_A_STEP 100000 /* sums computed between two calls of stop */

enum { GO_ON, PAUSED, TOO_WIDE, STOP, FAILED };
enum { TOGETHER, BY_COUNT, BY_LAST }; /* order of subsets: one part, parts by count, or parts by last number */

/* Subsets of half the remaining numbers, in parts. Each part is in ascending order of sums. */
typedef struct {
    int64_t *sums, least[MOST_HALF + 1]; /* smallest number of each part's sets, if parts are by last number */
    uint32_t *sets;
    size_t room, starts[MOST_HALF + 2];
    int parts;
} Half;

/* What is left for a member and those after it. */
typedef struct {
    int64_t sum, low, high, floor; /* sum left; least and greatest load so far; no load may be below floor */
} Left;

typedef struct {
    int numbers, items[MOST_NUMBERS], order; /* order: that of the second half */
    uint64_t taken, set;                     /* taken: places in `items`; set: the items themselves */
    int64_t load;
    int64_t cap;                             /* largest sum that was listed */
    Half halves[2];
} Level;

typedef struct {
    int64_t lags[MOST_NUMBERS];
    int32_t *takers;
    int lower[MOST_NUMBERS]; /* lower: place of the first number that is smaller */
    int members, count_lo, count_hi, counted, spread, strict, found, state;
    long long bound; /* lower bound on every plan */
    int64_t allowed, best;
    int64_t work, turn; /* work left before the next call of stop, and before the other search's turn */
    PyObject *stop;
    Half spare;
    Level *levels;
} Search;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Count work and call stop from time to time. Return 1 to go on. */
static int goes_on(Search *s, size_t work) {
    s->work -= (int64_t)work, s->turn -= (int64_t)work;
    if (s->work > 0 || s->state != GO_ON) return s->state == GO_ON;
    s->work = WORK_OF_A_STEP;
    PyObject *answer = PyObject_CallNoArgs(s->stop);
    const int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    s->state = truth < 0 ? FAILED : truth ? STOP : GO_ON;
    return s->state == GO_ON;
}

static int reserve(Search *s, Half *half, size_t room) {
    if (half->room >= room) return 1;
    free(half->sums), free(half->sets);
    half->room = room, half->sums = malloc(room * sizeof(int64_t)), half->sets = malloc(room * sizeof(uint32_t));
    if (half->sums != NULL && half->sets != NULL) return 1;
    half->room = 0, s->state = FAILED;
    PyErr_NoMemory();
    return 0;
}

/* Merge the sums of a part with those of another part plus a number, in ascending order. Sets of the part must not
 * contain `barred`. Sets of the other part must contain `asked`, unless it is 0. */
static size_t merge(Half *to, size_t at, const Half *from, int part, int other, int64_t number, int64_t cap, uint32_t bit,
                    uint32_t barred, uint32_t asked) {
    size_t a = from->starts[part], b = other < 0 ? 0 : from->starts[other];
    size_t a_end = from->starts[part + 1], b_end = other < 0 ? 0 : from->starts[other + 1];
    while (b_end > b && from->sums[b_end - 1] + number > cap) b_end--;
    for (;;) {
        while (a < a_end && from->sets[a] & barred) a++;
        while (b < b_end && asked && !(from->sets[b] & asked)) b++;
        if (a == a_end && b == b_end) return at;
        if (b == b_end || (a < a_end && from->sums[a] <= from->sums[b] + number))
            to->sums[at] = from->sums[a], to->sets[at++] = from->sets[a++];
        else
            to->sums[at] = from->sums[b] + number, to->sets[at++] = from->sets[b++] | bit;
    }
}

/* List the subsets of a level's numbers in [from, to) with at most `most` numbers and a sum of at most the cap. */
static int list(Search *s, const Level *level, Half *half, int order, int from, int to, int most) {
    if (!reserve(s, half, 16)) return 0;
    half->parts = order == BY_COUNT ? (int)smaller(to - from, most) + 1 : 1;
    half->sums[0] = 0, half->sets[0] = 0, half->starts[0] = 0, half->least[0] = 0;
    for (int part = 1; part <= half->parts; part++) half->starts[part] = 1;
    for (int i = from; i < to; i++) {
        const int place = order == BY_LAST ? to - 1 - (i - from) : i, next = order == BY_LAST ? place + 1 : place - 1;
        const int64_t number = s->lags[level->items[place]];
        const int again = next >= from && next < to && s->lags[level->items[next]] == number;
        const uint32_t bit = (uint32_t)1 << (place - from), twin = again ? (uint32_t)1 << (next - from) : 0;
        Half *out = &s->spare;
        size_t at = 0;
        if (half->starts[half->parts] > MOST_SUMS) s->state = STOP;
        if (s->state != GO_ON || !reserve(s, out, 2 * half->starts[half->parts])) return 0;
        out->parts = half->parts;
        for (int part = 0; part < half->parts; part++) {
            const int other = order == BY_COUNT || (order == BY_LAST && !part) ? part - 1 : part;
            out->starts[part] = at, out->least[part] = half->least[part];
            at = merge(out, at, half, part, other, number, level->cap, bit, order == BY_LAST ? twin : 0,
                       order == BY_LAST ? 0 : twin);
        }
        if (order == BY_LAST && number <= level->cap) {
            out->starts[out->parts] = at, out->least[out->parts++] = number;
            out->sums[at] = number, out->sets[at++] = bit;
        }
        out->starts[out->parts] = at;
        const Half before = *half;
        *half = *out, *out = before;
        if (!goes_on(s, at)) return 0;
    }
    return 1;
}

/* Compute the window of the next member's load; return 0 if it is empty. `first` is the largest number left. */
static int window(const Search *s, const Left *left, int members, int64_t first, int64_t *least, int64_t *most) {
    const int64_t high = larger(left->high, (left->sum + members - 1) / members);
    const int64_t low = smaller(left->low, left->sum / members);
    *least = s->spread ? larger(high - s->allowed, left->floor) : left->floor;
    *most = s->spread ? low + s->allowed : s->allowed;
    if (!s->counted) *most = smaller(*most, low + first);
    *most = smaller(*most, left->sum - (members - 1) * *least);
    *least = larger(*least, left->sum - (members - 1) * *most);
    return *least <= *most && (s->spread ? high - low : high) <= s->allowed;
}

/* Keep the plan in which each member has the numbers of its level, and the last one has the rest. */
static void keep(Search *s, int depth, int64_t low, int64_t high) {
    const int64_t value = s->spread ? high - low : high;
    if (value > s->allowed) return;
    for (int member = 0; member <= depth; member++) {
        const Level *level = &s->levels[member];
        for (int i = 0; i < level->numbers; i++)
            if (member == depth || level->taken >> i & 1) s->takers[level->items[i]] = member;
    }
    if (value - s->bound > (s->allowed - s->bound) * 3 / 4) s->state = TOO_WIDE; /* many plans, so likely better ones too */
    s->found = 1, s->best = value, s->allowed = value - 1;
}

static void fill(Search *s, int depth, Left left);

static int bits(uint64_t set) {
    int count = 0;
    for (; set; set &= set - 1) count++;
    return count;
}

static int lowest(uint64_t set) {
    int place = 0;
    while (!(set >> place & 1)) place++;
    return place;
}

/* Return 1 if the fuller of two members can hand over a number, or exchange a larger for a smaller one, and bring
 * their loads nearer together. */
static int evens_out(const Search *s, const Level *one, const Level *other) {
    const Level *full = one->load > other->load ? one : other, *light = full == one ? other : one;
    const int64_t apart = full->load - light->load;
    const int gives = bits(full->set) > s->count_lo && bits(light->set) < s->count_hi;
    for (uint64_t set = full->set; set; set &= set - 1) {
        const int item = lowest(set), next = s->lower[item];
        if (gives && s->lags[item] && s->lags[item] < apart) return 1;
        const uint64_t below = next < MOST_NUMBERS ? light->set >> next : 0;
        if (below && s->lags[item] - s->lags[next + lowest(below)] < apart) return 1;
    }
    return 0;
}

/* Give a set to a member and continue with the others. */
static void take(Search *s, int depth, uint64_t set, int64_t sum, int64_t without_smallest, Left left) {
    Level *level = &s->levels[depth], *next = &s->levels[depth + 1];
    level->taken = set, level->set = 0, level->load = sum, next->numbers = 0;
    for (int i = 0; i < level->numbers; i++)
        if (set >> i & 1) level->set |= (uint64_t)1 << level->items[i];
        else next->items[next->numbers++] = level->items[i];
    for (int member = 0; s->strict && member < depth; member++)
        if (evens_out(s, &s->levels[member], level)) return;
    left.sum -= sum, left.low = smaller(left.low, sum), left.high = larger(left.high, sum);
    left.floor = larger(left.floor, without_smallest);
    fill(s, depth + 1, left);
}

/* Return the smallest number of a set. */
static int64_t smallest(const Search *s, const Level *level, uint64_t set) {
    int place = 0;
    while (set >>= 1) place++;
    return s->lags[level->items[place]];
}

/* Try all sets from two parts that the next member may take. */
static void join(Search *s, int depth, int part, int other, int middle, const Left *left) {
    Level *level = &s->levels[depth];
    const Half *ones = &level->halves[0], *others = &level->halves[1];
    const int members = s->members - depth;
    const int split = middle > 1 && middle < level->numbers && s->lags[level->items[middle]] == s->lags[level->items[middle - 1]];
    const int64_t first = s->lags[level->items[0]], bottom = smaller(left->low, left->sum / members);
    const size_t begin = others->starts[other];
    size_t end = others->starts[other + 1];
    int64_t least, most;
    if (!goes_on(s, (ones->starts[part + 1] - ones->starts[part]) / 4 + 1)) return;
    if (!window(s, left, members, first, &least, &most)) return;
    for (size_t i = ones->starts[part]; i < ones->starts[part + 1] && end > begin; i++) {
        const int64_t sum = first + ones->sums[i];
        if (level->order == BY_LAST && other) most = smaller(most, bottom + others->least[other]);
        while (end > begin && sum + others->sums[end - 1] > most) end--;
        for (size_t j = end; j > begin && sum + others->sums[j - 1] >= least; j--) {
            const uint64_t set = 1 | (uint64_t)ones->sets[i] << 1 | (uint64_t)others->sets[j - 1] << middle;
            const int64_t whole = sum + others->sums[j - 1], rest = whole - smallest(s, level, set);
            if (split && (set >> middle & 1) && !(set >> (middle - 1) & 1)) continue;
            if (!s->counted && rest > bottom) continue;
            const int64_t allowed = s->allowed;
            take(s, depth, set, whole, s->counted ? 0 : rest, *left);
            if (s->turn < 0 && s->state == GO_ON) s->state = PAUSED;
            if (!goes_on(s, 1)) return;
            if (s->allowed < allowed && !window(s, left, members, first, &least, &most)) return;
        }
    }
}

/* Try all sets that the next member may take. */
static void fill(Search *s, int depth, Left left) {
    Level *level = &s->levels[depth];
    const int numbers = level->numbers, members = s->members - depth, middle = 1 + (numbers - 1) / 2;
    if (members == 1 || !numbers) {
        if (numbers >= members * s->count_lo && numbers <= members * s->count_hi)
            keep(s, depth, smaller(left.low, members > 1 ? 0 : left.sum), larger(left.high, left.sum));
        return;
    }
    const int fewest = (int)larger(s->count_lo, numbers - (members - 1) * s->count_hi);
    const int most_held = (int)smaller(s->count_hi, numbers - (members - 1) * s->count_lo);
    const int64_t first = s->lags[level->items[0]], last = s->lags[level->items[numbers - 1]];
    int64_t least, most;
    if (fewest > most_held || most_held < 1 || !window(s, &left, members, first, &least, &most) || first > most) return;
    const int wide = smaller(left.low, left.sum / members) + last < most;
    const int order = s->counted ? BY_COUNT : wide ? BY_LAST : TOGETHER;
    Half *ones = &level->halves[0], *others = &level->halves[1];
    if (depth || level->cap < most - first || level->order != order) { /* at depth 0 lists are kept */
        level->cap = most - first + (depth ? 0 : most / 4), level->order = order;
        if (!list(s, level, ones, s->counted ? BY_COUNT : TOGETHER, 1, middle, most_held - 1)) return;
        if (!list(s, level, others, order, middle, numbers, most_held - 1)) return;
    }
    for (int part = 0; part < ones->parts; part++)
        for (int other = 0; other < others->parts; other++)
            if (!s->counted || (1 + part + other >= fewest && 1 + part + other <= most_held))
                join(s, depth, part, other, middle, &left);
}

/* Search for a plan within the allowed objective, in turns with and without the rule on pairs of members. */
static void look(Search *s, int64_t total) {
    for (int64_t turn = FIRST_TURN; s->state == GO_ON; turn *= 2) {
        s->strict = !s->strict, s->turn = turn;
        fill(s, 0, (Left){total, UNKNOWN, 0, 0});
        if (s->state != PAUSED) return;
        s->state = GO_ON;
    }
}

/* Widen the allowed objective until there is a plan, and narrow it where plans are many. */
static void deepen(Search *s, int64_t known, int64_t total) {
    for (int64_t step = 0; s->bound < known;) {
        const int64_t pass = s->allowed = smaller(s->bound + step, known - 1);
        look(s, total);
        if (s->state > TOO_WIDE) break;
        if (s->state == TOO_WIDE) {
            s->state = GO_ON, known = s->best, step = (known - s->bound) / 2;
        } else {
            s->bound = s->found && s->best <= pass ? s->best : pass + 1;
            if (s->bound == s->best && s->found) break;
            step = larger(2 * step, 1) + step * 2 / s->members;
        }
    }
}

static void release(Search *s) {
    for (int depth = 0; s->levels != NULL && depth <= s->members; depth++)
        for (int half = 0; half < 2; half++)
            free(s->levels[depth].halves[half].sums), free(s->levels[depth].halves[half].sets);
    free(s->spare.sums), free(s->spare.sets), free(s->levels), free(s->takers);
}

/* Read the numbers, largest first, and allocate memory. Return their sum, or -1 on error. */
static int64_t begin(Search *s, const Py_buffer *lags) {
    int64_t total = 0;
    const int numbers = (int)smaller(lags->len / 8, MOST_NUMBERS + 1);
    int fine = lags->itemsize == 8 && numbers <= MOST_NUMBERS && s->members >= 1;
    for (int i = 0; fine && i < numbers; i++) {
        const int64_t lag = s->lags[i] = ((const int64_t *)lags->buf)[i];
        fine = lag >= 0 && (i == 0 || lag <= s->lags[i - 1]) && lag <= UNKNOWN / s->members - total;
        total += lag;
    }
    if (!fine) {
        PyErr_Format(PyExc_ValueError, "expected at most %d numbers, largest first, and not too large", MOST_NUMBERS);
        return -1;
    }
    s->work = WORK_OF_A_STEP, s->counted = s->count_lo > 0 || s->count_hi < numbers;
    s->levels = calloc((size_t)s->members + 1, sizeof(Level)), s->takers = calloc(MOST_NUMBERS, sizeof(int32_t));
    if (s->levels == NULL || s->takers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    s->levels[0].numbers = numbers, s->levels[0].cap = -1;
    while (!s->counted && s->levels[0].numbers && !s->lags[s->levels[0].numbers - 1]) s->levels[0].numbers--;
    for (int i = numbers - 1; i >= 0; i--) {
        s->levels[0].items[i] = i;
        s->lower[i] = i + 1 == numbers ? MOST_NUMBERS : s->lags[i + 1] < s->lags[i] ? i + 1 : s->lower[i + 1];
    }
    return total;
}

/* Search for a plan with an objective below the best known one. */
static PyObject *partition(PyObject *module, PyObject *args) {
    Search s = {0};
    Py_buffer lags;
    long long known;
    if (!PyArg_ParseTuple(args, "y*iiipLLO", &lags, &s.members, &s.count_lo, &s.count_hi, &s.spread, &s.bound, &known,
                          &s.stop))
        return NULL;
    const int64_t total = begin(&s, &lags);
    PyObject *answer = NULL;
    if (total >= 0) deepen(&s, smaller(known, UNKNOWN), total);
    if (total >= 0 && s.state != FAILED)
        answer = Py_BuildValue("y#LN", s.found ? (char *)s.takers : NULL, lags.len / 8 * sizeof(int32_t), (long long)s.bound,
                               PyBool_FromLong(s.state == GO_ON));
    PyBuffer_Release(&lags);
    release(&s);
    return answer;
}

static PyMethodDef methods[] = {
    {"partition", partition, METH_VARARGS,
     "partition(lags, members, count_lo, count_hi, spread, bound, known, stop) -> takers or None, bound, complete"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_partition", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__partition(void) {
    PyObject *made = PyModule_Create(&definition);
    if (made != NULL && PyModule_AddIntConstant(made, "VERSION", VERSION) < 0) Py_CLEAR(made);
    return made;
}
