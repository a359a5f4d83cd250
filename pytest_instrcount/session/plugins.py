"""Other plugins are asked, and told: hooks called one plugin at a time, so that errors have a name."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_instrcount.callgrind.facts import shown_names
from pytest_instrcount.config.child_spec import ChildSpec, merge_specs
from pytest_instrcount.config.given import Given
from pytest_instrcount.config.hooks import without_wrappers
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import Limit, parse_limit
from pytest_instrcount.host.account.randomness import keep_random_state


def answers(
    config: pytest.Config, hook: Any, arguments: Mapping[str, object]
) -> Iterator[tuple[str, Any]]:
    """Plugin and answer of each implementation, in pluggy's order; None is no answer.

    ``hook`` is that of a config or an item. Raises pytest.UsageError where a plugin fails.
    """
    for plugin, call in _callers(config, hook):
        found = _call(plugin, hook.name, call, arguments)
        for answer in [found] if hook.spec.opts["firstresult"] else found:
            if answer is not None:
                yield plugin, answer


def tell(config: pytest.Config, hook: Any, **arguments: object) -> list[pytest.UsageError]:
    """Tell all plugins, those behind one that fails, too; returns what went wrong."""
    errors = []
    for plugin, call in _callers(config, hook):
        try:
            _call(plugin, hook.name, call, {"config": config, **arguments})
        except pytest.UsageError as error:
            errors.append(error)
    return errors


def _callers(config: pytest.Config, hook: Any) -> list[tuple[str, Callable[..., Any]]]:
    """For each plugin that implements a hook, what calls it alone, within the wrappers of all."""
    found = hook.get_hookimpls()
    everywhere = {each.plugin for each in getattr(config.hook, hook.name).get_hookimpls()}
    elsewhere = everywhere - {each.plugin for each in found}  # conftests of other folders
    asked = without_wrappers(hook)
    plugins = {each.plugin for each in asked}
    subset = config.pluginmanager.subset_hook_caller
    return [
        (each.plugin_name, subset(hook.name, elsewhere | plugins - {each.plugin})) for each in asked
    ]


def _call(plugin: str, hook: str, call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        with keep_random_state():
            return call(**arguments)
    except (pytest.UsageError, pytest.exit.Exception):
        raise
    except InstrcountError as error:
        raise _refused(plugin, hook, error.why, error.fix) from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        what = "".join(traceback.format_exception_only(type(error), error)).strip()
        raise pytest.UsageError(
            f"instrcount: the plugin {plugin} failed in its {hook} [hook]\n"
            f"{last.filename}:{last.lineno}: {what}\n  fix: {_without(plugin)}"
        ) from error


def _refused(plugin: str, hook: str, why: str, fix: str) -> pytest.UsageError:
    return pytest.UsageError(
        f"instrcount: the plugin {plugin} gave from its {hook} what is not to be used "
        f"[hook-answer]\n{why}\n  fix: {fix}, or {_without(plugin)}"
    )


def _without(plugin: str) -> str:
    """The option that disables a plugin; a conftest's name is its path."""
    if plugin.endswith("conftest.py"):
        return f"mend {os.path.relpath(plugin)}"
    return f"pytest -p no:{plugin}    # without that plugin"


def consult(
    config: pytest.Config, settings: Settings, known: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """The settings and the facts of the environment, with what plugins add to them.

    ``known`` are the facts so far. Raises pytest.UsageError, which names the plugin.
    """
    specs: list[tuple[str, ChildSpec]] = []
    hook = config.hook.pytest_instrcount_child
    for plugin, answer in answers(config, hook, {"config": config}):
        if not isinstance(answer, ChildSpec):
            why = f"{answer!r} is no ChildSpec"
            raise _refused(plugin, hook.name, why, 'return ChildSpec(variables={"NAME": "value"})')
        specs.append((plugin, answer))
    with as_usage_errors():
        spec = merge_specs(specs)
    let_through = (*settings.let_through, *spec.let_through)
    settings = replace(settings, let_through=let_through, child=spec)
    if spec.isolation is not None and Given(config).value("instrcount_isolation") is None:
        settings = replace(settings, isolation=spec.isolation)
    facts = {**known, "let_through": shown_names(let_through), **spec.facts()}
    return settings, facts | _ask_for_facts(config, facts)


def _ask_for_facts(config: pytest.Config, known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    whose: dict[str, str] = {}
    hook = config.hook.pytest_instrcount_environment
    for plugin, answer in answers(config, hook, {"config": config}):
        if not isinstance(answer, Mapping) or not all(
            isinstance(each, str) for pair in answer.items() for each in pair
        ):
            why, fix = f"{answer!r} is no mapping of texts", 'return {"name": "value"}'
            raise _refused(plugin, hook.name, why, fix)
        for name, value in answer.items():
            if name in known or name == "child":
                why = f"the fact {name!r} is this plugin's own"
                raise _refused(plugin, hook.name, why, "give it another name")
            if found.setdefault(name, value) != value:
                why = f"{name!r} is {value!r}, and {found[name]!r} from {whose[name]}"
                raise _refused(plugin, hook.name, why, "give it another name")
            whose.setdefault(name, plugin)
    return dict(sorted(found.items()))


def ask_for_limit(item: pytest.Item, limit: Limit) -> Limit:
    """The limit that a plugin has for a test, else ``limit``. Raises pytest.UsageError."""
    hook = item.ihook.pytest_instrcount_limit
    for plugin, answer in answers(item.config, hook, {"item": item, "limit": limit}):
        try:
            return parse_limit(answer)
        except InstrcountError as error:
            why = f"{item.nodeid}: {error.why}"
            raise _refused(plugin, hook.name, why, 'return a limit, like "2%"') from None
    return limit
