"""Adaptive concurrency: the number of simultaneous calls."""

from __future__ import annotations

import asyncio

import pytest

from karat.llm.budget import AdaptiveConcurrency


def run(test):
    async def whole():
        async with asyncio.timeout(10):
            await test()

    asyncio.run(whole())


async def filled(limiter, count):
    return [await limiter.enter() for _ in range(count)]


async def waits(limiter):
    turn = asyncio.create_task(limiter.enter())
    await asyncio.sleep(0)
    return turn if not turn.done() else None


def test_an_overload_halves_the_limit_once_for_all_calls_in_flight():
    async def test():
        limiter = AdaptiveConcurrency(8)
        for entered in await filled(limiter, 8):
            limiter.overload(entered)
        assert limiter.limit == 4
        for _ in range(5):
            limiter.leave()
        limiter.overload(await limiter.enter())
        assert limiter.limit == 2

    run(test)


def test_never_fewer_than_one_and_never_more_than_most():
    async def test():
        limiter = AdaptiveConcurrency(4)
        for _ in range(10):
            limiter.overload(await limiter.enter())
            limiter.leave()
        assert limiter.limit == 1
        assert int(limiter.limit) == 1
        for _ in range(1000):
            limiter.success()
        assert limiter.limit == 4

    run(test)


def test_a_round_of_successes_adds_one():
    limiter = AdaptiveConcurrency(100)
    limiter.limit = 10.0
    for _ in range(10):
        limiter.success()
    assert limiter.limit == pytest.approx(11, abs=0.1)


def test_waiting_calls_enter_in_order():
    async def test():
        limiter = AdaptiveConcurrency(2)
        await filled(limiter, 2)
        first, second = await waits(limiter), await waits(limiter)
        limiter.leave()
        await first
        assert not second.done()
        limiter.leave()
        await second

    run(test)


def test_a_cancelled_call_frees_its_place():
    async def test():
        limiter = AdaptiveConcurrency(1)
        await limiter.enter()
        first, second, third = [await waits(limiter) for _ in range(3)]
        first.cancel()
        limiter.leave()  # the turn of the first comes in the moment that it is cancelled
        second.cancel()
        await asyncio.wait([first, second, third])
        assert not third.cancelled()

    run(test)


def test_a_pause_blocks_all_and_ends_even_if_the_clock_is_behind(monkeypatch):
    async def test():
        limiter = AdaptiveConcurrency(4)
        limiter.pause(1000)
        turn = await waits(limiter)
        assert turn is not None
        limiter._resume(limiter._paused_until - 1)  # a shorter pause that was asked for earlier
        await asyncio.sleep(0)
        assert not turn.done()
        limiter._resume(limiter._paused_until)
        await turn

    run(test)
