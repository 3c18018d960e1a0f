"""
The compiled steps of a study: ask, tell, forget, retire.

Each step takes the flat buffers of a study (`study.state`) and opens them as records. The arm with the largest key is
asked for, unless an arm has fewer pulls than the strategy's floor: then the least pulled one is. Both are on top of a
heap. The heap of pulls is put right only as far as needed, when somebody looks: pulls grow, so that no arm has fewer
than its entry says. A forgotten ticket is the one case in which pulls fall, and moves its arm at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise import moments
from equipoise.compiled import borrowing, inlined, internal
from equipoise.heap import NO_ARM, arm_at, change, heapify, least_pulled
from equipoise.problem import money
from equipoise.strategies import key as keys
from equipoise.study.functions import call_floor, call_keep, call_pool, call_share, call_variance
from equipoise.study.state import ANSWERED, ANSWERED_LATE, FORGOTTEN, IN_FLIGHT, Book, open_book, own_at, tickets_of

# In place of an arm: the strategy's floor is not a number.
BAD_FLOOR = -2

# What a step answers: done; the same was told before; the value is outside the support; another value was told before;
# the ticket is of another arm; done, but the strategy gave a variance that is none.
DONE, KNOWN, OUTSIDE, CONFLICT, OTHER_ARM, BAD_VARIANCE = range(6)

_key = inlined(keys.key)
_warmup_key = inlined(keys.warmup_key)
_unseen = inlined(keys.unseen)
_next_refresh = inlined(keys.next_refresh)
_add = inlined(moments.add)
_merge = inlined(moments.merge)
_spend = inlined(money.spend)
_affordable = inlined(money.affordable)


# ---- keys


@internal
def evaluate(book: Book, k: int) -> int:
    """Ask the strategy about arm k, if that is due; BAD_VARIANCE if its variance is not a finite number >= 0."""
    arm, header = book.arms[k], book.header
    if arm.count < header.warmup or arm.retired != 0:
        return DONE
    # Read before the call, so that they need not be read again after it.
    scale, exponent = arm.scale, header.exponent
    v = call_variance(
        book.functions.variance,
        float(arm.count),
        arm.mean,
        arm.m2,
        book.memory,
        header.pooled_at,
        own_at(header, k),
        book.rule,
    )
    fine = 0 <= v < math.inf
    book.arms[k].top = _key(v, 1.0, scale, exponent) if fine else 0.0
    return DONE if fine else BAD_VARIANCE


@inlined
def closed(book: Book, k: int) -> bool:
    """Return whether arm k is not to be asked for: it is retired, or its population is used up."""
    at = book.header.sizes_at
    return book.arms[k].retired != 0 or (at != 0 and float(book.arms[k].pulls) >= book.memory[at + k])


@inlined
def key_of(book: Book, k: int) -> float:
    """Return the key of arm k; that of a closed arm is below all others."""
    if closed(book, k):
        return -math.inf
    arm, header = book.arms[k], book.header
    pulls = float(arm.pulls)
    if arm.count < header.warmup or pulls == 0:
        return _warmup_key(pulls)
    key = arm.top / pulls
    if header.sizes_at != 0:
        key *= _unseen(pulls, book.memory[header.sizes_at + k], header.finite_exponent)
    return key


@inlined
def requeue(book: Book, k: int) -> None:
    """Put arm k where its pulls belong in the queue of pulls, if there is one: last where it is closed."""
    if book.functions.floor != 0:
        change(book.by_pulls, k, -math.inf if closed(book, k) else -float(book.arms[k].pulls))


@inlined
def rekey_all(book: Book) -> int:
    """Ask the strategy about every arm, and put all of them where their keys belong."""
    answer = DONE
    for i in range(book.header.arms):
        k = arm_at(book.by_key, i)
        if evaluate(book, k) == BAD_VARIANCE:
            answer = BAD_VARIANCE
        book.by_key[i].score = key_of(book, k)
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
                arm.mean,
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


@inlined
def pulls_of(arm: Any) -> float:
    """Return the pulls of an arm, as the scores of a queue have them."""
    return float(arm.pulls)


@inlined
def under_floor(book: Book, t: int) -> int:
    """Return the least pulled arm if it has fewer pulls than the floor after t pulls, else NO_ARM; or BAD_FLOOR."""
    if book.functions.floor == 0:
        return NO_ARM
    floor = call_floor(book.functions.floor, float(t), float(book.header.arms), book.memory, book.rule)
    if math.isnan(floor):
        return BAD_FLOOR
    return least_pulled(book.by_pulls, book.arms, pulls_of, floor)


@inlined
def can_pay(book: Book, cost: float) -> bool:
    """Return whether a sample of this cost can be paid for."""
    return _affordable(cost, book.header.spent, book.header.carry, book.header.limit)


@internal
def best_affordable(book: Book, t: int) -> int:
    """Return the arm that is wanted most of those that are not closed and can be paid for; NO_ARM if none can be."""
    least, best, best_key = NO_ARM, NO_ARM, 0.0
    for i in range(book.header.arms):
        k = arm_at(book.by_key, i)
        arm = book.arms[k]
        if closed(book, k) or not can_pay(book, arm.cost):
            continue
        fewest = book.arms[least].pulls if least != NO_ARM else arm.pulls + 1
        if arm.pulls < fewest or (arm.pulls == fewest and k < least):
            least = k
        key = book.by_key[i].score
        if best == NO_ARM or key > best_key or (key == best_key and k < best):
            best, best_key = k, key
    if best == NO_ARM or book.functions.floor == 0:
        return best
    floor = call_floor(book.functions.floor, float(t), float(book.header.arms), book.memory, book.rule)
    return least if book.arms[least].pulls < floor else best


@inlined
def pay(book: Book, cost: float) -> None:
    """Add a cost to what is spent; a refund is negative."""
    book.header.spent, book.header.carry = _spend(book.header.spent, book.header.carry, cost)


@inlined
def wanted(book: Book, t: int) -> int:
    """Return the arm to ask for after t pulls, whatever it costs; NO_ARM if all are closed; or BAD_FLOOR."""
    k = under_floor(book, t)
    if k != NO_ARM:
        return k
    return NO_ARM if book.by_key[0].score == -math.inf else arm_at(book.by_key, 0)


@inlined
def hand_out(book: Book, tickets: Any, i: int, k: int) -> None:
    """Make ticket i one of arm k."""
    book.arms[k].pulls += 1
    change(book.by_key, k, key_of(book, k))
    if book.header.sizes_at != 0 and closed(book, k):
        requeue(book, k)
    ticket = tickets[i]
    ticket.arm = k
    ticket.status = IN_FLIGHT
    ticket.value = math.nan


@borrowing
def ask(memory: Any, rule: Any, ticket_memory: Any, first: int, t: int, m: int) -> int:
    """
    Hand out m tickets from the id `first` on, after t pulls, or as many as there are open arms for; return how many.

    Where the floor is not a number it stops and returns -1 less the number of tickets handed out.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(m):
        k = wanted(book, t + j)
        if k == NO_ARM:
            return j
        if k == BAD_FLOOR:
            return -1 - j
        hand_out(book, tickets, first + j, k)
    return m


@borrowing
def ask_paid(memory: Any, rule: Any, ticket_memory: Any, first: int, t: int, m: int) -> int:
    """
    Hand out up to m tickets where samples have costs, as many as can be paid for; return how many, as `ask` does.

    A look at every arm is taken only where the one that is wanted cannot be paid for, near the end.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(m):
        # Before the heap of pulls is touched: a log has no trace of asks that came to nothing.
        if not can_pay(book, book.header.cheapest):
            return j
        k = wanted(book, t + j)
        if k == BAD_FLOOR:
            return -1 - j
        if k != NO_ARM and not can_pay(book, book.arms[k].cost):
            k = best_affordable(book, t + j)
        if k == NO_ARM:
            return j
        pay(book, book.arms[k].cost)
        hand_out(book, tickets, first + j, k)
    return m


@borrowing
def ask_for(memory: Any, rule: Any, ticket_memory: Any, first: int, t: int, arms: Any) -> None:
    """Hand out tickets of these arms, whatever the strategy and the budget say."""
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(len(arms)):
        # Puts the heap of pulls right as far as `ask` does, so that the state is the same to the bit.
        under_floor(book, t + j)
        if book.header.priced != 0:
            pay(book, book.arms[arms[j]].cost)
        hand_out(book, tickets, first + j, arms[j])


# ---- telling


@inlined
def possible(header: Any, value: float) -> bool:
    """Return whether a value lies in the support; NaN and infinities do not."""
    if header.binary != 0:
        return value == 0.0 or value == 1.0
    return header.low <= value and value <= header.high


@inlined
def check(header: Any, ticket: Any, arm: int, value: float) -> int:
    """Return whether this value may be told for this ticket, which is said to be of this arm."""
    if ticket.arm != arm:
        return OTHER_ARM
    if not possible(header, value):
        return OUTSIDE
    if ticket.status == ANSWERED or ticket.status == ANSWERED_LATE:
        return KNOWN if ticket.value == value else CONFLICT
    return DONE


@internal
def take(book: Book, k: int, count: int, mean: float, m2: float, landed: int) -> int:
    """Add samples of arm k to what is known, `landed` of which were in flight."""
    arm, header = book.arms[k], book.header
    if count == 1:
        _, arm.mean, arm.m2 = _add(arm.count, arm.mean, arm.m2, mean)
    else:
        _, arm.mean, arm.m2 = _merge(arm.count, arm.mean, arm.m2, count, mean, m2)
    arm.count += count
    arm.pulls += count - landed
    if header.sizes_at != 0 and count > landed and closed(book, k):
        requeue(book, k)
    if book.functions.keep != 0:
        call_keep(
            book.functions.keep,
            mean if count == 1 else math.nan,
            float(arm.count),
            arm.mean,
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
    change(book.by_key, k, key_of(book, k))
    return answer


@inlined
def arm_of(ticket: Any) -> int:
    """Return the place of a ticket's arm, as wide as every other place, so that `take` is compiled once."""
    return np.int64(ticket.arm)  # type: ignore[return-value]


@inlined
def answered(ticket: Any, value: float) -> None:
    """Write the value of a ticket down."""
    ticket.status = ANSWERED_LATE if ticket.status == FORGOTTEN else ANSWERED
    ticket.value = value


@borrowing
def tell(memory: Any, rule: Any, ticket_memory: Any, i: int, arm: int, value: float) -> int:
    """Take the value of ticket i, which is said to be of this arm; a forgotten ticket's counts too."""
    book, ticket = open_book(memory, rule), tickets_of(ticket_memory)[i]
    answer = check(book.header, ticket, arm, value)
    if answer != DONE:
        return answer
    landed = 1 if ticket.status == IN_FLIGHT else 0
    answered(ticket, value)
    return take(book, arm, 1, value, 0.0, landed)


@borrowing
def tell_many(memory: Any, rule: Any, ticket_memory: Any, ids: Any, values: Any, before: Any) -> tuple[int, int]:
    """
    Take the values of many tickets, in order, or of none.

    Return the answer, and the place of the first that was refused or of the last that was taken with a bad variance.
    `before` is room for the status of each ticket.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(len(ids)):
        ticket = tickets[ids[j]]
        answer = check(book.header, ticket, ticket.arm, values[j])
        if answer in (OUTSIDE, CONFLICT):
            # Undo, last first, so that a ticket that came twice ends as it was.
            for i in range(j - 1, -1, -1):
                if before[i] == IN_FLIGHT or before[i] == FORGOTTEN:
                    tickets[ids[i]].status = before[i]
                    tickets[ids[i]].value = math.nan
            return answer, j
        before[j] = ticket.status
        if answer == DONE:
            answered(ticket, values[j])
    worst, bad = DONE, -1
    for j in range(len(ids)):
        if before[j] == IN_FLIGHT or before[j] == FORGOTTEN:
            landed = 1 if before[j] == IN_FLIGHT else 0
            if take(book, arm_of(tickets[ids[j]]), 1, values[j], 0.0, landed) == BAD_VARIANCE:
                worst, bad = BAD_VARIANCE, j
    return worst, bad


@borrowing
def tell_moments(memory: Any, rule: Any, k: int, count: int, mean: float, m2: float) -> int:
    """Take samples of arm k from elsewhere, for which no ticket was handed out."""
    return take(open_book(memory, rule), k, count, mean, m2, 0)


# ---- forgetting and retiring


@borrowing
def forget(memory: Any, rule: Any, ticket_memory: Any, i: int, k: int) -> int:
    """Give ticket i of arm k back; CONFLICT if it was answered, KNOWN if it was given back before."""
    book, ticket = open_book(memory, rule), tickets_of(ticket_memory)[i]
    if ticket.arm != k:
        return OTHER_ARM
    if ticket.status != IN_FLIGHT:
        return KNOWN if ticket.status == FORGOTTEN else CONFLICT
    arm = book.arms[k]
    ticket.status = FORGOTTEN
    arm.pulls -= 1
    if book.header.priced != 0:
        pay(book, -arm.cost)
    requeue(book, k)
    change(book.by_key, k, key_of(book, k))
    return DONE


@borrowing
def retire(memory: Any, rule: Any, k: int, retired: int) -> int:
    """Let arm k come last in both heaps, or, with `retired` 0, where it belongs."""
    book = open_book(memory, rule)
    book.arms[k].retired = retired
    requeue(book, k)
    answer = evaluate(book, k)
    change(book.by_key, k, key_of(book, k))
    return answer


# ---- folding a log


@borrowing
def fold(memory: Any, rule: Any, ticket_memory: Any, first: int, t: int, told: Any, places: Any, values: Any) -> int:
    """
    Apply asks and answers in the order in which they happened; return the position of one that cannot be, else -1.

    `told` says which of them are answers. `places` are arms of asks and ids of answered tickets.
    """
    book, tickets = open_book(memory, rule), tickets_of(ticket_memory)
    for j in range(len(places)):
        if not told[j]:
            under_floor(book, t)
            if book.header.priced != 0:
                pay(book, book.arms[places[j]].cost)
            hand_out(book, tickets, first, places[j])
            first += 1
            t += 1
            continue
        ticket = tickets[places[j]]
        if check(book.header, ticket, ticket.arm, values[j]) != DONE:
            return j
        landed = 1 if ticket.status == IN_FLIGHT else 0
        answered(ticket, values[j])
        take(book, arm_of(ticket), 1, values[j], 0.0, landed)
    return -1
