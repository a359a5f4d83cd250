"""Which tests are counted as if no other plugin were installed (`callgrind.inside.bystanders`)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_instrcount.callgrind.inside.bystanders import say_first_run, start_no_server

#: Each does something around every test.
PLUGIN = """
    import pytest

    def pytest_runtest_setup(item):
        pass

    @pytest.fixture(autouse=True)
    def _everywhere(request, monkeypatch):
        yield

    @pytest.fixture
    def mailbox():
        return []
"""
CONFTEST = """
    from pytest_instrcount.callgrind.inside.bystanders import is_left_alone

    def pytest_collection_finish(session):
        for item in session.items:
            print("\\nalone" if is_left_alone(item, ()) else "\\nrenewed", item.name)
"""


def said_of(
    pytester: pytest.Pytester, source: str, plugin: str = "pytest_django", conftest: str = CONFTEST
) -> str:
    """What is said of the test of this source, with a plugin of this name loaded."""
    pytester.syspathinsert()
    pytester.makeconftest(conftest)
    pytester.makepyfile(**{plugin: PLUGIN})
    pytester.makepyfile(test_it=source)
    options = ("-p", plugin, "-s", "-q", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    result = pytester.runpytest_inprocess(*options, "test_it.py")
    (line,) = (each for each in result.outlines if each.endswith(" test_it"))
    return line.partition(" ")[0]


PLAIN = "def test_it(): pass"


def test_a_plugin_that_a_test_does_not_ask_for(pytester: pytest.Pytester) -> None:
    assert said_of(pytester, PLAIN) == "alone"


def test_a_plugin_that_nobody_knows(pytester: pytest.Pytester) -> None:
    assert said_of(pytester, PLAIN, "pytest_djangoes") == "renewed"


@pytest.mark.parametrize(
    "source",
    [
        "def test_it(mailbox): pass",
        "def test_it(tmp_path): pass",
        "import pytest\n@pytest.mark.filterwarnings('error')\ndef test_it(): pass",
        "import pytest\n@pytest.mark.django_db\ndef test_it(): pass",
        "import pytest\n@pytest.mark.usefixtures('mailbox')\ndef test_it(): pass",
        "def setup_function(): pass\ndef test_it(): pass",
        "def setup_module(): pass\ndef test_it(): pass",
        "import pytest\n@pytest.fixture(autouse=True)\ndef mine(): pass\ndef test_it(): pass",
    ],
)
def test_what_a_test_asks_for_is_renewed(pytester: pytest.Pytester, source: str) -> None:
    assert said_of(pytester, source) == "renewed"


@pytest.mark.parametrize(
    "hook",
    [
        "pytest_runtest_protocol(item)",
        "pytest_fixture_setup(request)",
        "pytest_runtest_call(item)",
        "pytest_runtest_makereport(item)",
        "pytest_pyfunc_call()",
    ],
)
def test_a_hook_of_the_project(pytester: pytest.Pytester, hook: str) -> None:
    hook = CONFTEST + f"\n    def {hook}:\n        pass\n"
    assert said_of(pytester, PLAIN, conftest=hook) == "renewed"


def test_a_fixture_that_a_hook_has_put_in(pytester: pytest.Pytester) -> None:
    """By name, behind the back of pytest's own list, as time-machine does for its marker."""
    hook = (
        CONFTEST
        + """
    def pytest_collection_modifyitems(items):
        items[0].fixturenames.insert(0, "mailbox")
"""
    )
    assert said_of(pytester, PLAIN, conftest=hook) == "renewed"


def test_no_server_for_workers() -> None:
    """Beside pytest-xdist pytest-rerunfailures starts one: its thread gave each test its own process."""
    plugin = SimpleNamespace(HAS_PYTEST_HANDLECRASHITEM=True)
    for found in (plugin, None):
        plugins = SimpleNamespace(getplugin={"rerunfailures": found}.get)
        start_no_server(SimpleNamespace(pluginmanager=plugins))  # type: ignore[arg-type]
    assert not plugin.HAS_PYTEST_HANDLECRASHITEM


@pytest.mark.parametrize("installed", [True, False])
def test_what_reruns_say_of_a_first_run(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, installed: bool
) -> None:
    """Fixtures read it at the test; it is nothing that was given to this one."""
    monkeypatch.setattr(pytest.Function, "execution_count", None, raising=False)
    plugins = SimpleNamespace(hasplugin=lambda name: installed and name == "rerunfailures")
    say_first_run(SimpleNamespace(pluginmanager=plugins))  # type: ignore[arg-type]
    assert request.node.execution_count == (1 if installed else None)
    assert "execution_count" not in vars(request.node)
