"""Known regressions: which function of which module is made slower, how, and which workload runs it.

    python benchmarks/blame_regressions.py FOLDER

writes a project with one test for each of them into FOLDER, with the byte code of the slower
functions beside it, for the interpreter that runs this. A function is made slower by an edit of its
own source: the edited module is compiled under the name of its file, and the code of that one
function is taken from it. So a slower function is the same in all else: name, file, line, caller.

Some get another name, class or file as well, in all that a profile knows a function by: with its new name
it is to be named, and what it was called before.

What is to be named for it is the function whose source was edited, and nothing else. So there is no
regression here whose cause lies in a caller by rights: longer data that a function is handed, or an
``lru_cache`` taken off a function that itself does as before (a cache is lost below within the
function that uses it).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import marshal
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

HERE = Path(__file__).parent
WORKLOADS = (HERE / "noise_workloads", HERE / "blame_workloads")
RECORDING = HERE / "blame_recording.py"

#: In the place of the text to be replaced: lines are put at the start of the function's body.
START = ""


@dataclass(frozen=True, slots=True)
class Regression:
    """One function made slower."""

    name: str
    #: "calls": it calls Python functions more often; "loop": more code of its own; "cache": it does
    #: again what was kept; "C": it calls a C function more often, or with more data; "name": it is
    #: one of these, and has another name as well
    kind: str
    #: the workload, as module.function
    workload: str
    module: str
    #: the qualified name of the function that is edited, which is what must be named
    function: str
    #: what stands in its source, and what is put there
    old: str
    new: str
    #: its new name, as ``file:qualified name``, where it was renamed or moved as well
    renamed: str = ""


R = Regression
# fmt: off
LOOP = "for _ in range({}): pass"
REGRESSIONS = (
    # json
    R("json-join", "C", "test_library.test_json_loads", "json.decoder",
      "JSONDecoder.decode", START, """s = '{'.join(s.split('{'))"""),
    R("json-copied", "C", "test_more.test_json_objects", "json.encoder",
      "_make_iterencode.<locals>._iterencode_dict", "items = dct.items()",
      "items = list(dict(dct).items())"),
    R("json-separator", "loop", "test_more.test_json_objects", "json.encoder",
      "_make_iterencode.<locals>._iterencode_dict", "yield item_separator",
      "yield _item_separator + '\\n' + _indent * _current_indent_level"),
    R("json-default", "C", "test_more.test_json_objects", "json.encoder",
      "_make_iterencode.<locals>._iterencode", "o = _default(o)",
      "o = dict(sorted(_default(o).items()))"),
    R("json-dumps-extra", "calls", "test_more.test_logging", "logging",
      "Formatter.format", START, "import json; json.dumps(record.levelno)"),
    # argparse, configparser, tomllib
    R("argparse-formatter", "calls", "test_library.test_argparse", "argparse",
      "_ActionsContainer.add_argument", "self._get_formatter()._format_args(action, None)",
      "self._get_formatter(); self._get_formatter()._format_args(action, None)"),
    R("argparse-sorted", "C", "test_library.test_argparse", "argparse",
      "ArgumentParser._parse_optional", START,
      "sorted(map(str, [*self._option_string_actions] * 8))"),
    R("configparser-twice", "calls", "test_more.test_configparser", "configparser",
      "BasicInterpolation.before_get", "L = []",
      "self._interpolate_some(parser, option, [], value, section, defaults, 1); L = []"),
    R("configparser-lower", "loop", "test_more.test_configparser", "configparser",
      "RawConfigParser.optionxform", "return optionstr.lower()",
      "return ''.join([letter.lower() for letter in optionstr])"),
    R("configparser-copied", "C", "test_more.test_configparser", "configparser",
      "RawConfigParser._unify_values", START, "dict(self._sections)"),
    R("tomllib-flags", "calls", "test_more.test_tomllib", "tomllib._parser", "key_value_rule",
      "if out.flags.is_(abs_key_parent, Flags.FROZEN):",
      "if out.flags.is_(abs_key_parent, Flags.FROZEN) or "
      "out.flags.is_(abs_key_parent, Flags.FROZEN):"),
    R("tomllib-text", "C", "test_more.test_tomllib", "tomllib._parser", "skip_chars",
      START, "str(pos)"),
    R("tomllib-loop", "loop", "test_more.test_tomllib", "tomllib._parser", "parse_basic_str",
      START, LOOP.format(20)),
    # email
    R("email-lower", "C", "test_more.test_email", "email.message", "Message.get",
      "if k.lower() == name:", "if k.lower().lower() == name:"),
    R("email-sorted", "C", "test_more.test_email", "email.feedparser", "FeedParser._parse_headers",
      START, "sorted(lines * 2)"),
    R("email-pattern", "cache", "test_more.test_email", "email.header", "decode_header",
      "if not ecre.search(header):",
      "if not __import__('re').compile(ecre.pattern, ecre.flags).search(header):"),
    # html
    R("html-unescape", "calls", "test_more.test_html_attributes", "html.parser",
      "HTMLParser.parse_starttag", "attrvalue = unescape(attrvalue)",
      "attrvalue = unescape(unescape(attrvalue))"),
    R("html-pattern", "cache", "test_library.test_html", "html.parser", "HTMLParser.goahead",
      "if starttagopen.match(rawdata, i):", "if re.compile('<[a-zA-Z]').match(rawdata, i):"),
    R("html-sliced", "C", "test_library.test_html", "_markupbase", "ParserBase.updatepos",
      'nlines = rawdata.count("\\n", i, j)', 'nlines = rawdata[:j].count("\\n", i)'),
    # textwrap, string, difflib, pprint
    R("textwrap-sorted", "C", "test_library.test_textwrap", "textwrap", "TextWrapper._split",
      "return chunks", "sorted(chunks); return chunks"),
    R("textwrap-join", "C", "test_library.test_textwrap", "textwrap", "TextWrapper._wrap_chunks",
      "l = len(chunks[-1])", "l = len(''.join(chunks[-1:]))"),
    R("textwrap-translate", "C", "test_library.test_textwrap", "textwrap",
      "TextWrapper._munge_whitespace", "text = text.translate(self.unicode_whitespace_trans)",
      "text = text.translate(self.unicode_whitespace_trans).translate(self.unicode_whitespace_trans)"),
    R("textwrap-indents", "C", "test_more.test_dedent", "textwrap", "dedent",
      "indents = _leading_whitespace_re.findall(text)",
      "indents = sorted(_leading_whitespace_re.findall(text))"),
    R("template-groups", "C", "test_library.test_template", "string",
      "Template.substitute.<locals>.convert", "named = mo.group('named')",
      "named = mo.group('named', 'braced')[0]"),
    R("difflib-copied", "C", "test_library.test_difflib", "difflib",
      "SequenceMatcher.find_longest_match", "newj2len = {}", "newj2len = dict(j2len); newj2len = {}"),
    R("difflib-chain", "loop", "test_library.test_difflib", "difflib",
      "SequenceMatcher.__chain_b", "b2j = b2j = {}",
      "b2j = b2j = {}; _ = [str(each) for each in self.b]"),
    R("pprint-sorted-twice", "calls", "test_more.test_pprint", "pprint",
      "PrettyPrinter._safe_repr", "items = sorted(object.items(), key=_safe_tuple)",
      "items = sorted(sorted(object.items(), key=_safe_tuple), key=_safe_tuple)"),
    R("pprint-joined", "C", "test_more.test_pprint", "pprint", "PrettyPrinter._format",
      "stream.write(rep)", "stream.write(''.join(rep.split()) and rep)"),
    # csv, ast, tokenize, xml, shlex, calendar
    R("csv-copied", "C", "test_library.test_csv", "csv", "DictReader.__next__",
      "d = dict(zip(self.fieldnames, row))", "d = dict(dict(zip(self.fieldnames, row)))"),
    R("csv-writer", "C", "test_more.test_dict_writer", "csv", "DictWriter._dict_to_list",
      START, "sorted(rowdict)"),
    R("ast-name", "C", "test_library.test_ast", "ast", "NodeVisitor.visit",
      "method = 'visit_' + node.__class__.__name__",
      "method = 'visit_' + ''.join(list(node.__class__.__name__))"),
    R("ast-literal", "loop", "test_more.test_literal_eval", "ast",
      "literal_eval.<locals>._convert", START, LOOP.format(4)),
    R("untokenize-loop", "loop", "test_more.test_untokenize", "tokenize",
      "Untokenizer.add_whitespace", START, LOOP.format(15)),
    R("xml-sorted", "C", "test_library.test_xml", "xml.etree.ElementTree", "_serialize_xml",
      "items = list(elem.items())", "items = sorted(sorted(elem.items()) * 2)[::2]"),
    R("shlex-format", "C", "test_more.test_shlex", "shlex", "shlex.read_token",
      "if self.debug >= 3:", "if self.debug >= 3 and str(self.state) or len(nextchar) > 3:"),
    R("calendar-day", "C", "test_more.test_calendar", "calendar", "TextCalendar.formatday",
      "return s.center(width)", "return s.center(width).center(width)[:width]"),
    # urllib, ipaddress, inspect
    R("urlparse-cache", "cache", "test_more.test_urls", "urllib.parse", "urlparse",
      "splitresult = urlsplit(", "splitresult = (urlsplit.__wrapped__ if 'q=7' in url else urlsplit)("),
    R("urllib-unquote", "calls", "test_more.test_urls", "urllib.parse", "quote",
      START, "unquote(string) and unquote(string)"),
    R("urllib-safe", "C", "test_more.test_urls", "urllib.parse", "quote_from_bytes",
      "if not bs.rstrip(", "if not bs.rstrip(b'').rstrip(bytes(sorted(set(safe * 9)))).rstrip("),
    R("ipaddress-octet", "calls", "test_more.test_ipaddress", "ipaddress",
      "_BaseV4._ip_int_from_string", "octets = ip_str.split('.')",
      "octets = ip_str.split('.'); cls._parse_octet(octets[0])"),
    R("inspect-parameter", "loop", "test_more.test_signature", "inspect", "Parameter.__init__",
      START, LOOP.format(20)),
    # datetime, decimal, fractions, statistics, random, heapq
    R("strptime-cache", "cache", "test_more.test_strptime", "_strptime", "_strptime",
      "format_regex = _regex_cache.get(format)",
      "format_regex = _regex_cache.get(format) if len(format) > 5 else None"),
    R("strptime-week", "loop", "test_more.test_strptime", "_strptime",
      "_calc_julian_from_U_or_W", START, LOOP.format(40)),
    R("decimal-digits", "C", "test_more.test_pydecimal", "_pydecimal", "_normalize",
      START, "str(op1.int * 10**90)"),
    R("decimal-work", "calls", "test_more.test_pydecimal", "_pydecimal", "Decimal.__add__",
      "op1 = _WorkRep(self)", "op1 = _WorkRep(self); op1 = _WorkRep(self)"),
    R("decimal-etiny", "calls", "test_more.test_pydecimal", "_pydecimal", "Decimal._fix",
      "Etiny = context.Etiny()", "Etiny = context.Etiny() and context.Etiny()"),
    R("fractions-gcd", "C", "test_more.test_fractions", "fractions", "Fraction._add",
      "g = math.gcd(da, db)", "g = math.gcd(math.gcd(da, db), math.gcd(da, db))"),
    R("fractions-new", "C", "test_more.test_fractions", "fractions", "Fraction.__new__",
      "g = math.gcd(numerator, denominator)",
      "g = math.gcd(numerator, denominator, *list((numerator, denominator)))"),
    R("statistics-ratio", "C", "test_library.test_statistics", "statistics", "_exact_ratio",
      "return x.as_integer_ratio()", "x.as_integer_ratio(); return x.as_integer_ratio()"),
    R("statistics-sorted", "C", "test_library.test_statistics", "statistics", "_ss",
      START, "data = sorted(data)"),
    R("random-abs", "C", "test_more.test_random", "random", "Random.shuffle",
      "j = randbelow(i + 1)", "j = abs(randbelow(i + 1))"),
    R("random-loop", "loop", "test_more.test_random", "random",
      "Random._randbelow_with_getrandbits", START, "n * 3 // 3 - 1 + 1"),
    R("heapq-copied", "C", "test_more.test_heapq", "heapq", "merge",
      "_heapreplace(h, s)      # restore heap condition", "_heapreplace(h, list(s))"),
    R("heapq-sorted", "C", "test_more.test_heapq", "heapq", "nlargest",
      START, "iterable = sorted(iterable)"),
    # collections, dataclasses, enum, logging, functools, contextlib, copy, graphlib
    R("counter-sorted-twice", "C", "test_more.test_heapq", "collections", "Counter.most_common",
      "return sorted(self.items()", "return sorted(sorted(self.items())"),
    R("chainmap-iterator", "C", "test_more.test_chain_map", "collections", "ChainMap.__getitem__",
      "for mapping in self.maps:", "for mapping in iter(self.maps):"),
    R("dataclasses-inner", "loop", "test_more.test_asdict", "dataclasses", "_asdict_inner",
      START, LOOP.format(4)),
    R("dataclasses-replace", "C", "test_more.test_asdict", "dataclasses", "replace",
      START, "changes = dict(sorted(changes.items()))"),
    R("enum-member-map", "C", "test_python.test_enums", "enum", "EnumType.__getitem__",
      "return cls._member_map_[name]", "return dict(cls._member_map_)[name]"),
    R("enum-call", "loop", "test_python.test_enums", "enum", "EnumType.__call__",
      START, "(value == value) is (value == value)"),
    R("logging-cache", "cache", "test_more.test_logging", "logging", "Logger.isEnabledFor",
      START, "self._cache.pop(level, None)"),
    R("logging-record", "calls", "test_more.test_logging", "logging", "LogRecord.__init__",
      "self.module = os.path.splitext(self.filename)[0]",
      "self.module = os.path.splitext(os.path.splitext(self.filename)[0])[0]"),
    R("singledispatch-cache", "cache", "test_more.test_singledispatch", "functools",
      "singledispatch.<locals>.dispatch", START, "if cls is float: dispatch_cache.clear()"),
    R("contextlib-init", "loop", "test_python.test_context_managers", "contextlib",
      "_GeneratorContextManagerBase.__init__", START, LOOP.format(4)),
    R("deepcopy-keys", "calls", "test_more.test_deepcopy", "copy", "_deepcopy_dict",
      "y[deepcopy(key, memo)] =", "y[deepcopy(deepcopy(key, memo), memo)] ="),
    R("deepcopy-alive", "loop", "test_memory.test_deepcopy", "copy", "_keep_alive",
      START, LOOP.format(6)),
    R("graphlib-sorted", "C", "test_more.test_graphlib", "graphlib", "TopologicalSorter.done",
      "n2i = self._node2info", "n2i = self._node2info; sorted(n2i)"),
    R("graphlib-twice", "calls", "test_more.test_graphlib", "graphlib", "TopologicalSorter.add",
      "pred_info = self._get_nodeinfo(pred)",
      "pred_info = self._get_nodeinfo(pred) and self._get_nodeinfo(pred)"),
    # re
    R("re-get", "loop", "test_library.test_regex_compile", "re._parser", "Tokenizer.get",
      "this = self.next", "this = [self.next for _ in (1, 2)][0]"),
    R("re-charset", "C", "test_library.test_regex_compile", "re._compiler", "_optimize_charset",
      "charmap = bytearray(256)", "charmap = bytearray([0] * 256)"),
    # packages
    R("sqlparse-token", "C", "test_packages.test_sqlparse", "sqlparse.sql", "Token.__init__",
      "value = str(value)", "value = ''.join(list(str(value)))"),
    R("sqlparse-lexer", "C", "test_packages.test_sqlparse", "sqlparse.lexer",
      "Lexer.get_tokens", "m = rexmatch(text, pos)", "m = rexmatch(text, int(pos))"),
    R("pygments-joined", "C", "test_packages.test_pygments", "pygments.lexer",
      "Lexer._preprocess_lexer_input", START, "text = ''.join(map(str, text * 4))[:len(text)]"),
    R("pygments-cache", "cache", "test_packages.test_pygments", "pygments.formatters.html",
      "HtmlFormatter._format_lines", "parts = self._translate_parts(value)",
      "parts = [self._translate_parts.__wrapped__(self, value) for _ in (1, 2)][0]"),
    R("markdown-test", "calls", "test_packages.test_markdown", "markdown.blockparser",
      "BlockParser.parseBlocks", "if processor.test(parent, blocks[0]):",
      "if all([processor.test(parent, blocks[0]) for _ in (1, 2, 3)]):"),
    R("mistune-scanner", "cache", "test_packages.test_mistune", "mistune.core",
      "Parser.compile_sc", "sc = self.__sc.get(key)", "sc = self.__sc.get(key) if key == '$' else None"),
    R("pyparsing-new", "C", "test_packages.test_pyparsing", "pyparsing.results",
      "ParseResults.__new__", "self._tokdict = dict()", "self._tokdict = dict(dict(dict()))"),
    R("packaging-search", "C", "test_packages.test_versions", "packaging.version",
      "Version.__init__", "match = self._regex.search(version)",
      "match = self._regex.search(str(version).lower().strip())"),
    R("packaging-key", "C", "test_packages.test_versions", "packaging.version", "_cmpkey",
      START, "release = tuple(sorted(sorted(release), key=str)) and release"),
    R("packaging-check", "cache", "test_packages.test_requirements", "packaging._tokenizer",
      "Tokenizer.check", "expression = self.rules[name]",
      "expression = __import__('re').compile(self.rules[name]) if name == 'AT' else self.rules[name]"),
    # classes of a project
    R("own-init", "loop", "test_python.test_classes", "test_python", "Vector.__init__",
      "self.y = y", "self.y = y; self.y = y; self.y = y; self.y = y"),
    R("own-property", "loop", "test_more.test_shapes", "test_more", "Shape.area",
      START, "self.width * self.height"),
    R("own-super", "C", "test_python.test_slots_and_super", "test_python", "Slotted.add",
      START, "len(self.items)"),
)

#: Some of them, renamed or moved in the same change.
NEW_NAMES = {
    "configparser-lower": "configparser.py:RawConfigParser.lowered",
    "tomllib-text": "tomllib/_parser.py:skip_all",
    "email-lower": "email/message.py:Message.find",
    "html-pattern": "html/parser.py:HTMLParser.advance",
    "textwrap-join": "textwrap.py:TextWrapper.lines_of",
    "textwrap-sorted": "wrapping.py:TextWrapper._split",
    "decimal-digits": "rounding.py:_normalize",
    "statistics-ratio": "statistics.py:Ratio._exact_ratio",
    "random-abs": "shuffling.py:shuffle",
    "own-property": "test_more.py:Shape.surface",
}
RENAMED = tuple(
    replace(each, name=f"{each.name}-renamed", kind="name", renamed=NEW_NAMES[each.name])
    for each in REGRESSIONS
    if each.name in NEW_NAMES
)
# fmt: on

_TEST = """
import applying
import pytest
from {module} import {function}

pytestmark = pytest.mark.instrcount
applying.apply({name!r})
"""
#: The project's module that puts the byte code in, where there is any.
_APPLYING = '''
"""Makes a function slower, if the code of that lies beside the project."""

import functools
import importlib
import inspect
import marshal
from pathlib import Path

SLOWER = Path(__file__).parent.parent / "slower"


def find(module, path):
    """The function below all that wraps it."""
    found = importlib.import_module(module)
    for part in path.split("."):
        owner = found.__name__ if isinstance(found, type) else ""
        name = f"_{owner.lstrip('_')}{part}" if part[:2] == "__" != part[-2:] else part
        found = inspect.getattr_static(found, name)
        if isinstance(found, property):
            found = found.fget
        if isinstance(found, (classmethod, staticmethod)):
            found = found.__func__
    return inspect.unwrap(found)


def apply(name):
    """Give a function its slower code."""
    path = SLOWER / name
    if path.exists():
        module, function, code = marshal.loads(path.read_bytes())
        find(module, function).__code__ = code
'''


def edited(source: str, regression: Regression) -> str:
    """The source of a module with one function made slower. Raises ValueError if that cannot be."""
    nodes = dict(_functions(ast.parse(source), ""))
    if regression.function not in nodes:
        raise ValueError(f"there is no function {regression.function}")
    node = nodes[regression.function]
    lines = source.splitlines(keepends=True)
    start = (node.body[1] if ast.get_docstring(node) is not None else node.body[0]).lineno - 1
    if regression.old == START:
        indent = " " * (node.body[0].col_offset)
        lines[start] = f"{indent}{regression.new}\n{lines[start]}"
    else:
        text = "".join(lines[start : node.end_lineno])
        if regression.old not in text:
            raise ValueError(f"{regression.function} has no {regression.old!r}")
        lines[start : node.end_lineno] = [text.replace(regression.old, regression.new)]
    return "".join(lines)


def _functions(node: ast.AST, prefix: str) -> Any:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + each.name, each
            yield from _functions(each, f"{prefix}{each.name}.<locals>.")
        elif isinstance(each, ast.ClassDef):
            yield from _functions(each, f"{prefix}{each.name}.")
        else:
            yield from _functions(each, prefix)


def code_of(code: CodeType, path: list[str]) -> CodeType:
    """The code object that stands at a path of names; of equal names the last, as at run time."""
    found = [each for each in code.co_consts if isinstance(each, CodeType)]
    (*_, last) = (each for each in found if each.co_name == path[0])
    return code_of(last, path[1:]) if path[1:] else last


def slower(regression: Regression, find: Any) -> tuple[str, CodeType]:
    """The outermost function around the edited one, and its code."""
    module = importlib.import_module(regression.module)
    source = inspect.getsource(module)
    holder = regression.function.partition(".<locals>")[0]
    path = find(regression.module, holder).__code__.co_filename
    code = compile(edited(source, regression), path, "exec", dont_inherit=True)
    code = code_of(code, holder.split("."))
    if regression.renamed:
        file, _, qualname = regression.renamed.partition(":")
        place = path.removesuffix(file_of(regression.module)) + file
        code = rename(code, place, regression.function, qualname)
    return holder, code


def file_of(module: str) -> str:
    """Where a module that is no package lies, below the folder that it is imported from."""
    return module.replace(".", "/") + ".py"


def rename(code: CodeType, path: str, old: str, new: str) -> CodeType:
    """The code of a function in another place, with all functions within it."""
    qualname = new + code.co_qualname.removeprefix(old)
    return code.replace(
        co_filename=path,
        co_qualname=qualname,
        co_name=qualname.rpartition(".")[2],
        co_consts=tuple(
            rename(each, path, old, new) if isinstance(each, CodeType) else each
            for each in code.co_consts
        ),
    )


def write(folder: Path) -> None:
    """Write the project, the slower code and, into ``regressions.json``, what there is to be found."""
    for workloads in WORKLOADS:
        shutil.copytree(
            workloads, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
    (folder / "pytest.ini").write_text("[pytest]\npython_files = slower_*.py\n")
    (folder / "applying.py").write_text(_APPLYING)
    sys.path.insert(0, str(folder))
    applying = importlib.import_module("applying")
    kept = folder.parent / "slower-code"
    kept.mkdir()
    told: list[dict[str, str]] = []
    for each in (*REGRESSIONS, *RENAMED):
        module, _, function = each.workload.partition(".")
        file = each.module.replace(".", "/")
        entry = {"name": each.name, "kind": each.kind, "problem": "", "renamed": each.renamed}
        try:
            workload = getattr(importlib.import_module(module), function)
            if inspect.unwrap(workload).__module__ != module:
                raise ValueError(f"there is no workload {each.workload}")
            holder, code = slower(each, applying.find)
            path = code.co_filename
        except BaseException as error:  # pytest.importorskip raises one that is no Exception
            told.append(entry | {"problem": f"{type(error).__name__}: {error}"})
            continue
        file = f"{file}/__init__.py" if path.endswith("__init__.py") else f"{file}.py"
        expected = each.renamed or f"{file}:{each.function}"
        (kept / each.name).write_bytes(marshal.dumps((each.module, holder, code)))
        test = folder / f"slower_{each.name.replace('-', '_')}.py"
        test.write_text(_TEST.format(module=module, function=function, name=each.name).lstrip())
        told.append(entry | {"nodeid": f"{test.name}::{function}", "expected": expected})
    # imported once, before all tests, and not under the name that pytest looks for
    imports = [each.stem for each in sorted(folder.glob("test_*.py"))]
    conftest = folder / "conftest.py"
    text = "import contextlib\n\n" + "".join(
        f"with contextlib.suppress(BaseException):\n    import {name}\n" for name in imports
    )
    shutil.copy(RECORDING, folder)
    recording = f"from {RECORDING.stem} import pytest_unconfigure"
    conftest.write_text(f"{conftest.read_text()}\n\n{text}\n{recording}\n")
    (folder.parent / "regressions.json").write_text(json.dumps(told))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
