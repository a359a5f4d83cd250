"""The project of a reader who copies the examples of the docs: what these take for granted."""

from __future__ import annotations

#: Names that examples use; their files begin with ``from mine import *``.
MINE = """
import functools, os, random, re, unittest
import pytest
from app.db import list_users

DOCUMENT = HEADER = SMALL_DOCUMENT = PAGE = "name: value"
PATTERN = "a+"
template = "Hello"

def parse(text, quick=False):
    return text.split()

def parse_header(text):
    return text.partition(":")

def render(template, name=""):
    return f"<h1>{template} {name}</h1>"

def load(path):
    return path.read_text()

def make_numbers(size):
    return list(range(size, 0, -1))

def make_names(size):
    return [f"name {number}" for number in range(size)]

def unique(names):
    return list(dict.fromkeys(names))

def sort(numbers):
    return sorted(numbers)

@functools.cache
def parse_pattern(text):
    return re.compile(text)

async def work():
    pass
"""

CONFTEST = """
import pytest
from app.db import Client, Database

@pytest.fixture
def database():
    return Database()

@pytest.fixture
def client(database):
    return Client(database)
"""

DB = """
class Connection:
    def execute(self, text):
        return text

class Database:
    def execute(self, text):
        return Connection().execute(text)

def list_users(database):
    return database.execute("select name from users")

class Client:
    def __init__(self, database):
        self.database = database

    def get(self, path):
        return list_users(self.database)

    async def fetch(self, path):
        return Page()

class Page:
    status = 200
"""

#: As much of torch as a trace asks it for.
TORCH = """
class nn:
    class Module:
        def __call__(self):
            return self.forward()

class optim:
    class Optimizer:
        def _optimizer_step_code(self):
            pass
"""

#: Two layers.
TRAINING = """
import torch

class Linear(torch.nn.Module):
    def forward(self):
        pass

class Sequential(torch.nn.Module):
    def __init__(self):
        self.layers = [Linear(), Linear()]

    def forward(self):
        for layer in self.layers:
            layer()

def train(model, steps):
    for _ in range(steps):
        model()

model = Sequential()
"""

#: Path -> text.
FILES = {
    "mine.py": MINE,
    "conftest.py": CONFTEST,
    "torch.py": TORCH,
    "training.py": TRAINING,
    "app/__init__.py": "",
    "app/db.py": DB,
    "app/models.py": "class Model:\n    def fit(self):\n        pass\n",
    "app/cache.py": "class Cache(dict):\n    def get(self, key):\n        pass\n",
    "tests/test_x.py": """
import pytest

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_noisy(): pass

@pytest.mark.instrcount
def test_parse(): pass
""",
    "slug.py": "",
    "tests/test_plain.py": "def test_plain(): pass\n",
    "tests/test_slug.py": "def test_slugify(instrcount):\n    instrcount(lambda: 'slug')\n",
}
