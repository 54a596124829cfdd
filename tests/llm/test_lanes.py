"""How many calls are made at once."""

from __future__ import annotations

import asyncio

import pytest

from karat.llm.budget import Lanes


def run(test):
    async def whole():
        async with asyncio.timeout(10):
            await test()

    asyncio.run(whole())


async def filled(lanes, count):
    return [await lanes.enter() for _ in range(count)]


async def waits(lanes):
    turn = asyncio.create_task(lanes.enter())
    await asyncio.sleep(0)
    return turn if not turn.done() else None


def test_trouble_halves_once_for_all_that_were_under_way():
    async def test():
        lanes = Lanes(8)
        for entered in await filled(lanes, 8):
            lanes.worse(entered)
        assert lanes.limit == 4
        for _ in range(5):
            lanes.leave()
        lanes.worse(await lanes.enter())
        assert lanes.limit == 2

    run(test)


def test_never_fewer_than_one_and_never_more_than_most():
    async def test():
        lanes = Lanes(4)
        for _ in range(10):
            lanes.worse(await lanes.enter())
            lanes.leave()
        assert lanes.limit == 1
        assert int(lanes.limit) == 1
        for _ in range(1000):
            lanes.better()
        assert lanes.limit == 4

    run(test)


def test_a_round_of_answers_adds_one():
    lanes = Lanes(100)
    lanes.limit = 10.0
    for _ in range(10):
        lanes.better()
    assert lanes.limit == pytest.approx(11, abs=0.1)


def test_who_waits_enters_in_turn():
    async def test():
        lanes = Lanes(2)
        await filled(lanes, 2)
        first, second = await waits(lanes), await waits(lanes)
        lanes.leave()
        await first
        assert not second.done()
        lanes.leave()
        await second

    run(test)


def test_who_gives_up_leaves_the_lane_to_others():
    async def test():
        lanes = Lanes(1)
        await lanes.enter()
        first, second, third = [await waits(lanes) for _ in range(3)]
        first.cancel()
        lanes.leave()  # the turn of the first comes in the moment that it is cancelled
        second.cancel()
        await asyncio.wait([first, second, third])
        assert not third.cancelled()

    run(test)


def test_a_pause_holds_all_and_ends_even_if_the_clock_is_behind(monkeypatch):
    async def test():
        lanes = Lanes(4)
        lanes.pause(1000)
        turn = await waits(lanes)
        assert turn is not None
        lanes._resume(lanes._until - 1)  # a shorter pause that was asked for earlier
        await asyncio.sleep(0)
        assert not turn.done()
        lanes._resume(lanes._until)
        await turn

    run(test)
