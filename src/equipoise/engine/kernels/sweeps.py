"""
The CPU kernel for very many arms: whole sweeps over the arms, one run at a time.

Pulling the largest key until no key is above a level pulls every arm until its own key is at most the level, in some
order. The order does not matter: samples go by their address, and a key depends on its arm alone until something is
pooled. So arms are swept through as they lie in memory, each pulled down to the level, which needs no queue and waits
for no memory. The level is chosen so that the pulls of a sweep end before the next limit or pooling; a sweep that goes
past it is undone. The last pulls before it go one at a time by a heap, which holds only arms that they can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from equipoise.compiled import jit
from equipoise.engine.kernels.own import Own
from equipoise.engine.rule import Rule, Steps, steps
from equipoise.engine.streams import U, pair_of
from equipoise.numeric.heap import ENTRY, NO_ARM, arm_at, change, heapify, least_pulled, replace_top
from equipoise.numeric.tuples import adder, loader, storer
from equipoise.strategies import key as formulas

_next_refresh = jit(formulas.next_refresh)
_in_turn = jit(formulas.in_turn)

# An arm's numbers lie together, in half a line of memory; `spare` is the second sample of a pair.
ARM = np.dtype([(name, np.float64) for name in ("count", "mean", "m2", "spare")])
# A sweep is meant for this part of the pulls to the next limit, and none is made for fewer pulls than this part of the
# arms. The heap of the last pulls is meant to hold this many arms for each of them.
PART, FEWEST, REACHED = 0.75, 1 / 16, 4.0
# After this many sweeps that were undone the pulls go one at a time.
MISSES = 3
# Where all arms are looked at, the numbers of this many lie in rows, so that the arithmetic is in vectors.
W = 64
# Those rows: the arms' numbers, what is found for each, and the strategy's own numbers; the shares follow.
COUNT, MEAN, M2, SCALE, FOUND, THEIR_OWN = (row * W for row in range(6))


class Kept(NamedTuple):
    """The arms of a sweep, and what they were before it."""

    arms: Any
    numbers: Any
    own: Any
    keys: Any


class Queues(NamedTuple):
    """Arms by their keys, and by their pulls where the strategy has a floor."""

    by_key: Any
    by_pulls: Any


def sweeps(rule: Rule) -> Callable[..., None]:
    """Return the kernel, not compiled yet."""
    found, own = steps(rule, jit, jit), Own.of(rule)
    pull, key_from, lay_out = _pull(found, own), _key_from(found), _lay_out(own)
    key_of = _key_of(key_from, own)
    in_order, lift = _in_order(found.floor, pull, key_of), _lift(found.floor, pull, key_of)
    advance = _advance(found.floor, _by_keys_alone(found.floor), lift, _sweep(pull, key_of, own), in_order)
    pool_all = _pool_all(found, lay_out, own, rule.sums) if rule.pool is not None else None
    simulate = _simulate(pull, _rekey_all(key_from, lay_out, own), pool_all, advance, own.size, rule.pooled)
    return _run(simulate, own, found.floor is not None, rule.sums)


@jit
def _pulls_of(arm: Any) -> float:
    return arm.count


def _pull(found: Steps, own: Own) -> Any:
    """Return the function that takes in an arm's next sample."""
    take, read_own, write_own, has_keep, OWN = found.take, own.read, own.write, own.kept, own.size

    @jit
    def pull(arms: Any, own: Any, k: int, laws: Any, run: int, pooled: Any, params: Any) -> None:
        """Take in the next sample of arm k."""
        arm = arms[k]
        i = int(arm.count)
        x = arm.spare
        if i & 1 == 0:
            x, arm.spare = pair_of(laws, U(run), k, i >> 1)
        arm.count, arm.mean, arm.m2, its_own = take(
            x, arm.count, arm.mean, arm.m2, read_own(own, k * OWN, 1), pooled, params
        )
        if has_keep:
            write_own(own, k * OWN, 1, its_own)

    return pull


def _key_from(found: Steps) -> Any:
    """Return the function that finds a key from an arm's numbers."""
    variance, weigh = found.variance, found.weigh

    @jit
    def key_from(
        count: float, mean: float, m2: float, its_own: Any, scale: float, pooled: Any, params: Any, exponent: float
    ) -> float:
        """Return the key of an arm with these numbers."""
        v = variance(count, mean, m2, pooled, its_own, params)
        # As a study does, which divides by the pulls when they change.
        return weigh(v, 1.0, scale, exponent) / count

    return key_from


def _key_of(key_from: Any, own: Own) -> Any:
    """Return the function that finds the key of an arm."""
    read_own, OWN = own.read, own.size

    @jit
    def key_of(arms: Any, own: Any, k: int, pooled: Any, numbers: Any) -> float:
        """Return the key of arm k."""
        arm, its_own = arms[k], read_own(own, k * OWN, 1)
        return key_from(
            arm.count, arm.mean, arm.m2, its_own, numbers.scales[k], pooled, numbers.params, numbers.exponent
        )

    return key_of


def _lay_out(own: Own) -> Any:
    """Return the function that copies the numbers of some arms into the rows."""
    read_own, store_own, OWN = own.read, own.store, own.size

    @jit
    def lay_out(rows: Any, arms: Any, own: Any, first: int, numbers: Any) -> int:
        """Copy the numbers of W arms from `first` on into the rows, or of as many as there are: return how many."""
        some = min(W, len(arms) - first)
        for i in range(some):
            k = first + i
            arm = arms[k]
            rows[COUNT + i], rows[MEAN + i], rows[M2 + i] = arm.count, arm.mean, arm.m2
            rows[SCALE + i] = numbers.scales[k]
            store_own(rows, THEIR_OWN + i, W, read_own(own, k * OWN, 1))
        return some

    return lay_out


def _rekey_all(key_from: Any, lay_out: Any, own: Own) -> Any:
    """Return the function that finds every key."""
    load_own = own.load

    @jit
    def rekey_all(rows: Any, arms: Any, own: Any, keys: Any, pooled: Any, numbers: Any) -> None:
        """Find every key."""
        params, exponent = numbers.params, numbers.exponent
        for first in range(0, len(arms), W):
            some = lay_out(rows, arms, own, first, numbers)
            for i in range(W):
                rows[FOUND + i] = key_from(
                    rows[COUNT + i],
                    rows[MEAN + i],
                    rows[M2 + i],
                    load_own(rows, THEIR_OWN + i, W),
                    rows[SCALE + i],
                    pooled,
                    params,
                    exponent,
                )
            for i in range(some):
                keys[first + i] = rows[FOUND + i]

    return rekey_all


def _pool_all(found: Steps, lay_out: Any, own: Own, sums: int) -> Any:
    """Return the function that pools over arms."""
    add_share, pool, load_own, plus = found.add_share, found.pool, own.load, adder(sums, jit)
    load_share, store_share, no_sums = loader(sums), storer(sums), (0.0,) * max(sums, 1)
    SHARE = THEIR_OWN + own.size * W
    ROWS = SHARE + sums * W

    @jit
    def pool_all(rows: Any, arms: Any, own: Any, pooled: Any, numbers: Any) -> Any:
        """Return what is pooled over arms. Their shares are added up in the order of the arms, as a study does."""
        sums, known, params = no_sums, 0.0, numbers.params
        for first in range(0, len(arms), W):
            some = lay_out(rows, arms, own, first, numbers)
            # Added to zeros in memory: the compiler does not vectorise a loop that only writes shares.
            for i in range(SHARE, ROWS):
                rows[i] = 0.0
            for i in range(W):
                rows[FOUND + i] = 0.0
            for i in range(W):
                share, rows[FOUND + i] = add_share(
                    rows[COUNT + i],
                    rows[MEAN + i],
                    rows[M2 + i],
                    load_own(rows, THEIR_OWN + i, W),
                    pooled,
                    params,
                    load_share(rows, SHARE + i, W),
                    rows[FOUND + i],
                )
                store_share(rows, SHARE + i, W, share)
            for i in range(some):
                sums = plus(sums, load_share(rows, SHARE + i, W))
                known += rows[FOUND + i]
        return pool(sums, known, pooled, numbers.params)

    return pool_all


def _sweep(pull: Any, key_of: Any, own: Own) -> Any:
    """Return the function that pulls every arm down to a level."""
    read_own, write_own, has_keep, OWN = own.read, own.write, own.kept, own.size

    @jit
    def sweep(
        arms: Any,
        own: Any,
        keys: Any,
        kept: Any,
        laws: Any,
        run: int,
        level: float,
        most: int,
        pooled: Any,
        numbers: Any,
    ) -> int:
        """
        Pull every arm until its key is at most `level`, and return the number of pulls.

        Where they are more than `most` all arms are left as they were, and more than `most` is returned.
        """
        above = 0
        for j in range(len(keys)):
            kept.arms[above] = j
            above += keys[j] > level
        pulls = 0
        for j in range(above):
            k: Any = np.int64(kept.arms[j])
            was, arm = kept.numbers[j], arms[k]
            was.count, was.mean, was.m2, was.spare, kept.keys[j] = arm.count, arm.mean, arm.m2, arm.spare, keys[k]
            if has_keep:
                write_own(kept.own, j * OWN, 1, read_own(own, k * OWN, 1))
            key = keys[k]
            while key > level and pulls <= most:
                pull(arms, own, k, laws, run, pooled, numbers.params)
                key = key_of(arms, own, k, pooled, numbers)
                pulls += 1
            keys[k] = key
            if pulls > most:
                for i in range(j + 1):
                    k = np.int64(kept.arms[i])
                    was, arm = kept.numbers[i], arms[k]
                    arm.count, arm.mean, arm.m2, arm.spare, keys[k] = (
                        was.count,
                        was.mean,
                        was.m2,
                        was.spare,
                        kept.keys[i],
                    )
                    if has_keep:
                        write_own(own, k * OWN, 1, read_own(kept.own, i * OWN, 1))
                break
        return pulls

    return sweep


def _in_order(floor: Any, pull: Any, key_of: Any) -> Any:
    """Return the function that makes pulls one at a time, for a strategy with a floor or None."""
    has_floor = floor is not None

    @jit
    def in_order(
        arms: Any,
        own: Any,
        keys: Any,
        queues: Any,
        laws: Any,
        run: int,
        t: int,
        end: int,
        level: float,
        pooled: Any,
        numbers: Any,
    ) -> None:
        """Make pulls t to `end` one at a time: the arm with the largest key, or the least pulled below the floor."""
        K, reached = len(arms), 0
        by_key, by_pulls = queues.by_key, queues.by_pulls
        if not has_floor:
            # As many pulls can reach no more arms than those with the largest keys.
            for k in range(K):
                by_key[reached].score, by_key[reached].arm = keys[k], k
                reached += keys[k] > level
        if has_floor or reached < end - t:
            reached = K
            for k in range(K):
                by_key[k].score, by_key[k].arm, by_key[k].place = keys[k], k, k
        heap = by_key[:reached]
        heapify(heap)
        if has_floor:
            for k in range(K):
                by_pulls[k].score, by_pulls[k].arm, by_pulls[k].place = -arms[k].count, k, k
            heapify(by_pulls)
        while t < end:
            k = NO_ARM
            if has_floor:
                k = least_pulled(by_pulls, arms, _pulls_of, floor(float(t), float(K), numbers.params))
            if k == NO_ARM:
                k = arm_at(heap, 0)
            pull(arms, own, k, laws, run, pooled, numbers.params)
            keys[k] = key_of(arms, own, k, pooled, numbers)
            if has_floor:
                change(heap, k, keys[k])
            else:
                replace_top(heap, keys[k])
            t += 1

    return in_order


def _by_keys_alone(floor: Any) -> Any:
    """Return the function that says whether keys alone decide, for a strategy with a floor or None."""
    has_floor = floor is not None

    @jit
    def by_keys_alone(arms: Any, fewest: float, t: int, end: int, params: Any) -> bool:
        """Return whether no arm is below the floor before pull `end`, if the least pulled one has `fewest`."""
        if has_floor:
            # From the end, as most floors grow.
            for s in range(end - 1, t - 1, -1):
                if fewest < floor(float(s), float(len(arms)), params):
                    return False
        return True

    return by_keys_alone


@jit
def _least_pulled_arms(arms: Any) -> tuple[float, int]:
    """Return the fewest pulls of an arm, and how many arms have as few."""
    fewest, equal = math.inf, 0
    for k in range(len(arms)):
        if arms[k].count < fewest:
            fewest, equal = arms[k].count, 0
        equal += arms[k].count == fewest
    return fewest, equal


def _lift(floor: Any, pull: Any, key_of: Any) -> Any:
    """Return the function that pulls the least pulled arms up to the floor."""

    @jit
    def lift(
        arms: Any,
        own: Any,
        keys: Any,
        laws: Any,
        run: int,
        t: int,
        end: int,
        fewest: float,
        pooled: Any,
        numbers: Any,
    ) -> int:
        """Pull the arms with the fewest pulls, in turn, while the floor is above; return which pull is next."""
        for k in range(len(arms)):
            if arms[k].count == fewest:
                if t == end or fewest >= floor(float(t), float(len(arms)), numbers.params):
                    break
                pull(arms, own, k, laws, run, pooled, numbers.params)
                keys[k] = key_of(arms, own, k, pooled, numbers)
                t += 1
        return t

    return lift


def _advance(floor: Any, by_keys_alone: Any, lift: Any, sweep: Any, in_order: Any) -> Any:
    """Return the function that makes the pulls to a limit, for a strategy with a floor or None."""
    has_floor = floor is not None

    @jit
    def advance(
        arms: Any,
        own: Any,
        keys: Any,
        kept: Any,
        queues: Any,
        laws: Any,
        run: int,
        t: int,
        end: int,
        pooled: Any,
        numbers: Any,
    ) -> int:
        """Make pulls t to `end` or to an earlier one, which is returned; nothing is pooled between them."""
        K, part, misses = len(arms), PART, 0
        fewest = 0.0
        if has_floor:
            fewest, equal = _least_pulled_arms(arms)
            # Where they are few, finding them would take longer than a heap does.
            if 4 * equal >= K and fewest < floor(float(t), float(K), numbers.params):
                return lift(arms, own, keys, laws, run, t, end, fewest, pooled, numbers)
        # The sum of what the strategy takes for the variances. At a level, half a pull of each arm is not due yet.
        total = 0.0
        for k in range(K):
            total += keys[k] * arms[k].count
        level = total / (t - K / 2)
        if not by_keys_alone(arms, fewest, t, end, numbers.params):
            end = min(end, t + K)
            misses = MISSES
        while misses < MISSES and end - t > FEWEST * K:
            # An arm's pulls grow about as the level falls.
            lower = level * ((t - K / 2) / (t - K / 2 + part * (end - t)))
            pulls = sweep(arms, own, keys, kept, laws, run, lower, end - t, pooled, numbers)
            if pulls == 0:
                break
            if pulls > end - t:
                part /= 2
                misses += 1
            else:
                t += pulls
                level = lower
        level *= t / (t + REACHED * (end - t))
        in_order(arms, own, keys, queues, laws, run, t, end, level, pooled, numbers)
        return end

    return advance


def _simulate(pull: Any, rekey_all: Any, pool_all: Any, advance: Any, OWN: int, pooled_numbers: int) -> Any:
    """Return the function that simulates one run; `pool_all` is None where nothing is pooled."""
    has_pool, nothing_pooled = pool_all is not None, (0.0,) * max(pooled_numbers, 1)

    @jit
    def simulate(
        laws: Any,
        run: int,
        limits: Any,
        numbers: Any,
        ends: Any,
        arms: Any,
        own: Any,
        keys: Any,
        kept: Any,
        queues: Any,
        rows: Any,
    ) -> None:
        """Simulate the run at this place."""
        K = len(laws.kinds)
        for j in range(K):
            arm = arms[j]
            arm.count, arm.mean, arm.m2 = 0.0, 0.0, 0.0
            for i in range(OWN):
                own[j * OWN + i] = numbers.own[j, i]
        in_turn, refresh, t = _in_turn(numbers.warmup, K), _next_refresh(0, K), 0
        pooled = nothing_pooled
        # Whether all keys have to be found again before the next one is needed.
        stale = True
        for c in range(len(limits)):
            while t < limits[c]:
                if t < in_turn:
                    pull(arms, own, t % K, laws, run, pooled, numbers.params)
                    t += 1
                else:
                    if stale:
                        rekey_all(rows, arms, own, keys, pooled, numbers)
                        stale = False
                    end = min(limits[c], refresh) if has_pool else limits[c]
                    t = advance(arms, own, keys, kept, queues, laws, run, t, end, pooled, numbers)
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    pooled = pool_all(rows, arms, own, pooled, numbers)
                    stale = True
            for j in range(K):
                ends[0, c, j, run], ends[1, c, j, run], ends[2, c, j, run] = arms[j].count, arms[j].mean, arms[j].m2

    return simulate


def _run(simulate: Any, own: Own, has_floor: bool, sums: int) -> Callable[..., None]:
    """Return the kernel: memory for one run at a time, and the runs."""
    Arm, Entry, OWN, has_keep = numba.from_dtype(ARM), numba.from_dtype(ENTRY), own.size, own.kept
    ROWS = THEIR_OWN + (own.size + sums) * W

    def run(laws: Any, limits: Any, numbers: Any, ends: Any) -> None:
        K = len(laws.kinds)
        arms, own, keys = np.empty(K, Arm), np.empty(K * OWN), np.empty(K)
        kept = Kept(np.empty(K + 1, np.int32), np.empty(K, Arm), np.empty(K * OWN if has_keep else 0), np.empty(K))
        # One entry more, as one that is not needed is written all the same.
        queues = Queues(np.empty(K + 1, Entry), np.empty(K if has_floor else 0, Entry))
        rows = np.zeros(ROWS)
        for place in range(len(laws.runs)):
            simulate(laws, place, limits, numbers, ends, arms, own, keys, kept, queues, rows)

    return run
