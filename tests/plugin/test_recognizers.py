"""Objects that traces of tests tell apart: named in the ini, given by a hook, or torch's."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

# Recognizer: the runs within this one are to find the class that is imported here
from pytest_instrcount import Recognizer, hookspec
from tests.plugin.conftest import Project

MODELS = """
    class Model:
        def fit(self, n):
            return self.score() + n

        def score(self):
            return 1

    class Cache:
        def get(self, key):
            return key
    """

TRACED = """
    from models import Cache, Model

    def test_a(trace_profile):
        first, second = Model(), Model()
        with trace_profile:
            first.fit(1)
            second.fit(2)
            Cache().get(3)
            first.fit(4)
        found = [(n.name, str(n.object.cls), n.object.number)
                 for n in trace_profile.tree.walk() if n.object]
        print(found)
        print(trace_profile.tree.to_text())
        print([each.module for each in trace_profile.events])
    """


def ini(project: Project, *names: str) -> None:
    lines = "".join(f"\n    {name}" for name in names)
    project.pytester.makeini(f"[pytest]\ninstrcount_recognizers ={lines}\n")


# --- named in the ini -----------------------------------------------------------------------------


def test_without_any_all_are_one(project: Project) -> None:
    """Nothing is named, so calls are put together by function, and there is no column of modules."""
    project.write(TRACED, models=MODELS)
    result = project.run("-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*[[][]]", "models.Model.fit  3", "  models.Model.score  3", "models.Cache.get  1"]
    )


def test_classes_that_the_ini_names(project: Project) -> None:
    """All methods of a class, or one; a node has the object, and the text its number."""
    project.write(TRACED, models=MODELS)
    ini(project, "models.Model", "models.Cache.get")
    result = project.run("-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*('models.Model.fit', 'Model', 0), ('models.Model.score', 'Model', 0), *",
            "models.Model.fit [[]Model #0]  2",
            "  models.Model.score [[]Model #0]  2",
            "models.Model.fit [[]Model #1]  1",
            "  models.Model.score [[]Model #1]  1",
            "models.Cache.get [[]Cache #0]  1",
            "*'Model #0', 'Model #0', 'Model #1', 'Model #1', 'Cache #0', 'Model #0', 'Model #0']",
        ]
    )


def test_a_failure_names_the_objects(project: Project) -> None:
    """Where a ceiling is passed, the branches say whose calls they are."""
    project.write(
        """
        import pytest
        from models import Model

        @pytest.mark.trace_profile(max_calls={"models:Model.fit": 1})
        def test_a():
            Model().fit(1) + Model().fit(2)
        """,
        models=MODELS,
    )
    ini(project, "models.Model")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "models:Model.fit: 2 calls, at most 1 allowed",
            "  test_it.test_a  1",
            "    models.Model.fit [[]Model #0]  1",
            "    models.Model.fit [[]Model #1]  1",
        ]
    )


@pytest.mark.parametrize("args", [(), ("--instrcount",)])
def test_names_of_nothing(project: Project, args: tuple[str, ...]) -> None:
    """All are told at once, with what to type, before any test runs."""
    project.write(
        TRACED + "\n    def test_first():\n        open('ran', 'w').close()\n", models=MODELS
    )
    project.write(broken="1 / 0")
    ini(project, "models.Modle", "models.Model", "no_such.Class", "broken.Class")
    result = project.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: instrcount: wrong classes to recognise [[]trace-recognizer]",
            "instrcount_recognizers: models.Modle is no class with methods written in Python",
            "  fix: python -c 'import models', then name it as pkg.module.Class",
            "instrcount_recognizers: no_such.Class is no class with methods written in Python",
            "instrcount_recognizers: broken.Class cannot be imported: ZeroDivisionError: *",
            "  fix: python -c 'import broken'",
        ]
    )
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    assert not (project.path / "ran").exists()


def test_nothing_is_looked_up_where_nothing_is_traced(project: Project) -> None:
    """A run without traced tests, and one that only collects, import nothing."""
    project.write("def test_a(): pass", broken="1 / 0")
    ini(project, "broken.Class")
    project.run().assert_outcomes(passed=1)
    project.write(TRACED, models=MODELS)
    assert project.run("--collect-only").ret == pytest.ExitCode.OK


def test_the_page(project: Project) -> None:
    """What docs/reference/trace-profile.md shows is what to_text() gives, and its hook works."""
    page = (Path(__file__).parents[2] / "docs/reference/trace-profile.md").read_text()
    section = page.partition('<a id="objects"></a>')[2]
    text = section.partition("```text\n")[2].partition("```")[0]
    hook = section.partition("```python\n")[2].partition("```")[0]
    (project.path / "app").mkdir()
    (project.path / "app/models.py").write_text("class Model:\n    def fit(self): pass\n")
    model = "class Model:\n    def fit(self): self.score()\n    def score(self): pass\n"
    (project.path / "app/__init__.py").write_text(model)
    cache = "class Cache(dict):\n    def get(self, key): pass\n"
    (project.path / "app/cache.py").write_text(cache)
    (project.path / "conftest.py").write_text(hook)
    project.write(
        test_fit="""
        import pytest
        from app import Model
        from app.cache import Cache
        from app.models import Model as Other

        @pytest.fixture
        def shown(trace_profile):
            yield
            print(trace_profile.tree.to_text())

        @pytest.mark.trace_profile
        def test_fit(shown):
            first = Model()
            first.fit()
            first.fit()
            Model().fit()

        def test_hook(trace_profile):
            with trace_profile:
                Cache(a=1).get("a")
                Other().fit()
            found = [node.object for node in trace_profile.tree.walk() if node.object]
            assert [each.cls for each in found] == ["Cache", "Model"]
            assert found[0].parameters[0].shape == (1,)
        """
    )
    ini(project, "app.Model.fit")
    result = project.run("-s")
    result.assert_outcomes(passed=2)
    assert text in result.stdout.str()


# --- given by a hook ------------------------------------------------------------------------------


def test_the_hook(project: Project) -> None:
    """What conftests give is put together with the ini's; the hook is asked once."""
    project.write(
        TRACED + "\n    def test_again(trace_profile):\n        trace_profile(Model().fit, 1)\n",
        models=MODELS,
        conftest="""
            from models import Model
            from pytest_instrcount import Parameter, Recognizer

            def pytest_instrcount_recognizers(config):
                print("asked", config.rootpath)
                weights = lambda self: [Parameter("weights", shape=(3,))]
                return [Recognizer(Model.fit.__code__, weights)]
            """,
    )
    ini(project, "models.Cache")
    result = project.run("-s")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            f"asked {project.path}",
            "*('models.Model.fit', 'Model', 0), ('models.Model.fit', 'Model', 1), *",
            "models.Model.fit [[]Model #0]  2",
            "  models.Model.score  2",
            "models.Model.fit [[]Model #1]  1",
            "  models.Model.score  1",
            "models.Cache.get [[]Cache #0]  1",
        ]
    )
    assert result.stdout.str().count("asked") == 1


def test_the_hooks_own_example(project: Project) -> None:
    """What its docstring shows works in a conftest."""
    text = hookspec.pytest_instrcount_recognizers.__doc__ or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert len(examples) == 4
    assert Recognizer.__name__ in examples[0].source
    project.write(
        """
        def test_a(trace_profile, cache):
            trace_profile(cache.get, "key")
            (found,) = [node.object for node in trace_profile.tree.walk() if node.object]
            assert (found.cls, found.number) == ("Cache", 0)
            assert [(each.name, each.shape) for each in found.parameters] == [("entries", (7,))]
        """
    )
    fixture = "import pytest\n\n@pytest.fixture\ndef cache():\n    return Cache(7)\n"
    conftest = project.path / "conftest.py"
    conftest.write_text("".join(each.source for each in examples) + fixture)
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("given", "shown"), [("['models.Model']", "'models.Model'"), ("Model.fit", "*Model.fit*")]
)
def test_a_hook_that_gives_something_else(project: Project, given: str, shown: str) -> None:
    """It is shown, with what to write, before any test runs."""
    project.write(
        TRACED,
        models=MODELS,
        conftest=f"""
            from models import Model

            def pytest_instrcount_recognizers():
                return {given}
            """,
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"pytest_instrcount_recognizers gave {shown}, which is no Recognizer",
            '  fix: return recognize_class("package.module.Class")',
        ]
    )


def test_a_hook_that_gives_none(project: Project) -> None:
    """None of it is left out by pytest."""
    conftest = "def pytest_instrcount_recognizers():\n    pass"
    project.write(TRACED, models=MODELS, conftest=conftest)
    project.run().assert_outcomes(passed=1)


def test_the_hook_is_not_asked_in_vain(project: Project) -> None:
    """Where no test is traced."""
    conftest = "def pytest_instrcount_recognizers():\n    1 / 0"
    project.write("def test_a(): pass", conftest=conftest)
    project.run().assert_outcomes(passed=1)


# --- torch's --------------------------------------------------------------------------------------

TORCH = """
    class nn:
        class Module:
            def __call__(self):
                pass

    class optim:
        class Optimizer:
            def _optimizer_step_code(self):
                pass

            def step(self):
                self._optimizer_step_code()
    """


def test_torch_if_it_is_imported_when_a_trace_starts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never is by us."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    project.write(
        """
        import sys

        def use():
            import torch

            class Linear(torch.nn.Module):
                pass

            Linear()()
            torch.optim.Optimizer().step()

        def objects(tree):
            return [(node.object.cls, node.object.number) for node in tree.walk() if node.object]

        def test_a(trace_profile):
            trace_profile(len, "")
            assert "torch" not in sys.modules
            trace_profile(use)
            assert objects(trace_profile.tree) == []
            trace_profile(use)
            assert objects(trace_profile.tree) == [("Linear", 0), ("Optimizer", 0)]
        """,
        torch=TORCH,
    )
    project.run().assert_outcomes(passed=1)
