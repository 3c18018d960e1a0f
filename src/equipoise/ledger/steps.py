"""
The compiled steps of a study: ask, tell, decline, forget, retire.

Each step takes the flat buffers of a study (`study.state`) and opens them as records. The arm with the largest key is
asked for, unless an arm has fewer pulls than the strategy's floor: then the least pulled one is. Both are on top of a
heap. The heap of pulls is put right only as far as needed, when somebody looks: pulls grow, so that no arm has fewer
than its entry says. A forgotten ticket is the one case in which pulls fall, and moves its arm at once.

A declined ticket is a pull for the floor, and none for the key, which is about answers: only an arm that has too few of
those for a key of its own is compared by its declines too (`strategies.key.silent_key`).

A ticket that was given back has lost its place in the budget and in the population of its arm. A late answer takes a
place again (`take_up`), and is refused where none is left (`has_place`). So the tickets that are in flight, answered or
declined never exceed the budget, whatever is told and when.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from equipoise.compiled import borrowing, inlined, internal
from equipoise.engine.functions import call_floor, call_keep, call_pool, call_share, call_variance
from equipoise.ledger.state import (
    ANSWERED,
    ANSWERED_LATE,
    DECLINED,
    FORGOTTEN,
    IN_FLIGHT,
    WITHDRAWN,
    Book,
    mean_of,
    open_book,
    own_at,
    tickets_of,
)
from equipoise.numeric import moments
from equipoise.numeric.heap import NO_ARM, arm_at, change, heapify, least_pulled
from equipoise.problem import money
from equipoise.strategies import key as keys

# What a log has of a ticket: it was handed out, answered, declined.
ASK, TELL, DECLINE = range(3)

# In place of an arm: the strategy's floor is not a number.
BAD_FLOOR = -2

# In place of a ticket: none can be handed out without a look at the budget and at the room for tickets.
NOT_NOW = -1

# What a step answers: done; the same was told before; the value is outside the support; another value was told before;
# the ticket is of another arm; done, but the strategy gave a variance that is none; the ticket was declined before;
# there is no such ticket; it was given back, and its place was taken.
DONE, KNOWN, OUTSIDE, CONFLICT, OTHER_ARM, BAD_VARIANCE, UNANSWERED, REFUSED, TOO_LATE = range(9)

_key = inlined(keys.key)
_warmup_key = inlined(keys.warmup_key)
_silent_key = inlined(keys.silent_key)
_unseen = inlined(keys.unseen)
_next_refresh = inlined(keys.next_refresh)
_add = inlined(moments.add_shifted)
_merge = inlined(moments.merge_shifted)
_spend = inlined(money.spend)
_affordable = inlined(money.affordable)
_expected_cost = inlined(money.expected_cost)


# ---- keys


@inlined
def asked_for(arm: Any) -> float:
    """Return how many tickets of an arm were answered, declined or are in flight, with its samples from elsewhere."""
    return float(arm.pulls + arm.declined)


@internal
def used_up(book: Book, k: int) -> bool:
    """
    Return whether all of the population of arm k was drawn.

    An item that was drawn and declined to answer is used up too.
    """
    at = book.header.sizes_at
    return at != 0 and asked_for(book.arms[k]) >= book.memory[at + k]


@internal
def closed(book: Book, k: int) -> bool:
    """Return whether arm k is not to be asked for: it is retired, or its population is used up."""
    return book.arms[k].retired != 0 or used_up(book, k)


@internal
def set_top(book: Book, k: int, top: float) -> None:
    """Give arm k another top."""
    book.header.tops += top - book.arms[k].top
    book.arms[k].top = top


@internal
def evaluate(book: Book, k: int) -> int:
    """Ask the strategy about arm k, if that is due; BAD_VARIANCE if its variance is not a finite number >= 0."""
    arm, header = book.arms[k], book.header
    if arm.count < header.warmup or closed(book, k):
        return DONE
    # Read before the call, so that they need not be read again after it.
    scale, exponent = arm.scale, header.exponent
    v = call_variance(
        book.functions.variance,
        float(arm.count),
        mean_of(arm),
        arm.m2,
        book.memory,
        header.pooled_at,
        own_at(header, k),
        book.rule,
    )
    fine = 0 <= v < math.inf
    set_top(book, k, _key(v, 1.0, scale, exponent) if fine else 0.0)
    return DONE if fine else BAD_VARIANCE


@inlined
def silent(arm: Any, header: Any) -> bool:
    """Return whether an arm declined, and has no answer or fewer than the warm-up asks for."""
    return arm.declined != 0 and arm.count < max(header.warmup, 1)


@internal
def key_of(book: Book, k: int) -> float:
    """Return the key of arm k; that of a closed arm is below all others."""
    if closed(book, k):
        return -math.inf
    arm, header = book.arms[k], book.header
    pulls = float(arm.pulls)
    if silent(arm, header):
        return _silent_key(header.tops, float(header.arms), asked_for(arm))
    if arm.count < header.warmup or pulls == 0:
        return _warmup_key(pulls)
    key = arm.top / pulls
    if header.sizes_at != 0:
        key *= _unseen(pulls, book.memory[header.sizes_at + k], header.finite_exponent)
    return key


@internal
def requeue(book: Book, k: int) -> None:
    """Put arm k where it belongs in the queues of pulls and of costs, if there are any: last where it is closed."""
    if book.functions.floor != 0:
        change(book.by_pulls, k, -math.inf if closed(book, k) else -asked_for(book.arms[k]))
    if book.header.prices_at != 0:
        change(book.by_cost, k, -math.inf if closed(book, k) else -book.arms[k].cost)


@internal
def close_if_used_up(book: Book, k: int) -> None:
    """Let arm k come last in the queues if its population is used up."""
    if book.header.sizes_at != 0 and closed(book, k):
        set_top(book, k, 0.0)
        requeue(book, k)


@internal
def rekey(book: Book, k: int) -> None:
    """
    Put arm k where its key belongs.

    The key of a silent arm depends on the tops of all arms. One that is too large is put right when the arm is asked
    for. Lest one stay too small, those of all silent arms are computed when the sum of the tops has doubled.
    """
    change(book.by_key, k, key_of(book, k))
    if book.header.declined != 0 and book.header.tops > 2.0 * book.header.tops_seen:
        book.header.tops_seen = book.header.tops
        for j in range(book.header.arms):
            if silent(book.arms[j], book.header):
                change(book.by_key, j, key_of(book, j))


@internal
def rekey_all(book: Book) -> int:
    """Ask the strategy about every arm, and put all of them where their keys belong."""
    answer, tops = DONE, 0.0
    for i in range(book.header.arms):
        k = arm_at(book.by_key, i)
        if evaluate(book, k) == BAD_VARIANCE:
            answer = BAD_VARIANCE
        tops += book.arms[k].top
        book.by_key[i].score = key_of(book, k)
    book.header.tops = book.header.tops_seen = tops
    if book.header.declined != 0:
        # The key of a silent arm depends on all tops.
        for i in range(book.header.arms):
            book.by_key[i].score = key_of(book, arm_at(book.by_key, i))
    heapify(book.by_key)
    return answer


@internal
def refresh(book: Book) -> int:
    """Compute what is pooled over the arms, and every key."""
    header = book.header
    for i in range(header.sums_at, header.by_key_at):
        book.memory[i] = 0.0
    arms = 0.0
    for k in range(header.arms):
        arm = book.arms[k]
        if arm.count >= 2:
            call_share(
                book.functions.share,
                float(arm.count),
                mean_of(arm),
                arm.m2,
                book.memory,
                header.pooled_at,
                own_at(header, k),
                header.sums_at,
                book.rule,
            )
            arms += 1.0
    call_pool(book.functions.pool, arms, book.memory, header.sums_at, header.pooled_at, book.rule)
    return rekey_all(book)


@borrowing
def rekey_study(memory: Any, rule: Any) -> int:
    """Compute every key of a study; what is pooled has a schedule of its own."""
    return rekey_all(open_book(memory, rule))


@borrowing
def refresh_study(memory: Any, rule: Any) -> int:
    """Compute what is pooled over the arms of a study, and every key, between two refreshes of the schedule."""
    return refresh(open_book(memory, rule))


# ---- asking


@internal
def under_floor(book: Book, t: int) -> int:
    """Return the least pulled arm if it has fewer pulls than the floor after t pulls, else NO_ARM; or BAD_FLOOR."""
    if book.functions.floor == 0:
        return NO_ARM
    floor = call_floor(book.functions.floor, float(t), float(book.header.arms), book.memory, book.rule)
    if math.isnan(floor):
        return BAD_FLOOR
    return least_pulled(book.by_pulls, book.arms, asked_for, floor)


@internal
def can_pay(book: Book, cost: float) -> bool:
    """Return whether a sample of this cost can be paid for, where samples have costs; else it always can."""
    header = book.header
    return header.prices_at == 0 or _affordable(cost, header.spent, header.carry, header.limit)


@internal
def has_place(book: Book, k: int, owed: float) -> bool:
    """
    Return whether the budget and the population of arm k have a place for one more ticket of it.

    `owed` is what is to be paid before, and not charged yet.
    """
    if used_up(book, k):
        return False
    if book.header.prices_at != 0:
        return can_pay(book, owed + book.arms[k].cost)
    return book.header.used + 1 <= book.header.limit


@inlined
def cheapest(book: Book) -> float:
    """Return what a sample of the cheapest open arm costs; without costs any number."""
    return -book.by_cost[0].score if book.header.prices_at != 0 else 0.0


@internal
def best_affordable(book: Book, t: int) -> int:
    """Return the arm that is wanted most of those that are not closed and can be paid for; NO_ARM if none can be."""
    least, fewest, best, best_key = NO_ARM, 0.0, NO_ARM, 0.0
    for i in range(book.header.arms):
        k = arm_at(book.by_key, i)
        arm = book.arms[k]
        if closed(book, k) or not can_pay(book, arm.cost):
            continue
        asked = asked_for(arm)
        if least == NO_ARM or asked < fewest or (asked == fewest and k < least):
            least, fewest = k, asked
        key = book.by_key[i].score
        if best == NO_ARM or key > best_key or (key == best_key and k < best):
            best, best_key = k, key
    if best == NO_ARM or book.functions.floor == 0:
        return best
    floor = call_floor(book.functions.floor, float(t), float(book.header.arms), book.memory, book.rule)
    return least if fewest < floor else best


@internal
def pay(book: Book, cost: float) -> None:
    """Add a cost to what is spent; a refund is negative."""
    book.header.spent, book.header.carry = _spend(book.header.spent, book.header.carry, cost)


@internal
def charge(book: Book, k: int, tickets: int) -> None:
    """Charge a ticket of arm k with what it is expected to cost, or refund one with `tickets` -1."""
    book.prices[k].unpaid += tickets
    pay(book, tickets * book.arms[k].cost)


@internal
def settle(book: Book, k: int, cost: float) -> None:
    """
    Take the real cost of a ticket of arm k, which was charged with the expected cost.

    From then on the arm is planned with the mean of its real costs, and its other tickets are charged with that.
    """
    arm, price = book.arms[k], book.prices[k]
    before = arm.cost
    price.paid += 1
    price.bill += cost
    after = _expected_cost(price.declared, price.paid, price.bill)
    price.unpaid -= 1
    pay(book, -before)
    pay(book, cost)
    pay(book, price.unpaid * (after - before))
    arm.cost = after
    arm.scale = price.scale * (after / price.declared) ** book.header.cost_power
    if not closed(book, k):
        change(book.by_cost, k, -after)


@internal
def wanted(book: Book, t: int) -> int:
    """Return the arm to ask for after t pulls, whatever it costs; NO_ARM if all are closed; or BAD_FLOOR."""
    k = under_floor(book, t)
    if k != NO_ARM:
        return k
    return NO_ARM if book.by_key[0].score == -math.inf else arm_at(book.by_key, 0)


@internal
def take_up(book: Book, k: int) -> None:
    """Give a ticket of arm k a place in the budget and in the population."""
    book.arms[k].pulls += 1
    book.header.used += 1
    book.header.credit -= 1
    if book.header.prices_at != 0:
        charge(book, k, 1)
    close_if_used_up(book, k)


@internal
def hand_out(book: Book, tickets: Any, k: int) -> None:
    """Make the next ticket one of arm k."""
    take_up(book, k)
    change(book.by_key, k, key_of(book, k))
    ticket = tickets[book.header.issued]
    ticket.arm = k
    ticket.status = IN_FLIGHT
    ticket.value = math.nan
    book.header.issued += 1


@internal
def next_arm(book: Book) -> int:
    """
    Return the arm to ask for, of those that can be paid for; NO_ARM if there is none; or BAD_FLOOR.

    A look at every arm is taken only where the one that is wanted cannot be paid for, near the end.
    """
    # Before the heap of pulls is touched: a log has no trace of asks that came to nothing.
    if not can_pay(book, cheapest(book)):
        return NO_ARM
    k = wanted(book, book.header.used)
    if k >= 0 and not can_pay(book, book.arms[k].cost):
        k = best_affordable(book, book.header.used)
    return k


@borrowing
def ask(memory: Any, rule: Any, ticket_memory: Any, m: int) -> int:
    """
    Hand out m tickets, or as many as there are open arms and money for; return how many.

    Where the floor is not a number it stops and returns -1 less the number of tickets handed out.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(m):
        k = next_arm(book)
        if k == NO_ARM:
            return j
        if k == BAD_FLOOR:
            return -1 - j
        hand_out(book, tickets, k)
    return m


@borrowing
def ask_one(memory: Any, rule: Any, ticket_memory: Any) -> int:
    """Hand out a ticket, and return its id; or NOT_NOW."""
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    if book.header.credit <= 0 or not can_pay(book, cheapest(book)):
        return NOT_NOW
    k = wanted(book, book.header.used)
    # Another arm that can be paid for is found by `ask`, which few studies have to compile.
    if k < 0 or not can_pay(book, book.arms[k].cost):
        return NOT_NOW
    hand_out(book, tickets, k)
    return book.header.issued - 1


@borrowing
def ask_for(memory: Any, rule: Any, ticket_memory: Any, arms: Any) -> int:
    """Hand out tickets of these arms, whatever the strategy says, up to the first without a place; return how many."""
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(len(arms)):
        if not has_place(book, arms[j], 0.0):
            return j
        # Puts the heap of pulls right as far as `ask` does, so that the state is the same to the bit.
        under_floor(book, book.header.used)
        hand_out(book, tickets, arms[j])
    return len(arms)


# ---- telling


@internal
def possible(header: Any, value: float) -> bool:
    """Return whether a value lies in the support; NaN and infinities do not."""
    if header.binary != 0:
        return value == 0.0 or value == 1.0
    return header.low <= value and value <= header.high


@internal
def check(book: Book, ticket: Any, arm: int, value: float, owed: float) -> int:
    """
    Return whether this value may be told for this ticket, which is said to be of this arm.

    `owed` is what late answers that are taken with it are to be charged with.
    """
    if ticket.arm != arm:
        return OTHER_ARM
    if not possible(book.header, value):
        return OUTSIDE
    if ticket.status == ANSWERED or ticket.status == ANSWERED_LATE:
        return KNOWN if ticket.value == value else CONFLICT
    if ticket.status == DECLINED:
        return UNANSWERED
    return DONE if ticket.status == IN_FLIGHT or has_place(book, arm, owed) else TOO_LATE


@internal
def take(book: Book, k: int, count: int, mean: float, m2: float, landed: int) -> int:
    """Add samples of arm k to what is known, `landed` of which have a place already, as tickets in flight do."""
    arm, header = book.arms[k], book.header
    if count == 1:
        _, arm.shift, arm.mean, arm.m2 = _add(arm.count, arm.shift, arm.mean, arm.m2, mean)
    else:
        _, arm.shift, arm.mean, arm.m2 = _merge(arm.count, arm.shift, arm.mean, arm.m2, count, mean, m2)
    arm.count += count
    arm.pulls += count - landed
    if count > landed:
        close_if_used_up(book, k)
    if book.functions.keep != 0:
        call_keep(
            book.functions.keep,
            mean if count == 1 else math.nan,
            float(arm.count),
            mean_of(arm),
            arm.m2,
            book.memory,
            header.pooled_at,
            own_at(header, k),
            book.rule,
        )
    header.samples += count
    if book.functions.pool != 0 and header.samples >= header.next_refresh:
        header.next_refresh = _next_refresh(header.samples, header.arms)
        return refresh(book)
    answer = evaluate(book, k)
    rekey(book, k)
    return answer


@inlined
def arm_of(ticket: Any) -> int:
    """Return the place of a ticket's arm, as wide as every other place, so that `take` is compiled once."""
    return np.int64(ticket.arm)  # type: ignore[return-value]


@inlined
def unsettled(status: int) -> bool:
    """Whether a ticket of this status was neither answered nor declined: it is in flight or was given back."""
    return status in (IN_FLIGHT, FORGOTTEN, WITHDRAWN)


@inlined
def is_late(status: int) -> bool:
    """Whether a ticket of this status was given back, so that its answer would be late."""
    return status in (FORGOTTEN, WITHDRAWN)


@inlined
def answered(ticket: Any, value: float) -> None:
    """Write the value of a ticket down."""
    ticket.status = ANSWERED if ticket.status == IN_FLIGHT else ANSWERED_LATE
    ticket.value = value


@borrowing
def tell_one(memory: Any, rule: Any, ticket_memory: Any, i: int, arm: int, value: float) -> int:
    """
    Take the value of ticket i; a forgotten ticket's counts too, if there is a place for it.

    The ticket is said to be of this arm.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    if i >= book.header.issued:
        return REFUSED
    ticket = tickets[i]
    answer = check(book, ticket, arm, value, 0.0)
    if answer != DONE:
        return answer
    if ticket.status != IN_FLIGHT:
        take_up(book, arm)
    answered(ticket, value)
    return take(book, arm, 1, value, 0.0, 1)


@borrowing
def tell_many(
    memory: Any, rule: Any, ticket_memory: Any, ids: Any, values: Any, costs: Any, before: Any
) -> tuple[int, int]:
    """
    Take the values of many tickets, in order, or of none.

    Return the answer, and the place of the first that was refused or of the last that was taken with a bad variance.
    `costs` are the real costs, NaN where one is not known, or empty; `before` is room for the status of each ticket.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    owed, last, refused = 0.0, len(ids), DONE
    for j in range(len(ids)):
        ticket = tickets[ids[j]]
        k = arm_of(ticket)
        answer = check(book, ticket, k, values[j], owed)
        if answer != DONE and answer != KNOWN:
            last, refused = j, answer
            break
        before[j] = ticket.status
        if is_late(before[j]):
            # Holds a place until all are checked. What it costs is not charged yet: a refund would leave its rounding.
            book.arms[k].pulls += 1
            book.header.used += 1
            owed += book.arms[k].cost
        if answer == DONE:
            answered(ticket, values[j])
    # Last first, so that a ticket that came twice and is refused ends as it was.
    for i in range(last - 1, -1, -1):
        ticket = tickets[ids[i]]
        if is_late(before[i]):
            book.arms[arm_of(ticket)].pulls -= 1
            book.header.used -= 1
        if refused != DONE and unsettled(before[i]):
            ticket.status = before[i]
            ticket.value = math.nan
    if refused != DONE:
        return refused, last
    worst, bad = DONE, -1
    for j in range(len(ids)):
        if unsettled(before[j]):
            k = arm_of(tickets[ids[j]])
            if is_late(before[j]):
                take_up(book, k)
            if len(costs) > 0 and not math.isnan(costs[j]):
                settle(book, k, costs[j])
            if take(book, k, 1, values[j], 0.0, 1) == BAD_VARIANCE:
                worst, bad = BAD_VARIANCE, j
    return worst, bad


@borrowing
def tell_moments(memory: Any, rule: Any, k: int, count: int, mean: float, m2: float) -> int:
    """Take samples of arm k from elsewhere, for which no ticket was handed out."""
    return take(open_book(memory, rule), k, count, mean, m2, 0)


# ---- declining, forgetting and retiring


@internal
def turn_down(book: Book, ticket: Any, k: int, cost: float) -> int:
    """Note that a ticket of arm k, in flight or forgotten, was not answered."""
    if ticket.status != IN_FLIGHT:
        take_up(book, k)
    ticket.status = DECLINED
    book.arms[k].declined += 1
    book.arms[k].pulls -= 1
    book.header.declined += 1
    answer = DONE
    if not math.isnan(cost):
        settle(book, k, cost)
        answer = evaluate(book, k)
    rekey(book, k)
    return answer


@borrowing
def decline(memory: Any, rule: Any, ticket_memory: Any, i: int, k: int, cost: float) -> int:
    """
    Note that ticket i of arm k was not answered; CONFLICT if it was, KNOWN if it was declined before.

    TOO_LATE if it was given back and there is no place for it. `cost` is what it really cost, NaN where that is not
    known.
    """
    book, ticket = open_book(memory, rule), tickets_of(ticket_memory)[i]
    if ticket.arm != k:
        return OTHER_ARM
    if ticket.status == DECLINED:
        return KNOWN
    if not unsettled(ticket.status):
        return CONFLICT
    if ticket.status != IN_FLIGHT and not has_place(book, k, 0.0):
        return TOO_LATE
    return turn_down(book, ticket, k, cost)


@borrowing
def is_too_late(memory: Any, rule: Any, ticket_memory: Any, i: int) -> bool:
    """Return whether ticket i was given back, and there is no place for its answer."""
    book, ticket = open_book(memory, rule), tickets_of(ticket_memory)[i]
    return is_late(ticket.status) and not has_place(book, arm_of(ticket), 0.0)


@borrowing
def forget(memory: Any, rule: Any, ticket_memory: Any, i: int, k: int, status: int) -> int:
    """
    Give ticket i of arm k back, as FORGOTTEN or WITHDRAWN.

    CONFLICT if it was answered or declined, KNOWN if it was given back.
    """
    book, ticket = open_book(memory, rule), tickets_of(ticket_memory)[i]
    if ticket.arm != k:
        return OTHER_ARM
    if ticket.status != IN_FLIGHT:
        return KNOWN if unsettled(ticket.status) else CONFLICT
    arm = book.arms[k]
    ticket.status = status
    arm.pulls -= 1
    book.header.used -= 1
    if book.header.prices_at != 0:
        charge(book, k, -1)
    requeue(book, k)
    # The population of the arm may have been used up.
    answer = evaluate(book, k) if book.header.sizes_at != 0 else DONE
    rekey(book, k)
    return answer


@borrowing
def retire(memory: Any, rule: Any, k: int, retired: int) -> int:
    """Let arm k come last in both heaps, or, with `retired` 0, where it belongs."""
    book = open_book(memory, rule)
    book.arms[k].retired = retired
    set_top(book, k, 0.0)
    requeue(book, k)
    answer = evaluate(book, k)
    rekey(book, k)
    return answer


# What every study needs, with the types of the arguments, so that it can be compiled before the first ask.
_WORDS = types.Array(types.float64, 1, "C")
FIRST: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (ask_one, (_WORDS, _WORDS, _WORDS)),
    (tell_one, (_WORDS, _WORDS, _WORDS, types.int64, types.int64, types.float64)),
)


# ---- folding a log


@borrowing
def fold(memory: Any, rule: Any, ticket_memory: Any, actions: Any, places: Any, values: Any, costs: Any) -> int:
    """
    Apply asks, answers and declines in the order in which they happened; return the position of one that cannot be.

    It is -1 where all of them can. `places` are arms of asks and ids of the other tickets, none of them negative;
    `costs` are NaN where they are not known, and there are none of them where none is known.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(len(places)):
        if actions[j] == ASK:
            if places[j] >= book.header.arms:
                return j
            under_floor(book, book.header.used)
            hand_out(book, tickets, places[j])
            continue
        if places[j] >= book.header.issued:
            return j
        ticket, cost = tickets[places[j]], costs[j] if len(costs) != 0 else math.nan
        k = arm_of(ticket)
        if not unsettled(ticket.status):
            return j
        if actions[j] == DECLINE:
            turn_down(book, ticket, k, cost)
            continue
        if not possible(book.header, values[j]):
            return j
        if ticket.status != IN_FLIGHT:
            take_up(book, k)
        answered(ticket, values[j])
        if not math.isnan(cost):
            settle(book, k, cost)
        take(book, k, 1, values[j], 0.0, 1)
    return -1
