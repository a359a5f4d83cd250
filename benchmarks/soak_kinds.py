"""Tests of the kinds that the soak has beside calls of the standard library: what a run makes and leaves."""

import asyncio
import json
import subprocess
import sys
import unittest

import pytest

pytestmark = pytest.mark.instrcount


def crunch(size):
    return sum(number * number for number in range(size))


async def step(size):
    await asyncio.sleep(0)
    return crunch(size)


@pytest.fixture(scope="module")
def document():
    return json.dumps({str(number): [number] * 3 for number in range(40)})


def test_files(tmp_path, document):
    path = tmp_path / "document.json"
    path.write_text(document)
    assert json.loads(path.read_text())


def test_fixture(instrcount, document):
    assert instrcount(json.loads, document)


def test_set_up_each_time(instrcount):
    def take(items):
        while items:
            items.pop()

    instrcount.pedantic(take, setup=lambda: ((list(range(500)),), {}))


def test_loop(instrcount):
    async def gather():
        return await asyncio.gather(*(step(50) for _ in range(10)))

    assert len(instrcount(lambda: asyncio.run(gather()))) == 10


def test_awaited(instrcount):
    assert asyncio.run(instrcount(step, 100))


def test_process(tmp_path):
    subprocess.run([sys.executable, "-c", "pass"], cwd=tmp_path, check=True)


def test_output(capsys):
    print("a line\n" * 1000)
    assert capsys.readouterr().out


class TestMethods(unittest.TestCase):
    def setUp(self):
        self.numbers = [crunch(1000)]
        self.addCleanup(crunch, 1000)

    def test_method(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertTrue(self.numbers)


class TestCoroutines(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # under a load it takes longer than asyncio's debug mode lets pass in silence
        self.assertTrue(await step(20_000))

    async def test_method(self):
        self.assertTrue(await step(100))
