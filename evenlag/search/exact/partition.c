/* Number partitioning: least makespan or spread, with proof. small_groups.py calls it.
 *
 * Sequential number partitioning (Korf 2009) with iterative weakening (Schreiber and Korf 2014). A member takes the
 * largest number left and a subset of the others whose sum lies in its window. The subset is joined from two halves
 * (Horowitz and Sahni 1974). Then the next member takes its numbers. Windows follow from the allowed objective, which
 * is widened until a plan meets it. Of equal numbers the earlier ones are taken first.
 *
 * Members of one kind are identical. A sum is of numbers; a load is a sum times the factor of the member's kind, and
 * factor times weight is the same for all kinds. The lightest members take numbers first, as they have the fewest
 * choices: any subset, but in a kind, the largest numbers of the sets descend. If the largest number left exceeds three
 * quarters of the mean load even with a heaviest member, it comes first: a member of each kind takes it in turn.
 *
 * Among all best plans, the search may look for one with the least sum of products of load and sum. In such a plan, no
 * number handed over or exchanged leaves both loads strictly between the former two. This rule excludes most sets that
 * lead to no plan, but also most plans. So a search with the rule and one without it take turns.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 2
#define MOST_NUMBERS 64
#define MOST_KINDS 64
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

/* Members alike, of which `members` have no numbers yet. */
typedef struct {
    int64_t members, factor, weight, count_lo, count_hi, first; /* first: place of the first one among all members */
} Kind;

/* What is left for a member and those after it. */
typedef struct {
    int64_t sum, floor; /* sum left; no load may be below floor */
    int64_t low, high; /* the least load is at most low, and the greatest at least high */
    int64_t members, weight, count_lo, count_hi; /* sums over the members left */
} Left;

typedef struct {
    int numbers, items[MOST_NUMBERS], order, kind;
    int leads, from, middle; /* leads: 1 if the member takes the first number; the halves begin at from and middle */
    int held;                /* most numbers of a set that was listed */
    uint64_t taken, set;     /* taken: places in `items`; set: the items themselves */
    int64_t load, cap;       /* cap: largest sum that was listed */
    Half halves[2];
} Level;

typedef struct {
    int64_t lags[MOST_NUMBERS];
    int32_t *takers;
    int lower[MOST_NUMBERS]; /* lower: place of the first number that is smaller */
    int kinds, counted, spread, strict, found, state;
    Kind kind[MOST_KINDS];
    int64_t members, common, steepest; /* common: factor times weight; steepest: the largest factor */
    long long bound; /* lower bound on every plan */
    int64_t allowed, best;
    int64_t work, turn; /* work left before the next call of stop, and before the other search's turn */
    PyObject *stop;
    Half spare;
    Level *levels;
} Search;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

/* Return the load of each member left if all were equal, rounded down. */
static int64_t mean(const Search *s, const Left *left) { return left->sum * s->common / left->weight; }

/* Return an upper bound on the least load. */
static int64_t low_end(const Search *s, const Left *left) { return smaller(left->low, mean(s, left)); }

/* Return the largest number that the next member may take; 0 if there is none. */
static int64_t largest(const Search *s, const Level *level) {
    const int place = level->from - level->leads;
    return place < level->numbers ? s->lags[level->items[place]] : 0;
}

/* Compute the window of the next member's sum; return 0 if there is none. */
static int window(const Search *s, const Level *level, const Left *left, int64_t *least, int64_t *most) {
    const int64_t low = low_end(s, left), high = larger(left->high, ceiling(left->sum * s->common, left->weight));
    const int64_t bottom = s->spread ? larger(high - s->allowed, left->floor) : left->floor;
    int64_t top = s->spread ? low + s->allowed : s->allowed, needed = 0, room = 0;
    if (!s->counted) top = smaller(top, low + s->lags[level->items[0]] * s->steepest);
    if (bottom > top || (s->spread ? high - low : high) > s->allowed) return 0;
    for (int k = 0; k < s->kinds; k++) needed += s->kind[k].members * ceiling(larger(bottom, 0), s->kind[k].factor);
    if (needed > left->sum) return 0;
    for (int k = 0; k < s->kinds; k++) {
        const int64_t own = ceiling(larger(bottom, 0), s->kind[k].factor);
        const int64_t holds = smaller(top / s->kind[k].factor, left->sum - (needed - own));
        if (s->kind[k].members && own > holds) return 0;
        room += s->kind[k].members * holds;
        if (k == level->kind) *least = own, *most = holds;
    }
    *least = larger(*least, left->sum - (room - *most));
    if (!s->counted) *most = smaller(*most, (low + largest(s, level) * s->steepest) / s->kind[level->kind].factor);
    return *least <= *most;
}

/* Keep the plan in which each member has the numbers of its level, and the last one has the rest. */
static void keep(Search *s, int depth, int64_t low, int64_t high) {
    const int64_t value = s->spread ? high - low : high;
    int64_t used[MOST_KINDS] = {0};
    if (value > s->allowed) return;
    for (int member = 0; member <= depth; member++) {
        const Level *level = &s->levels[member];
        const int64_t taker = s->kind[level->kind].first + used[level->kind]++;
        for (int i = 0; i < level->numbers; i++)
            if (member == depth || level->taken >> i & 1) s->takers[level->items[i]] = (int32_t)taker;
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

/* Return 1 if the fuller of two members can hand over a number, or exchange a larger for a smaller one, so that both
 * loads get strictly between the former two. */
static int evens_out(const Search *s, const Level *one, const Level *other) {
    const Level *full = one->load > other->load ? one : other, *light = full == one ? other : one;
    const Kind *fuller = &s->kind[full->kind], *lighter = &s->kind[light->kind];
    const int64_t apart = ceiling(full->load - light->load, larger(fuller->factor, lighter->factor));
    const int gives = bits(full->set) > fuller->count_lo && bits(light->set) < lighter->count_hi;
    for (uint64_t set = full->set; set; set &= set - 1) {
        const int item = lowest(set), next = s->lower[item];
        if (gives && s->lags[item] && s->lags[item] < apart) return 1;
        const uint64_t below = next < MOST_NUMBERS ? light->set >> next : 0;
        if (below && s->lags[item] - s->lags[next + lowest(below)] < apart) return 1;
    }
    return 0;
}

/* Give a set to the next member and continue with the others. */
static void take(Search *s, int depth, uint64_t set, int64_t load, int64_t without_smallest, Left left) {
    Level *level = &s->levels[depth], *next = &s->levels[depth + 1];
    Kind *of = &s->kind[level->kind];
    level->taken = set, level->set = 0, level->load = load, next->numbers = 0;
    for (int i = 0; i < level->numbers; i++)
        if (set >> i & 1) level->set |= (uint64_t)1 << level->items[i];
        else next->items[next->numbers++] = level->items[i];
    for (int member = 0; s->strict && member < depth; member++)
        if (evens_out(s, &s->levels[member], level)) return;
    left.sum -= load / of->factor, left.low = smaller(left.low, load), left.high = larger(left.high, load);
    left.floor = larger(left.floor, without_smallest);
    left.members--, left.weight -= of->weight, left.count_lo -= of->count_lo, left.count_hi -= of->count_hi;
    of->members--;
    fill(s, depth + 1, left);
    of->members++;
}

/* Return the smallest number of a set; 0 if it is empty. */
static int64_t smallest(const Search *s, const Level *level, uint64_t set) {
    int place = 0;
    if (!set) return 0;
    while (set >>= 1) place++;
    return s->lags[level->items[place]];
}

/* Try all sets from two parts that the next member may take. */
static void join(Search *s, int depth, int part, int other, const Left *left) {
    Level *level = &s->levels[depth];
    const Half *ones = &level->halves[0], *others = &level->halves[1];
    const int from = level->from, middle = level->middle;
    const int64_t factor = s->kind[level->kind].factor, taken = level->leads ? largest(s, level) : 0;
    const int64_t bottom = low_end(s, left);
    const int split = from < middle && middle < level->numbers && s->lags[level->items[middle]] == s->lags[level->items[middle - 1]];
    const size_t begin = others->starts[other];
    size_t end = others->starts[other + 1];
    int64_t least, most;
    if (!goes_on(s, (ones->starts[part + 1] - ones->starts[part]) / 4 + 1)) return;
    if (!window(s, level, left, &least, &most)) return;
    for (size_t i = ones->starts[part]; i < ones->starts[part + 1] && end > begin; i++) {
        const int64_t sum = taken + ones->sums[i];
        if (level->order == BY_LAST && other) most = smaller(most, (bottom + others->least[other] * s->steepest) / factor);
        while (end > begin && sum + others->sums[end - 1] > most) end--;
        for (size_t j = end; j > begin && sum + others->sums[j - 1] >= least; j--) {
            const uint64_t set = level->leads | (uint64_t)ones->sets[i] << from | (uint64_t)others->sets[j - 1] << middle;
            const int64_t load = (sum + others->sums[j - 1]) * factor, rest = load - smallest(s, level, set) * s->steepest;
            if (split && (set >> middle & 1) && !(set >> (middle - 1) & 1)) continue;
            if (!s->counted && rest > bottom) continue;
            const int64_t allowed = s->allowed;
            take(s, depth, set, load, s->counted ? 0 : rest, *left);
            if (s->turn < 0 && s->state == GO_ON) s->state = PAUSED;
            if (!goes_on(s, 1)) return;
            if (s->allowed < allowed && !window(s, level, left, &least, &most)) return;
        }
    }
}

/* Return the first place of the numbers that the next member may take, if it need not take the first one. */
static int start(const Search *s, int depth) {
    const Level *level = &s->levels[depth], *before = level - 1;
    int place = 0;
    if (!depth || before->kind != level->kind) return 0;
    while (place < level->numbers && (!before->set || level->items[place] < lowest(before->set))) place++;
    return place;
}

/* Try all sets that the next member may take if it is of this kind and takes the first number or need not. */
static void try_kind(Search *s, int depth, int of, int leads, const Left *left) {
    Level *level = &s->levels[depth];
    const Kind *kind = &s->kind[of];
    const int numbers = level->numbers;
    const int fewest = (int)larger(kind->count_lo, numbers - (left->count_hi - kind->count_hi));
    const int held = (int)smaller(kind->count_hi, numbers - (left->count_lo - kind->count_lo));
    int64_t least, most;
    level->kind = of, level->leads = leads, level->from = leads ? 1 : start(s, depth);
    level->middle = level->from + (numbers - level->from) / 2;
    const int64_t taken = leads ? largest(s, level) : 0, last = s->lags[level->items[numbers - 1]];
    if (fewest > held || held < leads || !window(s, level, left, &least, &most) || taken > most) return;
    const int wide = low_end(s, left) + last * s->steepest < most * kind->factor;
    const int order = s->counted ? BY_COUNT : wide ? BY_LAST : TOGETHER;
    Half *ones = &level->halves[0], *others = &level->halves[1];
    if (depth || level->cap < most - taken || level->order != order || level->held < held) { /* at depth 0 lists are kept */
        level->cap = most - taken + (depth ? 0 : most / 4), level->order = order, level->held = held;
        if (!list(s, level, ones, s->counted ? BY_COUNT : TOGETHER, level->from, level->middle, held - leads)) return;
        if (!list(s, level, others, order, level->middle, numbers, held - leads)) return;
    }
    for (int part = 0; part < ones->parts; part++)
        for (int other = 0; other < others->parts; other++)
            if (!s->counted || (leads + part + other >= fewest && leads + part + other <= held))
                join(s, depth, part, other, left);
}

/* Try all sets that the next member may take. */
static void fill(Search *s, int depth, Left left) {
    Level *level = &s->levels[depth];
    const int numbers = level->numbers;
    int light = 0, heavy = s->kinds - 1;
    while (!s->kind[light].members) light++;
    while (!s->kind[heavy].members) heavy--;
    if (left.members == 1 || !numbers) {
        const int64_t load = left.sum * s->kind[light].factor;
        level->kind = light;
        if (numbers >= left.count_lo && numbers <= left.count_hi)
            keep(s, depth, smaller(left.low, left.members > 1 ? 0 : load), larger(left.high, load));
        return;
    }
    const int64_t alone = s->lags[level->items[0]] * s->kind[heavy].factor; /* load of the first number where it is least */
    left.high = larger(left.high, alone);
    if (light < heavy && alone <= mean(s, &left) - ceiling(mean(s, &left), 4)) try_kind(s, depth, light, 0, &left);
    else
        for (int kind = heavy; kind >= light; kind--)
            if (s->kind[kind].members) try_kind(s, depth, kind, 1, &left);
}

/* Search for a plan within the allowed objective, in turns with and without the rule on pairs of members. */
static void look(Search *s, const Left *all) {
    for (int64_t turn = FIRST_TURN; s->state == GO_ON; turn *= 2) {
        s->strict = !s->strict, s->turn = turn;
        fill(s, 0, *all);
        if (s->state != PAUSED) return;
        s->state = GO_ON;
    }
}

/* Widen the allowed objective until there is a plan, and narrow it where plans are many. */
static void deepen(Search *s, int64_t known, const Left *all) {
    for (int64_t step = 0; s->bound < known;) {
        const int64_t pass = s->allowed = smaller(s->bound + step, known - 1);
        look(s, all);
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

/* Read the kinds of members, the lightest first. Return 0 on error. */
static int read_kinds(Search *s, const Py_buffer *kinds, Left *all) {
    const int64_t *row = kinds->buf;
    int fine = kinds->itemsize == 8 && kinds->len && kinds->len % 40 == 0 && kinds->len / 40 <= MOST_KINDS;
    for (int k = 0; fine && k < (int)(kinds->len / 40); k++, row += 5) {
        s->kind[s->kinds++] = (Kind){row[0], row[1], row[2], row[3], row[4], s->members};
        s->members += row[0], s->steepest = larger(s->steepest, row[1]), s->common = row[1] * row[2];
        all->weight += row[0] * row[2], all->count_lo += row[0] * row[3], all->count_hi += row[0] * row[4];
        fine = row[0] >= 1 && row[1] >= 1 && row[2] >= 1 && (!k || row[1] <= s->kind[k - 1].factor);
        fine = fine && s->common == s->kind[0].factor * s->kind[0].weight;
    }
    all->members = s->members;
    if (!fine) PyErr_SetString(PyExc_ValueError, "expected rows of members, factor, weight and range of counts, lightest first");
    return fine;
}

/* Read the numbers, largest first, and allocate memory. Return 0 on error. */
static int begin(Search *s, const Py_buffer *lags, Left *all) {
    const int numbers = (int)smaller(lags->len / 8, MOST_NUMBERS + 1);
    int fine = lags->itemsize == 8 && numbers <= MOST_NUMBERS;
    for (int i = 0; fine && i < numbers; i++) {
        const int64_t lag = s->lags[i] = ((const int64_t *)lags->buf)[i];
        fine = lag >= 0 && (i == 0 || lag <= s->lags[i - 1]) && lag <= UNKNOWN / s->members / s->common - all->sum;
        all->sum += lag;
    }
    if (!fine) {
        PyErr_Format(PyExc_ValueError, "expected at most %d numbers, largest first, and not too large", MOST_NUMBERS);
        return 0;
    }
    for (int k = 0; k < s->kinds; k++) s->counted |= s->kind[k].count_lo > 0 || s->kind[k].count_hi < numbers;
    s->work = WORK_OF_A_STEP;
    s->levels = calloc((size_t)s->members + 1, sizeof(Level)), s->takers = calloc(MOST_NUMBERS, sizeof(int32_t));
    if (s->levels == NULL || s->takers == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    s->levels[0].numbers = numbers, s->levels[0].cap = -1;
    while (!s->counted && s->levels[0].numbers && !s->lags[s->levels[0].numbers - 1]) s->levels[0].numbers--;
    for (int i = numbers - 1; i >= 0; i--) {
        s->levels[0].items[i] = i;
        s->lower[i] = i + 1 == numbers ? MOST_NUMBERS : s->lags[i + 1] < s->lags[i] ? i + 1 : s->lower[i + 1];
    }
    return 1;
}

/* Search for a plan with an objective below the best known one. */
static PyObject *partition(PyObject *module, PyObject *args) {
    Search s = {0};
    Left all = {0};
    Py_buffer lags, kinds;
    long long known;
    if (!PyArg_ParseTuple(args, "y*y*pLLLLO", &lags, &kinds, &s.spread, &all.high, &all.low, &s.bound, &known, &s.stop))
        return NULL;
    PyObject *answer = NULL;
    const int fine = read_kinds(&s, &kinds, &all) && begin(&s, &lags, &all);
    if (fine) deepen(&s, smaller(known, UNKNOWN), &all);
    if (fine && s.state != FAILED)
        answer = Py_BuildValue("y#LN", s.found ? (char *)s.takers : NULL, lags.len / 8 * sizeof(int32_t), (long long)s.bound,
                               PyBool_FromLong(s.state == GO_ON));
    PyBuffer_Release(&lags), PyBuffer_Release(&kinds);
    release(&s);
    return answer;
}

static PyMethodDef methods[] = {
    {"partition", partition, METH_VARARGS,
     "partition(lags, kinds, spread, high, low, bound, known, stop) -> takers or None, bound, complete"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_partition", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__partition(void) {
    PyObject *made = PyModule_Create(&definition);
    if (made != NULL && PyModule_AddIntConstant(made, "VERSION", VERSION) < 0) Py_CLEAR(made);
    return made;
}
