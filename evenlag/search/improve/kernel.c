/* Compiled form of exchanges.py: same names, same results to the last bit. kernel.py decides when it is used.
 *
 * Floats are summed in the same order as there and never fused (-ffp-contract=off), so that all compilers round
 * alike. SearchState.dtype keeps integers below 2^62.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define VERSION 3
#define NO_LIMIT ((int64_t)1 << 62)
#define NOBODY (-1)
#define LEAST_GAIN 1e-9
#define FREE 1e6
#define GOLDEN 0x9E3779B97F4A7C15ULL
#define MIX_ROW 0xBF58476D1CE4E5B9ULL
#define MIX_BOTH 0x94D049BB133111EBULL
#define NAME "evenlag.kernel"

enum {
    TABLE, LOADS, FACTORS, LOWS, HIGHS, WEIGHTS, UNITS, ITEMS, STARTS, MEMBER_OF, OWNER, TOPIC_OF, ALLOWED,
    COUNTS, COUNT_LO, COUNT_HI, RANK_BASE, RANK_STEPS, TOPIC_COUNTS, TOPIC_LO, TOPIC_HI, SUMS, COSTS, FIRST_COST,
    CLASS_OF, HOME, AT_HOME, USED, BUDGETS, PAIR_PRICES, RATES, ACTIVE, ARRAYS
};

/* Size of an entry of each array in bytes; 1 in `changed` if calls write to the array. */
static const int entry_of[ARRAYS] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 1, 8, 8, 8,
                                     8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 8, 8, 8, 8, 8, 8};
static const int changed[ARRAYS] = {0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0,
                                    0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};

typedef struct {
    Py_buffer views[ARRAYS];
    int64_t P, M, S, T, K, A;
    const int64_t *table, *factors, *lows, *highs, *units, *count_lo, *count_hi, *rank_base, *rank_steps;
    const int64_t *topic_lo, *topic_hi, *costs, *first_cost, *class_of, *at_home, *budgets, *pair_prices, *active;
    int64_t *loads, *items, *starts, *counts, *topic_counts, *sums, *used;
    int32_t *member_of;
    const int32_t *owner, *topic_of, *home;
    const uint8_t *allowed;
    const double *weights, *rates;
    int by_topic, ranked, topics, worst_counts, spread;
    int64_t topic_distance, rank_total, unit, move_price, ceiling;
} State;

/* Effect of giving one partition to the other member of a pair on counts, moves and costs; the last entry: none. */
typedef struct {
    int64_t id, off, moves;
    const int64_t *lags;
    int64_t *costs;
    int32_t topic;
    uint8_t fits;
} Side;

static State *state_of(PyObject *capsule) { return (State *)PyCapsule_GetPointer(capsule, NAME); }

static void release(PyObject *capsule) {
    State *s = state_of(capsule);
    if (s == NULL) return;
    for (int i = 0; i < ARRAYS; i++) PyBuffer_Release(&s->views[i]);
    free(s);
}

static int64_t length(const State *s, int i) { return (int64_t)(s->views[i].len / entry_of[i]); }

/* Return 1 if the sizes of the arrays are consistent, so that no loop leaves them. */
static int consistent(State *s) {
    s->P = length(s, OWNER), s->M = length(s, FACTORS), s->S = length(s, WEIGHTS), s->K = length(s, RATES);
    s->A = length(s, ACTIVE);
    int64_t free_ones = length(s, ITEMS), cells = length(s, TOPIC_COUNTS);
    if (s->M < 1 || s->S < 1 || cells % s->M) return 0;
    s->T = cells / s->M;
    s->ranked = length(s, RANK_BASE) > 0, s->topics = length(s, TOPIC_LO) > 0;
    int64_t wanted[ARRAYS] = {
        (s->P + 1) * s->S, s->M * s->S, s->M, s->S, s->S, s->S, s->S, free_ones, s->M + 1, s->P, s->P, s->P, cells,
        s->M, s->M, s->M, s->ranked * s->M, 2 * s->ranked * s->M, cells, s->topics * cells, s->topics * cells, 3,
        length(s, COSTS), s->K + 1, s->K * s->M, s->K * s->P, s->K * s->P, s->K, s->K, s->K, s->K, s->A};
    for (int i = 0; i < ARRAYS; i++)
        if (length(s, i) != wanted[i]) return 0;
    const int64_t *starts = s->views[STARTS].buf, *items = s->views[ITEMS].buf, *active = s->views[ACTIVE].buf;
    const int32_t *topic_of = s->views[TOPIC_OF].buf;
    for (int64_t m = 0; m < s->M; m++)
        if (starts[m] > starts[m + 1]) return 0;
    if (starts[0] != 0 || starts[s->M] != free_ones) return 0;
    for (int64_t i = 0; i < free_ones; i++)
        if (items[i] < 0 || items[i] >= s->P) return 0;
    for (int64_t p = 0; p < s->P; p++)
        if (topic_of[p] < 0 || topic_of[p] >= s->T) return 0;
    for (int64_t i = 0; i < s->A; i++)
        if (active[i] < 0 || active[i] >= s->M) return 0;
    const int64_t *first = s->views[FIRST_COST].buf, *class_of = s->views[CLASS_OF].buf;
    if (first[0] != 0 || first[s->K] * s->P != length(s, COSTS)) return 0;
    for (int64_t k = 0; k < s->K; k++)
        for (int64_t m = 0; m < s->M; m++)
            if (class_of[k * s->M + m] < 0 || class_of[k * s->M + m] >= first[k + 1] - first[k]) return 0;
    return 1;
}

static PyObject *prepare(PyObject *module, PyObject *args) {
    PyObject *arrays;
    int by_topic, worst_counts, spread;
    long long topic_distance, rank_total, unit, move_price, ceiling;
    if (!PyArg_ParseTuple(args, "O!pLLLLLpp", &PyTuple_Type, &arrays, &by_topic, &topic_distance, &rank_total, &unit,
                          &move_price, &ceiling, &worst_counts, &spread))
        return NULL;
    if (PyTuple_Size(arrays) != ARRAYS) return PyErr_Format(PyExc_ValueError, "expected %d arrays", ARRAYS);
    State *s = calloc(1, sizeof(State));
    if (s == NULL) return PyErr_NoMemory();
    int got = 0;
    for (; got < ARRAYS; got++) {
        int flags = changed[got] ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, got), &s->views[got], flags) < 0) break;
        if (s->views[got].itemsize != entry_of[got]) {
            PyErr_Format(PyExc_ValueError, "array %d has entries of %zd bytes", got, s->views[got].itemsize);
            got++;
            break;
        }
    }
    if (got == ARRAYS && !PyErr_Occurred() && !consistent(s))
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit one another");
    if (PyErr_Occurred()) {
        while (got--) PyBuffer_Release(&s->views[got]);
        free(s);
        return NULL;
    }
    s->table = s->views[TABLE].buf, s->loads = s->views[LOADS].buf, s->factors = s->views[FACTORS].buf;
    s->lows = s->views[LOWS].buf, s->highs = s->views[HIGHS].buf, s->weights = s->views[WEIGHTS].buf;
    s->units = s->views[UNITS].buf, s->items = s->views[ITEMS].buf, s->starts = s->views[STARTS].buf;
    s->member_of = s->views[MEMBER_OF].buf, s->owner = s->views[OWNER].buf, s->topic_of = s->views[TOPIC_OF].buf;
    s->allowed = s->views[ALLOWED].buf, s->counts = s->views[COUNTS].buf, s->count_lo = s->views[COUNT_LO].buf;
    s->count_hi = s->views[COUNT_HI].buf, s->rank_base = s->views[RANK_BASE].buf;
    s->rank_steps = s->views[RANK_STEPS].buf, s->topic_counts = s->views[TOPIC_COUNTS].buf;
    s->topic_lo = s->views[TOPIC_LO].buf, s->topic_hi = s->views[TOPIC_HI].buf, s->sums = s->views[SUMS].buf;
    s->first_cost = s->views[FIRST_COST].buf, s->class_of = s->views[CLASS_OF].buf;
    s->home = s->views[HOME].buf, s->at_home = s->views[AT_HOME].buf;
    s->costs = s->views[COSTS].buf, s->used = s->views[USED].buf, s->budgets = s->views[BUDGETS].buf;
    s->pair_prices = s->views[PAIR_PRICES].buf, s->rates = s->views[RATES].buf, s->active = s->views[ACTIVE].buf;
    s->by_topic = by_topic, s->worst_counts = worst_counts, s->spread = spread, s->topic_distance = topic_distance;
    s->rank_total = rank_total, s->unit = unit, s->move_price = move_price, s->ceiling = ceiling;
    PyObject *capsule = PyCapsule_New(s, NAME, release);
    if (capsule == NULL) {
        for (int i = 0; i < ARRAYS; i++) PyBuffer_Release(&s->views[i]);
        free(s);
    }
    return capsule;
}

/* ---- counts and costs ------------------------------------------------------------------------------------------- */

static int64_t outside(int64_t count, int64_t lo, int64_t hi) {
    return count < lo ? lo - count : count > hi ? count - hi : 0;
}

/* Return the change in the distance of a topic count from its bounds when it changes by `step`. */
static int64_t off(const State *s, int64_t topic, int64_t m, int step) {
    int64_t at = topic * s->M + m, lo = s->topic_lo[at], hi = s->topic_hi[at], count = s->topic_counts[at];
    return outside(count + step, lo, hi) - outside(count, lo, hi);
}

static int64_t rank_cost(const State *s, int64_t m) {
    int64_t over = s->counts[m] - s->rank_base[m];
    return (over >= 1 ? s->rank_steps[m] : 0) + (over >= 2 ? s->rank_steps[s->M + m] : 0);
}

static int may_shift(const State *s, int64_t source, int64_t target) {
    if (s->counts[source] <= s->count_lo[source] || s->counts[target] >= s->count_hi[target]) return 0;
    if (!s->ranked) return 1;
    int64_t saved = s->rank_steps[s->counts[source] - s->rank_base[source] >= 2 ? s->M + source : source];
    int64_t added = s->rank_steps[s->counts[target] - s->rank_base[target] <= 0 ? target : s->M + target];
    return s->sums[2] - saved + added <= s->rank_total;
}

/* Return the k-th cost of a pair: that of the member's class, or less at home. */
static int64_t pair_cost(const State *s, int64_t k, int64_t p, int64_t m) {
    if (s->home[k * s->P + p] == m) return s->at_home[k * s->P + p];
    const int64_t first = s->first_cost[k], width = s->first_cost[k + 1] - first;
    return s->costs[first * s->P + p * width + s->class_of[k * s->M + m]];
}

/* Add the changes of the number of moves and of each cost when a partition goes to another member. */
static void add_changes(const State *s, int64_t p, int64_t source, int64_t target, int64_t *moves, int64_t *costs) {
    *moves += (s->owner[p] == source) - (s->owner[p] == target);
    for (int64_t k = 0; k < s->K; k++) costs[k] += pair_cost(s, k, p, target) - pair_cost(s, k, p, source);
}

/* List the partitions that one member may give to another, and none as the last entry. */
static int64_t fill(const State *s, Side *side, int64_t source, int64_t target, int nothing_fits, int64_t width,
                    uint64_t seed) {
    int64_t first = s->starts[source], size = s->starts[source + 1] - first, n = size < width ? size : width;
    int64_t from = size ? (int64_t)(seed % (uint64_t)size) : 0;
    for (int64_t i = 0; i <= n; i++) {
        side[i].moves = 0;
        for (int64_t k = 0; k < s->K; k++) side[i].costs[k] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t p = s->items[first + (size > width ? (i * size + from) / width : i)], topic = s->topic_of[p];
        side[i].id = p, side[i].topic = (int32_t)topic, side[i].lags = s->table + p * s->S;
        side[i].fits = s->allowed[topic * s->M + target];
        side[i].off = s->by_topic ? off(s, topic, source, -1) + off(s, topic, target, 1) : 0;
        add_changes(s, p, source, target, &side[i].moves, side[i].costs);
    }
    side[n].id = NOBODY, side[n].off = 0, side[n].lags = s->table + s->P * s->S;
    side[n].topic = -1, side[n].fits = (uint8_t)nothing_fits;
    return n + 1;
}

/* Return the length of the longest list of a member. */
static int64_t longest(const State *s) {
    int64_t most = 0;
    for (int64_t m = 0; m < s->M; m++)
        if (s->starts[m + 1] - s->starts[m] > most) most = s->starts[m + 1] - s->starts[m];
    return most + 1;
}

/* Return 1 if an exchange keeps counts and the budgets of moves and pairs. */
static int keeps(const State *s, const Side *give, const Side *take, int64_t room, int64_t moves_left) {
    if (!give->fits || !take->fits || (give->id == NOBODY && take->id == NOBODY)) return 0;
    if (s->by_topic && give->topic != take->topic && give->off + take->off > room) return 0;
    if (give->moves + take->moves > moves_left) return 0;
    for (int64_t k = 0; k < s->K; k++) {
        int64_t left = s->budgets[k] - s->used[k];
        if (give->costs[k] + take->costs[k] > (left > 0 ? left : 0)) return 0;
    }
    return 1;
}

static int within_ceiling(const State *s, int64_t now, int64_t then) {
    return s->ceiling >= NO_LIMIT || then <= (now > s->ceiling ? now : s->ceiling);
}

/* ---- arguments of an evaluator ---------------------------------------------------------------------------------- */

typedef struct {
    State *s;
    Py_buffer others;
    int64_t count, a;
    const int64_t *members;
    Side *ours, *theirs;
} Call;

static int begin(Call *call, PyObject *capsule, long long me, PyObject *others, int64_t width) {
    State *s = state_of(capsule);
    if (s == NULL || width < 1) {
        if (s != NULL) PyErr_SetString(PyExc_ValueError, "width must be at least 1");
        return 0;
    }
    if (PyObject_GetBuffer(others, &call->others, PyBUF_CONTIG_RO) < 0) return 0;
    call->s = s, call->a = me, call->members = call->others.buf, call->count = call->others.len / 8;
    int fine = call->others.itemsize == 8 && me >= 0 && me < s->M;
    for (int64_t i = 0; fine && i < call->count; i++)
        fine = call->members[i] >= 0 && call->members[i] < s->M && call->members[i] != me;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "members must be others of the state");
    } else {
        const int64_t most = longest(s);
        call->ours = malloc(2 * (size_t)most * (sizeof(Side) + (size_t)s->K * sizeof(int64_t)));
        if (call->ours != NULL) {
            int64_t *costs = (int64_t *)(call->ours + 2 * most);
            for (int64_t i = 0; i < 2 * most; i++) call->ours[i].costs = costs + i * s->K;
            call->theirs = call->ours + most;
            return 1;
        }
        PyErr_NoMemory();
    }
    PyBuffer_Release(&call->others);
    return 0;
}

static void end(Call *call) {
    free(call->ours);
    PyBuffer_Release(&call->others);
}

/* ---- by distance ------------------------------------------------------------------------------------------------ */

static double distance(int64_t load, int64_t low, int64_t high) {
    return load < low ? (double)(low - load) : load > high ? (double)(load - high) : 0.0;
}

static double drawn(int64_t give, int64_t take, int64_t holder, uint64_t seed) {
    uint64_t row = (uint64_t)(give + 2) * GOLDEN + seed;
    uint64_t column = (uint64_t)(take + 2) * MIX_ROW + (uint64_t)holder;
    uint64_t mixed = (row ^ (column * GOLDEN)) * MIX_BOTH;
    mixed = (mixed ^ (mixed >> 29)) * MIX_ROW;
    return (double)(mixed >> 11) * 0x1p-53;
}

static PyObject *by_distance(PyObject *module, PyObject *args) {
    PyObject *capsule, *others;
    long long me, moves_left, width;
    unsigned long long seed;
    double budget, per_move, noise;
    int roots, careful;
    if (!PyArg_ParseTuple(args, "OLOLddLKidp", &capsule, &me, &others, &moves_left, &budget, &per_move, &width, &seed,
                          &roots, &noise, &careful))
        return NULL;
    Call call;
    if (!begin(&call, capsule, me, others, width)) return NULL;
    const State *s = call.s;
    const int64_t a = call.a, S = s->S, room = s->topic_distance - s->sums[1];
    double best = 0, best_cost = 0;
    int64_t best_row = -1, best_give = 0, best_take = 0, best_other = 0;
    for (int64_t o = 0; o < call.count; o++) {
        const int64_t b = call.members[o];
        const int64_t rows = fill(s, call.ours, a, b, may_shift(s, b, a), INT32_MAX, 0);
        const int64_t columns = fill(s, call.theirs, b, a, may_shift(s, a, b), width, seed);
        const int64_t *load_a = s->loads + a * S, *load_b = s->loads + b * S, fa = s->factors[a], fb = s->factors[b];
        double inside = 0; /* weighted sum of the squared distances of both members */
        for (int64_t t = 0; t < S; t++) {
            const double now_a = distance(load_a[t], s->lows[t], s->highs[t]);
            const double now_b = distance(load_b[t], s->lows[t], s->highs[t]);
            inside = inside + s->weights[t] * (now_a * now_a + now_b * now_b);
        }
        for (int64_t i = 0; i < rows; i++) {
            const Side *give = &call.ours[i];
            if (!give->fits) continue;
            for (int64_t j = 0; j < columns; j++) {
                const Side *take = &call.theirs[j];
                if (S == 1) { /* most exchanges gain nothing: test that first */
                    const int64_t delta = *take->lags - *give->lags;
                    const double mine = distance(*load_a + delta * fa, *s->lows, *s->highs);
                    const double other = distance(*load_b - delta * fb, *s->lows, *s->highs);
                    if (!(*s->weights * ((inside - mine * mine) - other * other) > LEAST_GAIN * inside)) continue;
                }
                if (!keeps(s, give, take, room, moves_left)) continue;
                double gain = 0, before = 0;
                int fits = 1;
                for (int64_t t = 0; t < S && fits; t++) {
                    const int64_t delta = take->lags[t] - give->lags[t];
                    const int64_t new_a = load_a[t] + delta * fa, new_b = load_b[t] - delta * fb;
                    const double now_a = distance(load_a[t], s->lows[t], s->highs[t]);
                    const double now_b = distance(load_b[t], s->lows[t], s->highs[t]);
                    const double mine = distance(new_a, s->lows[t], s->highs[t]);
                    const double other = distance(new_b, s->lows[t], s->highs[t]);
                    const double both = now_a * now_a + now_b * now_b;
                    gain = gain + s->weights[t] * ((both - mine * mine) - other * other);
                    before = before + s->weights[t] * both;
                    fits = within_ceiling(s, load_a[t], new_a) && within_ceiling(s, load_b[t], new_b) &&
                           !(careful && other > now_b);
                }
                if (!fits || !(gain > LEAST_GAIN * before)) continue;
                double cost = per_move * (double)(give->moves + take->moves);
                for (int64_t k = 0; k < s->K; k++)
                    cost = cost + s->rates[k] * (double)(give->costs[k] + take->costs[k]);
                if (!(cost <= budget)) continue;
                double worth = gain * FREE;
                if (cost > 0) {
                    double root = cost > 1.0 ? cost : 1.0;
                    for (int r = 0; roots < 3 && r < roots; r++) root = sqrt(root);
                    worth = roots > 2 ? gain : gain / root;
                }
                if (noise != 0) worth = worth * ((1.0 - noise) + drawn(give->id, take->id, b, seed) * (2.0 * noise));
                if (best_row < 0 || worth > best || (worth == best && i < best_row)) {
                    best = worth, best_cost = cost, best_row = i;
                    best_give = give->id, best_take = take->id, best_other = b;
                }
            }
        }
    }
    end(&call);
    if (best_row < 0) Py_RETURN_NONE;
    return Py_BuildValue("LLLd", (long long)best_other, (long long)best_give, (long long)best_take, best_cost);
}

/* ---- by the objective ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t high, next_high, low, next_low, top, bottom; /* over all members but one; holders of the extremes */
} Extremes;

static void extremes(const State *s, int64_t a, Extremes *ends) {
    for (int64_t t = 0; t < s->S; t++) {
        Extremes e = {-NO_LIMIT, -NO_LIMIT, NO_LIMIT, NO_LIMIT, NOBODY, NOBODY};
        for (int64_t i = 0; i < s->A; i++) {
            const int64_t m = s->active[i];
            if (m == a) continue;
            const int64_t load = s->loads[m * s->S + t];
            if (load > e.high) e.next_high = e.high, e.high = load, e.top = m;
            else if (load > e.next_high) e.next_high = load;
            if (load < e.low) e.next_low = e.low, e.low = load, e.bottom = m;
            else if (load < e.next_low) e.next_low = load;
        }
        ends[t] = e;
    }
}

/* Add the spread (or highest load) of scenario t to the worst or the priced sum of those before it. */
static int64_t put_together(const State *s, int64_t all, int64_t value, int64_t t) {
    if (!s->worst_counts) return all + value * s->units[t];
    return t == 0 || value > all ? value : all;
}

static PyObject *by_objective(PyObject *module, PyObject *args) {
    PyObject *capsule, *others;
    long long me, moves_left;
    if (!PyArg_ParseTuple(args, "OLOL", &capsule, &me, &others, &moves_left)) return NULL;
    Call call;
    if (!begin(&call, capsule, me, others, 1)) return NULL;
    const State *s = call.s;
    const int64_t a = call.a, S = s->S, room = s->topic_distance - s->sums[1];
    Extremes *ends = malloc((size_t)S * sizeof(Extremes));
    if (ends == NULL) {
        end(&call);
        return PyErr_NoMemory();
    }
    extremes(s, a, ends);
    const int64_t *load_a = s->loads + a * S, fa = s->factors[a], scale = s->worst_counts ? s->unit : 1;
    int64_t now = 0;
    for (int64_t t = 0; t < S; t++) {
        const int64_t high = load_a[t] > ends[t].high ? load_a[t] : ends[t].high;
        const int64_t low = load_a[t] < ends[t].low ? load_a[t] : ends[t].low;
        now = put_together(s, now, s->spread ? high - low : high, t);
    }
    int64_t best = 0, best_moves = 0, best_row = -1, best_give = 0, best_take = 0, best_other = 0;
    double best_uneven = 0;
    for (int64_t o = 0; o < call.count; o++) {
        const int64_t b = call.members[o];
        const int64_t rows = fill(s, call.ours, a, b, may_shift(s, b, a), INT32_MAX, 0);
        const int64_t columns = fill(s, call.theirs, b, a, may_shift(s, a, b), INT32_MAX, 0);
        const int64_t *load_b = s->loads + b * S, fb = s->factors[b];
        for (int64_t i = 0; i < rows; i++) {
            const Side *give = &call.ours[i];
            if (!give->fits) continue;
            for (int64_t j = 0; j < columns; j++) {
                const Side *take = &call.theirs[j];
                if (!keeps(s, give, take, room, moves_left)) continue;
                int64_t then = 0, moves = give->moves + take->moves;
                double uneven = 0;
                int fits = 1;
                for (int64_t t = 0; t < S && fits; t++) {
                    const int64_t gone = give->lags[t] - take->lags[t];
                    const int64_t new_a = load_a[t] - gone * fa, new_b = load_b[t] + gone * fb;
                    int64_t high = new_a > new_b ? new_a : new_b, low = new_a > new_b ? new_b : new_a;
                    const int64_t above = ends[t].top == b ? ends[t].next_high : ends[t].high;
                    const int64_t below = ends[t].bottom == b ? ends[t].next_low : ends[t].low;
                    high = high > above ? high : above, low = low < below ? low : below;
                    then = put_together(s, then, s->spread ? high - low : high, t);
                    const int64_t slope = (fa + fb) * gone - 2 * (load_a[t] - load_b[t]);
                    uneven = uneven + s->weights[t] * ((double)gone * (double)slope);
                    fits = within_ceiling(s, load_a[t], new_a) && within_ceiling(s, load_b[t], new_b);
                }
                if (!fits) continue;
                int64_t change = s->move_price * moves + (s->unit ? scale * (then - now) : 0);
                for (int64_t k = 0; k < s->K; k++) change += s->pair_prices[k] * (give->costs[k] + take->costs[k]);
                const int order = best_row < 0           ? -1
                                  : change != best       ? (change < best ? -1 : 1)
                                  : uneven != best_uneven ? (uneven < best_uneven ? -1 : 1)
                                  : moves != best_moves  ? (moves < best_moves ? -1 : 1)
                                                         : (i < best_row ? -1 : 1);
                if (order < 0) {
                    best = change, best_uneven = uneven, best_moves = moves, best_row = i;
                    best_give = give->id, best_take = take->id, best_other = b;
                }
            }
        }
    }
    free(ends);
    end(&call);
    if (best_row < 0 || best > 0) Py_RETURN_NONE;
    if (best == 0 && (best_uneven > 0 || (best_uneven == 0 && best_moves >= 0))) Py_RETURN_NONE;
    return Py_BuildValue("LLLL", (long long)best_other, (long long)best_give, (long long)best_take, (long long)best);
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static int64_t place_of(const State *s, int64_t m, int64_t p) {
    for (int64_t i = s->starts[m]; i < s->starts[m + 1]; i++)
        if (s->items[i] == p) return i;
    return -1;
}

/* Move the item at a position from the source's part to the end of the target's. */
static void shift(State *s, int64_t source, int64_t target, int64_t at) {
    const int64_t item = s->items[at];
    int64_t last;
    if (source < target) {
        last = s->starts[target + 1] - 1;
        for (int64_t i = at; i < last; i++) s->items[i] = s->items[i + 1];
        for (int64_t m = source + 1; m <= target; m++) s->starts[m]--;
    } else {
        last = s->starts[target + 1];
        for (int64_t i = at; i > last; i--) s->items[i] = s->items[i - 1];
        for (int64_t m = target + 1; m <= source; m++) s->starts[m]++;
    }
    s->items[last] = item;
}

static void account(State *s, int64_t p, int64_t source, int64_t target) {
    const int64_t S = s->S, topic = s->topic_of[p], *lags = s->table + p * S;
    s->member_of[p] = (int32_t)target;
    for (int64_t t = 0; t < S; t++) {
        s->loads[source * S + t] -= lags[t] * s->factors[source];
        s->loads[target * S + t] += lags[t] * s->factors[target];
    }
    if (s->ranked) s->sums[2] -= rank_cost(s, source) + rank_cost(s, target);
    s->counts[source]--, s->counts[target]++;
    if (s->ranked) s->sums[2] += rank_cost(s, source) + rank_cost(s, target);
    if (s->topics && s->topic_distance) s->sums[1] += off(s, topic, source, -1) + off(s, topic, target, 1);
    s->topic_counts[topic * s->M + source]--, s->topic_counts[topic * s->M + target]++;
    add_changes(s, p, source, target, &s->sums[0], s->used);
}

/* Carry out an exchange of items at these positions; -1: no item. */
static void carry_out(State *s, int64_t a, int64_t b, int64_t of_a, int64_t of_b) {
    const int64_t p = of_a >= 0 ? s->items[of_a] : NOBODY, q = of_b >= 0 ? s->items[of_b] : NOBODY;
    if (of_a >= 0 && of_b >= 0) s->items[of_a] = q, s->items[of_b] = p;
    else if (of_a >= 0) shift(s, a, b, of_a);
    else shift(s, b, a, of_b);
    if (of_a >= 0) account(s, p, a, b);
    if (of_b >= 0) account(s, q, b, a);
}

static PyObject *exchange(PyObject *module, PyObject *args) {
    PyObject *capsule;
    long long a, b, p, q;
    if (!PyArg_ParseTuple(args, "OLLLL", &capsule, &a, &b, &p, &q)) return NULL;
    State *s = state_of(capsule);
    if (s == NULL) return NULL;
    const int members = a >= 0 && a < s->M && b >= 0 && b < s->M && a != b;
    const int64_t of_a = members && p != NOBODY ? place_of(s, a, p) : -1;
    const int64_t of_b = members && q != NOBODY ? place_of(s, b, q) : -1;
    if (!members || (p != NOBODY && of_a < 0) || (q != NOBODY && of_b < 0) || (p == NOBODY && q == NOBODY))
        return PyErr_Format(PyExc_ValueError, "no exchange of %lld of %lld and %lld of %lld", p, a, q, b);
    carry_out(s, a, b, of_a, of_b);
    Py_RETURN_NONE;
}

/* ---- annealing: annealing.py explains it ------------------------------------------------------------------------ */

#define STEPS_OF_A_SHIFT 256 /* proposals between two shifts of a window */
#define LONGEST_SHIFT 0.1    /* share of the width */
#define NARROWER 0.999       /* width of the next window, compared with the range of the new best plan's loads */
#define LN2 0.69314718055994531

enum { ANYWHERE, ITS_HOME, MOVED, WAYS };               /* where an exchange takes the other partition from */
static const int share_of[WAYS + 1] = {25, 35, 20, 20}; /* of each way, in hundredths; the last: moved with any other */

typedef struct {
    State *s;
    double *low, *width, heat;     /* windows; length in loads of a likely worsening */
    int64_t *limits, *spent;       /* of moves, each cost, and all prices together, with what the assignment spends */
    const double *rates;           /* weight of a unit beyond a limit */
    int64_t best, *moved, *at, moved_ones; /* value of the best plan; partitions away from their owner */
    int32_t *best_of;
    uint64_t word;
} Annealing;

static uint64_t draw(Annealing *x) {
    x->word ^= x->word >> 12, x->word ^= x->word << 25, x->word ^= x->word >> 27;
    return x->word * 0x2545F4914F6CDD1DULL;
}

static int64_t below(Annealing *x, int64_t n) { return (int64_t)(((draw(x) >> 32) * (uint64_t)n) >> 32); }

/* Return a number drawn from the exponential distribution. Every machine rounds the polynomial for the logarithm
 * (Abramowitz and Stegun 4.1.44) alike. */
static double waiting(Annealing *x) {
    static const double of[] = {0.9999964239, -0.4998741238, 0.3317990258, -0.2407338084,
                                0.1676540711, -0.0953293897, 0.0360884937, -0.0064535442};
    uint64_t bits = draw(x) | 1;
    double halved = LN2, sum = 0;
    for (; !(bits >> 63); bits <<= 1) halved += LN2;
    const double rest = (double)((bits << 1) >> 12) * 0x1p-52;
    for (int i = 7; i >= 0; i--) sum = (sum + of[i]) * rest;
    return halved - sum;
}

static double outside_of(const Annealing *x, int64_t t, int64_t load) {
    const double over = (double)load - x->low[t];
    return over < 0 ? -over : over > x->width[t] ? over - x->width[t] : 0;
}

static double squares(const Annealing *x, int64_t t, int64_t one, int64_t other) {
    const double a = outside_of(x, t, one), b = outside_of(x, t, other);
    return a * a + b * b;
}

/* Return the change of the penalty for what exceeds a limit. */
static double penalty(const Annealing *x, int64_t k, int64_t change) {
    const int64_t now = x->spent[k] - x->limits[k], then = now + change;
    return x->rates[k] * ((double)(then > 0 ? then : 0) - (double)(now > 0 ? now : 0));
}

static int64_t price_of(const State *s, const int64_t *changes) {
    int64_t price = s->move_price * changes[0];
    for (int64_t k = 0; k < s->K; k++) price += s->pair_prices[k] * changes[k + 1];
    return price;
}

static int may_take(const State *s, int64_t p, int64_t target) { return s->allowed[s->topic_of[p] * s->M + target]; }

static int keeps_topics(const State *s, int64_t a, int64_t b, int64_t p, int64_t q) {
    const int64_t topic = s->topic_of[p], other = q == NOBODY ? -1 : s->topic_of[q];
    if (!s->by_topic || topic == other) return 1;
    int64_t change = off(s, topic, a, -1) + off(s, topic, b, 1);
    if (q != NOBODY) change += off(s, other, b, -1) + off(s, other, a, 1);
    return change <= s->topic_distance - s->sums[1];
}

/* Return how much worse an exchange makes the assignment, in units of the heat; more than any wait if it may not be. */
static double worsening(const Annealing *x, int64_t a, int64_t b, int64_t p, int64_t q, int64_t *changes) {
    const State *s = x->s;
    const double never = 1e300;
    if (!may_take(s, p, b) || (q != NOBODY && !may_take(s, q, a))) return never;
    if (q == NOBODY && !may_shift(s, a, b)) return never;
    if (!keeps_topics(s, a, b, p, q)) return never;
    double worse = 0, paid = 0;
    for (int64_t t = 0; t < s->S; t++) {
        const int64_t gone = s->table[p * s->S + t] - (q == NOBODY ? 0 : s->table[q * s->S + t]);
        const int64_t load_a = s->loads[a * s->S + t], load_b = s->loads[b * s->S + t];
        const int64_t new_a = load_a - gone * s->factors[a], new_b = load_b + gone * s->factors[b];
        if (!within_ceiling(s, load_a, new_a) || !within_ceiling(s, load_b, new_b)) return never;
        worse = worse + s->weights[t] * (squares(x, t, new_a, new_b) - squares(x, t, load_a, load_b));
    }
    for (int64_t k = 0; k <= s->K; k++) changes[k] = 0;
    add_changes(s, p, a, b, changes, changes + 1);
    if (q != NOBODY) add_changes(s, q, b, a, changes, changes + 1);
    for (int64_t k = 0; k <= s->K; k++) paid = paid + penalty(x, k, changes[k]);
    changes[s->K + 1] = price_of(s, changes);
    return worse / (x->heat * x->heat) + paid + penalty(x, s->K + 1, changes[s->K + 1]) / x->heat;
}

static void note_moved(Annealing *x, int64_t p) {
    const State *s = x->s;
    const int away = s->owner[p] != NOBODY && s->owner[p] != s->member_of[p];
    if (away && x->at[p] < 0) {
        x->at[p] = x->moved_ones, x->moved[x->moved_ones++] = p;
    } else if (!away && x->at[p] >= 0) {
        const int64_t last = x->moved[--x->moved_ones];
        x->moved[x->at[p]] = last, x->at[last] = x->at[p], x->at[p] = -1;
    }
}

/* Find the least and the greatest load in scenario t; stop and return 0 once the spread (makespan) reaches `most`. */
static int ends_of(const State *s, int64_t t, int64_t most, int64_t *low, int64_t *high) {
    *low = NO_LIMIT, *high = -NO_LIMIT;
    for (int64_t i = 0; i < s->A; i++) {
        const int64_t load = s->loads[s->active[i] * s->S + t];
        *high = load > *high ? load : *high, *low = load < *low ? load : *low;
        if ((s->spread ? *high - *low : *high) >= most) return 0;
    }
    return 1;
}

/* Keep the assignment if it is better than the best one; then narrow the windows. Return 1 if it is. */
static int keep_best(Annealing *x) {
    const State *s = x->s;
    for (int64_t k = 0; k < s->K + 1; k++)
        if (x->spent[k] > x->limits[k]) return 0;
    const int64_t left = x->best - x->spent[s->K + 1], scale = s->worst_counts ? s->unit : 1;
    if (left <= 0) return 0;
    const int64_t most = s->S == 1 && scale ? (left - 1) / scale + 1 : NO_LIMIT;
    int64_t all = 0;
    for (int64_t t = 0; t < s->S; t++) {
        int64_t low, high;
        if (!ends_of(s, t, most, &low, &high)) return 0;
        all = put_together(s, all, s->spread ? high - low : high, t);
    }
    if (scale * all >= left) return 0;
    x->best = scale * all + x->spent[s->K + 1];
    for (int64_t p = 0; p < s->P; p++) x->best_of[p] = s->member_of[p];
    return 1;
}

static void narrow(Annealing *x) {
    const State *s = x->s;
    for (int64_t t = 0; t < s->S; t++) {
        int64_t low, high;
        ends_of(s, t, INT64_MAX, &low, &high);
        const double width = NARROWER * (double)(s->spread ? high - low : high);
        if (width >= x->width[t]) continue;
        x->width[t] = width;
        if (!s->spread) continue;
        if (x->low[t] + width > (double)high) x->low[t] = (double)high - width;
        if (x->low[t] < (double)low) x->low[t] = (double)low;
    }
    int64_t all = 0;
    for (int64_t t = 0; t < s->S; t++) all = put_together(s, all, (int64_t)x->width[t], t);
    x->limits[s->K + 1] = x->best - 1 - (s->worst_counts ? s->unit : 1) * all;
}

/* Shift a window at random, with the same acceptance as an exchange. */
static void shift_window(Annealing *x, int64_t t) {
    const State *s = x->s;
    const double before = x->low[t], by = (double)(draw(x) >> 11) * 0x1p-53 - 0.5;
    double now = 0, then = 0;
    for (int turn = 0; turn < 2; turn++) {
        double sum = 0;
        for (int64_t i = 0; i < s->A; i++) {
            const double off = outside_of(x, t, s->loads[s->active[i] * s->S + t]);
            sum = sum + off * off;
        }
        if (!turn) now = sum, x->low[t] = before + 2 * LONGEST_SHIFT * by * x->width[t];
        else then = sum;
    }
    if (s->weights[t] * (then - now) / (x->heat * x->heat) > waiting(x)) x->low[t] = before;
}

/* Draw two partitions of two members, the second perhaps NOBODY; return 0 if they have the same holder. */
static int propose(Annealing *x, int64_t *p, int64_t *q, int64_t *a, int64_t *b) {
    const State *s = x->s;
    int64_t way = 0, left = below(x, 100);
    while (left >= share_of[way]) left -= share_of[way++];
    if (!x->moved_ones) way = ANYWHERE;
    *p = way == ANYWHERE ? s->items[below(x, s->starts[s->M])] : x->moved[below(x, x->moved_ones)];
    *a = s->member_of[*p], *q = NOBODY;
    if (way == MOVED) {
        *q = x->moved[below(x, x->moved_ones)], *b = s->member_of[*q];
        return *a != *b;
    }
    *b = way == ITS_HOME ? s->owner[*p] : s->active[below(x, s->A)];
    const int64_t first = s->starts[*b], size = s->starts[*b + 1] - first, drawn = below(x, size + 1);
    if (drawn < size) *q = s->items[first + drawn];
    return *a != *b;
}

static int run(Annealing *x, int64_t steps, double cooler, int64_t *changes) {
    State *s = x->s;
    int better = 0;
    for (int64_t step = 1; step <= steps; step++) {
        int64_t p, q, a, b;
        x->heat = x->heat * cooler;
        if (s->spread && step % STEPS_OF_A_SHIFT == 0) shift_window(x, below(x, s->S));
        if (!propose(x, &p, &q, &a, &b)) continue;
        const double worse = worsening(x, a, b, p, q, changes);
        if (worse > 0 && worse > waiting(x)) continue;
        carry_out(s, a, b, place_of(s, a, p), q == NOBODY ? -1 : place_of(s, b, q));
        note_moved(x, p);
        if (q != NOBODY) note_moved(x, q);
        for (int64_t k = 0; k < s->K + 2; k++) x->spent[k] += changes[k];
        if (keep_best(x)) narrow(x), better = 1;
    }
    return better;
}

static PyObject *anneal(PyObject *module, PyObject *args) {
    PyObject *capsule, *objects[4];
    long long steps, best;
    unsigned long long seed;
    double heat, cooler;
    if (!PyArg_ParseTuple(args, "OOOOOLLKdd", &capsule, &objects[0], &objects[1], &objects[2], &objects[3], &best,
                          &steps, &seed, &heat, &cooler))
        return NULL;
    State *s = state_of(capsule);
    if (s == NULL) return NULL;
    const Py_ssize_t wanted[] = {s->P * 4, 2 * s->S * 8, (s->K + 2) * 8, (s->K + 2) * 8};
    Py_buffer views[4];
    int got = 0;
    for (; got < 4; got++) {
        if (PyObject_GetBuffer(objects[got], &views[got], got < 3 ? PyBUF_CONTIG : PyBUF_CONTIG_RO) < 0) break;
        if (views[got].len != wanted[got]) PyErr_SetString(PyExc_ValueError, "the arrays do not fit the state");
    }
    int64_t *room = PyErr_Occurred() ? NULL : malloc((size_t)(2 * s->P + 2 * (s->K + 2)) * sizeof(int64_t));
    int better = 0;
    if (room == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    if (room != NULL && s->A > 1 && s->starts[s->M] > 0) {
        Annealing x = {.s = s, .best_of = views[0].buf, .low = views[1].buf, .limits = views[2].buf,
                       .rates = views[3].buf, .best = best, .word = seed * GOLDEN | 1, .heat = heat, .moved = room};
        x.width = x.low + s->S, x.at = room + s->P, x.spent = x.at + s->P;
        x.spent[0] = s->sums[0];
        for (int64_t k = 0; k < s->K; k++) x.spent[k + 1] = s->used[k];
        x.spent[s->K + 1] = price_of(s, x.spent);
        for (int64_t p = 0; p < s->P; p++) x.at[p] = -1;
        for (int64_t i = 0; i < s->starts[s->M]; i++) note_moved(&x, s->items[i]);
        better = run(&x, steps, cooler, x.spent + s->K + 2);
        best = x.best;
    }
    free(room);
    while (got--) PyBuffer_Release(&views[got]);
    if (PyErr_Occurred()) return NULL;
    if (!better) Py_RETURN_NONE;
    return PyLong_FromLongLong(best);
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS, "Return what the other functions need of a state."},
    {"by_objective", by_objective, METH_VARARGS, "See exchanges.by_objective."},
    {"by_distance", by_distance, METH_VARARGS, "See exchanges.by_distance."},
    {"exchange", exchange, METH_VARARGS, "Carry out an exchange."},
    {"anneal", anneal, METH_VARARGS, "Exchange at random, with less and less worsening."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) {
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "VERSION", VERSION) < 0) Py_CLEAR(made);
    return made;
}
