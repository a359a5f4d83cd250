"""The other commit: its files, their place, and where imports lead; without a pytest run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.session.against.git import Repository, find_repository
from pytest_instrcount.session.against.moved import Move, Tables, editable_tables, environments_in
from pytest_instrcount.session.against.origins import (
    built_elsewhere,
    built_in_place,
    check_changed,
    check_copies,
    check_modules,
    check_origins,
    check_path,
    packages_of,
)
from pytest_instrcount.session.against.request import Answer, Request, pack, unpack
from pytest_instrcount.session.against.worktree import padded, take_worktree


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    command = ["git", *who, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, **files: str) -> str:
    write(folder, **files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return git(folder, "rev-parse", "HEAD").strip()


def state(folder: Path) -> list[tuple[str, int, int]]:
    """Every file and folder with its time and size, git's own included."""
    return sorted(
        (str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")
    )


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two commits."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, shop_py="one")
    commit(folder, shop_py="two")
    return folder


def target(folder: Path) -> Path:
    made = folder.parent / "target"
    made.mkdir()
    return made


def problem(slug: str, call: object, *args: object) -> str:
    assert callable(call)
    with pytest.raises(InstrcountError) as caught:
        call(*args)
    assert caught.value.slug == slug
    return str(caught.value)


def test_files_of_a_commit(shop: Path) -> None:
    """They come whole, and the user's repository is as it was to the last time stamp."""
    write(shop, shop_py="changed, not committed", new_py="")
    before, status = state(shop), git(shop, "status", "--porcelain")
    before = state(shop)  # to ask for the status may write the index
    folder = target(shop)
    repository = find_repository(shop)
    repository.check_out(repository.resolve("HEAD~1"), folder)
    assert (folder / "shop.py").read_text() == "one"
    assert not (folder / "new.py").exists()
    assert repository.tracked() == ["shop.py"]
    assert repository.files_of("HEAD") == ["shop.py"]
    assert state(shop) == before
    assert git(shop, "status", "--porcelain") == status
    assert git(folder, "status", "--porcelain") == ""


def test_attributes_leave_nothing_out(shop: Path) -> None:
    """What an archive would not have is there."""
    wanted = commit(shop, **{".gitattributes": "tests export-ignore\n", "tests__test_a_py": "a"})
    folder = target(shop)
    find_repository(shop).check_out(wanted, folder)
    assert (folder / "tests" / "test_a.py").read_text() == "a"


def test_hooks_and_variables_of_git_are_left_aside(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a hook of git runs the tests, its variables name the user's index."""
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    hooks = shop.parent / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text("#!/bin/sh\ntouch ran\n")
    (hooks / "post-checkout").chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    folder = target(shop)
    repository = find_repository(shop)
    repository.check_out(repository.resolve("main"), folder)
    assert sorted(os.listdir(folder)) == [".git", "shop.py"]


def test_submodules(shop: Path) -> None:
    """Those that are checked out here are checked out there."""
    other = shop.parent / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    first = commit(other, data_py="first")
    git(shop, "submodule", "--quiet", "add", str(other), "vendor/other")
    wanted = commit(shop)
    commit(other, data_py="second")
    git(shop / "vendor" / "other", "pull", "--quiet")
    commit(shop)
    repository = find_repository(shop)
    assert list(repository.submodules_of(wanted)) == [("vendor/other", first)]
    folder = target(shop)
    repository.check_out(wanted, folder)
    assert (folder / "vendor" / "other" / "data.py").read_text() == "first"


@pytest.mark.parametrize(("start", "path"), [("", "other"), ("sub", "../other")])
def test_submodule_without_its_commit(
    shop: Path, start: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is to be typed where pytest was started."""
    other = shop.parent / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    commit(other, data_py="first")
    git(shop, "submodule", "--quiet", "add", str(other), "other")
    missing = "1" * 40
    git(shop, "update-index", "--cacheinfo", f"160000,{missing},other")
    git(shop, "commit", "--quiet", "--message", "one")
    repository, folder = find_repository(shop), target(shop)
    (shop / start).mkdir(exist_ok=True)
    monkeypatch.chdir(shop / start)
    said = problem("against-ref", repository.check_out, repository.resolve("HEAD"), folder)
    assert f"git -C {path} fetch --depth=1 origin {missing}" in said


def test_unknown_commit(shop: Path) -> None:
    said = problem("against-ref", find_repository(shop).resolve, "nosuch")
    assert "git knows no commit 'nosuch' here [against-ref]" in said
    assert "fix: git log --oneline --all" in said
    for ref in ("", "--all", "^HEAD", "HEAD:shop.py", "a b"):
        problem("against-ref", find_repository(shop).resolve, ref)


@pytest.mark.parametrize(
    ("ref", "fix"),
    [
        ("origin/next", "git fetch --depth=1 origin next:refs/remotes/origin/next"),
        ("v1.0", "git fetch --depth=1 origin v1.0 && git tag v1.0 FETCH_HEAD"),
        ("0123456789ab", "git fetch --depth=1 origin 0123456789ab"),
        ("HEAD~1", "git fetch --deepen=1 origin"),
        ("HEAD^~2", "git fetch --deepen=3 origin"),
        ("HEAD^1", "git fetch --deepen=1 origin"),
        ("HEAD^2~3", "git fetch --deepen=4 origin"),
        ("main@{1}", "git log --oneline --all    # the commits that there are"),
    ],
)
def test_shallow_clone(shop: Path, ref: str, fix: str) -> None:
    """The line to type fetches what is missing."""
    git(shop, "branch", "next", "main~1")
    clone = shop.parent / "clone"
    git(shop, "clone", "--quiet", "--depth=1", f"file://{shop}", str(clone))
    said = problem("against-ref", find_repository(clone).resolve, ref)
    assert "this is a shallow clone" in said
    assert said.endswith(f"fix: {fix}")


@pytest.mark.parametrize("ref", ["origin/next", "HEAD~1", "HEAD^1", "v1"])
def test_what_is_to_be_typed_works(shop: Path, ref: str) -> None:
    git(shop, "branch", "next", "main~1")
    git(shop, "tag", "v1", "main~1")
    clone = shop.parent / "clone"
    git(shop, "clone", "--quiet", "--depth=1", f"file://{shop}", str(clone))
    repository = find_repository(clone)
    said = problem("against-ref", repository.resolve, ref)
    subprocess.run(said.partition("fix: ")[2], shell=True, cwd=clone, check=True)
    folder = target(shop)
    repository.check_out(repository.resolve(ref), folder)
    assert (folder / "shop.py").read_text() == "one"


@pytest.mark.parametrize("left_out", ["blob:none", "tree:0"])
def test_partial_clone(shop: Path, left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched unasked; the cause is named, and the line to type fetches what is missing."""
    git(shop, "config", "uploadpack.allowFilter", "true")
    git(shop, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone = shop.parent / "clone"
    git(shop, "clone", "--quiet", f"--filter={left_out}", f"file://{shop}", str(clone))
    (clone / "docs").mkdir()
    monkeypatch.chdir(clone / "docs")  # git archive takes the folder that it is in
    repository, folder = find_repository(clone), target(shop)
    wanted = repository.resolve("HEAD~1")
    before = state(clone)
    said = problem("against-tree", repository.check_out, wanted, folder)
    assert "this is a partial clone, and nothing is fetched unasked" in said
    if left_out == "tree:0":
        problem("against-tree", repository.files_of, wanted)
    assert state(clone) == before
    subprocess.run(said.partition("fix: ")[2], shell=True, check=True)
    again = shop.parent / "again"
    again.mkdir()
    repository.check_out(wanted, again)
    assert (again / "shop.py").read_text() == "one"


@pytest.mark.parametrize(
    "name", ["new\nline", "not-utf-8-\udcff\udcfe", 'quo"te', "back\\slash", "#hash", "ends\n"]
)
def test_work_trees_of_any_name(shop: Path, name: str) -> None:
    """Every byte but two can be in the name of a folder."""
    moved = shop.rename(shop.parent / name)
    folder = target(moved)
    repository = find_repository(moved)
    assert repository.path == moved
    repository.check_out(repository.resolve("HEAD~1"), folder)
    assert (folder / "shop.py").read_text() == "one"
    request = Request(
        [str(moved)], [], {}, "", None, True, "", Move((), "", ()), str(moved), [], ""
    )
    request.write(folder / "request.json")
    assert Request.load(json.loads((folder / "request.json").read_text())) == request


def test_commit_by_its_message(shop: Path) -> None:
    """Behind which git takes nothing more."""
    assert find_repository(shop).resolve(":/one") == git(shop, "rev-parse", ":/one").strip()


def test_settings_of_this_clone_convert_files_there_too(shop: Path) -> None:
    """Line ends and filters: the commit that is checked out has the same bytes in both places."""
    git(shop, "config", "core.autocrlf", "true")
    git(shop, "config", "filter.loud.smudge", "tr a-z A-Z")
    git(shop, "config", "filter.loud.clean", "tr A-Z a-z")
    (shop / ".git" / "info").mkdir(exist_ok=True)
    (shop / ".git" / "info" / "attributes").write_text("*.loud filter=loud\n")
    commit(shop, **{"data.txt": "a\nb\n", "b.loud": "hello"})
    for name in ("data.txt", "b.loud"):
        (shop / name).unlink()
        git(shop, "checkout", "--", name)
    repository, folder = find_repository(shop), target(shop)
    repository.check_out(repository.resolve("HEAD"), folder)
    there = [(folder / name).read_bytes() for name in ("data.txt", "b.loud")]
    assert there == [(shop / name).read_bytes() for name in ("data.txt", "b.loud")]
    assert there == [b"a\r\nb\r\n", b"HELLO"]


def test_changes_that_git_overlooks(shop: Path) -> None:
    """Nobody knows that nothing can differ then."""
    repository = find_repository(shop)
    head = repository.resolve("HEAD")
    assert repository.is_at(head)
    git(shop, "update-index", "--skip-worktree", "shop.py")
    write(shop, shop_py="slower")
    assert git(shop, "status", "--porcelain") == ""
    assert not repository.is_at(head)


def test_branch_that_is_known_by_another_name(shop: Path) -> None:
    git(shop, "branch", "next")
    clone = shop.parent / "clone"
    git(shop, "clone", "--quiet", str(shop), str(clone))
    said = problem("against-ref", find_repository(clone).resolve, "next")
    assert said.endswith("fix: pytest --instrcount --instrcount-against=origin/next")


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    said = problem("against-git", find_repository, tmp_path)
    assert f"{tmp_path} is in no repository of git" in said
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "fix: sudo apt-get install git" in problem("against-git", find_repository, tmp_path)


def test_work_tree_of_another_user(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: git says what to do, and so is it told."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # where all may be trusted
    folder = shop / "tests"
    folder.mkdir()
    said = problem("against-git", find_repository, folder)
    assert f"git does not trust {shop}: it belongs to another user" in said
    assert said.endswith(f"fix: git config --global --add safe.directory {shop}")


def test_ignored_files_and_folders(shop: Path) -> None:
    commit(shop, **{".gitignore": "*_version.py\n*.egg-info\nbuild\n"})
    write(shop, my_version_py="", **{"shop.egg-info__PKG": "", "build__lib__a_py": ""})
    assert Repository(shop).ignored() == ["build/", "my_version.py", "shop.egg-info/"]


# Its place.


@pytest.mark.parametrize("length", [9, 10, 25, 60, 205, 230, 401, 402, 600, 805])
@pytest.mark.parametrize("parts", [1, 2, 5, 9])
def test_a_room_is_as_long_as_the_work_tree(length: int, parts: int) -> None:
    """And of as many parts, as far as there is room and names may be so long."""
    like = Path("/" + "/".join(["a"] * (parts - 1) + ["b" * max(1, length - 2 * parts + 1)]))
    found = padded(Path("/tmp"), like, 3)
    assert found is not None
    top, tree = found
    assert len(str(tree)) == len(str(like))
    assert tree == top or top in tree.parents
    assert all(len(part) < 256 for part in tree.parts)
    if 2 < parts <= length // 8 and length < 200:
        assert len(tree.parts) == len(like.parts)
    assert found != padded(Path("/tmp"), like, 4)


def test_worktrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Private, of the wanted length, of one name in each run, and never shared."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    like = tmp_path / "a" / "b" / ("c" * 30)
    first, second = take_worktree(like), take_worktree(like)
    assert first.tree != second.tree
    for room in (first, second):
        assert len(str(room.tree)) == len(str(like))
        assert len(room.tree.parts) == len(like.parts)
        assert room.scratch.path.stat().st_mode & 0o077 == 0
    (first.tree / "left").write_text("")
    second.remove()
    os.close(first.scratch.lock)
    again = take_worktree(like)  # the first was left by a run that was killed
    assert again.tree == first.tree
    assert not os.listdir(again.tree)
    again.remove()
    assert not os.listdir(tmp_path)


def test_work_tree_that_is_too_short() -> None:
    """No temporary path is as short as /app: the shortest has to do."""
    room = take_worktree(Path("/app"))
    room.remove()
    assert len(str(room.tree)) <= len("/tmp/i000")


# Where imports lead.


def test_what_a_project_installs() -> None:
    files = [
        "pyproject.toml",
        "flat/__init__.py",
        "flat/deep/__init__.py",
        "single.py",
        "src/inner/__init__.py",
        "tests/__init__.py",
        "types.py",
        "conftest.py",
        "tools/not_installed/__init__.py",
        "libs/other/setup.py",
        "libs/other/src/other/__init__.py",
        "data.txt",
    ]
    found = packages_of(files)
    assert found == {"flat": "", "inner": "", "single": "", "other": "libs/other/"}
    assert packages_of(["a/__init__.py", "b.py"]) == {}


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("againstpack", "againstmod"):
        sys.modules.pop(name, None)


def test_origins(on_path: Path) -> None:
    write(on_path, againstpack____init___py="", againstmod_py="")
    (on_path / "againstpack").mkdir(exist_ok=True)
    (on_path / "againstpack" / "__init__.py").write_text("")
    __import__("againstpack")
    elsewhere = on_path / "elsewhere"
    names = ["againstpack", "no_such_module_at_all"]
    check_origins(names, on_path, lambda path: False, "/shop")
    said = problem("against-installed", check_origins, names, elsewhere, lambda _: False, "/shop")
    assert f"againstpack is imported from {on_path / 'againstpack'}, so the same code" in said
    assert said.endswith("-m pip install -e /shop")
    said = problem("against-finder", check_origins, names, elsewhere, lambda _: True, "/shop")
    assert "its editable install cannot be moved" in said


@pytest.mark.parametrize("known_by", ["folder", "name", "nothing", "editable"])
@pytest.mark.parametrize("layout", ["namespace", "other folder", "common name"])
def test_a_copy_is_found_whatever_the_layout(
    layout: str, known_by: str, on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By where it was built, or by the project's name; where the tests' own folder comes first, it is none."""
    top, base = on_path / "shop", on_path / "base"
    file = {"namespace": "againstns/a/__init__.py", "other folder": "againstother.py"}
    copied = file.get(layout, "examples/__init__.py")
    site = on_path / "site"
    (site / copied).parent.mkdir(parents=True)
    (site / copied).touch()
    info = site / "acme_shop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme_shop\nVersion: 1\n")
    (info / "RECORD").write_text(f"{copied},,\n../../bin/tool.py,,\n")
    url = {"folder": top / "libs", "editable": top}.get(known_by, "/other")
    built: dict[str, Any] = {"url": url.as_uri() if isinstance(url, Path) else url}
    built |= {"dir_info": {"editable": known_by == "editable"}} if known_by != "name" else {}
    (info / "direct_url.json").write_text(json.dumps(built))
    base.mkdir()
    (base / "pyproject.toml").write_text(
        f"[project]\nname = '{'other' if known_by in ('folder', 'nothing') else 'Acme.Shop'}'\n"
    )
    monkeypatch.setattr(sys, "path", [str(base / "code"), str(site)])
    (module := SimpleNamespace()).__file__ = str(site / copied)
    (strange := SimpleNamespace()).__file__ = []  # whatever a test has put there
    monkeypatch.setitem(sys.modules, "againststrange", strange)
    monkeypatch.setitem(sys.modules, "againstcopy", module)

    def found() -> list[Any]:
        return [metadata.Distribution.at(info)]

    if known_by in ("nothing", "editable"):
        check_copies(found(), base, str(top))
        return
    said = problem("against-installed", check_copies, found(), base, str(top))
    assert f"imported from {site / copied}, so the same code" in said
    (base / "code" / copied).parent.mkdir(parents=True)
    (base / "code" / copied).touch()
    check_copies(found(), base, str(top))


def test_a_name_that_nobody_installed_or_imported_is_nobodys(on_path: Path) -> None:
    """A script at the top of a repository may be called as anything that is importable."""
    write(on_path, againstmod_py="")
    check_origins(["againstmod"], on_path / "elsewhere", lambda path: False, "/shop")


def test_moved_paths() -> None:
    venv = "/home/me/shop/.venv"
    move = Move(("/link/shop", "/home/me/shop"), "/tmp/instr", (venv,))
    assert move("/home/me/shop") == "/tmp/instr"
    assert move("/link/shop/src") == "/tmp/instr/src"
    assert move("") == ""
    assert move(f"{venv}/lib") == f"{venv}/lib"
    assert move.moves("/link/shop/a") and not move.moves("/link/shopper")
    assert move.search_path("/a:/link/shop/b:") == "/a:/tmp/instr/b:"
    assert move.word("/link/shop/t.py") == "/tmp/instr/t.py"
    tables: Tables = {
        "m": {"MAPPING": {"a": "/link/shop/a"}, "NAMESPACES": {"n": ["/link/shop/n", "/x"]}}
    }
    assert move.tables(tables) == {
        "m": {"MAPPING": {"a": "/tmp/instr/a"}, "NAMESPACES": {"n": ["/tmp/instr/n", "/x"]}}
    }


def test_a_path_through_a_link_is_moved(tmp_path: Path) -> None:
    """But not one of an environment, whichever way it is spelled."""
    shop = tmp_path / "shop"
    (shop / ".venv" / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to(shop)
    move = Move((str(shop),), "/tmp/instr", (str(shop / ".venv"),))
    assert move(f"{tmp_path}/link/src") == "/tmp/instr/src"
    assert move(f"{tmp_path}/link/.venv/lib") == f"{tmp_path}/link/.venv/lib"
    assert move("tests") == "tests"


def test_modules_from_the_users_own_files_are_refused(tmp_path: Path) -> None:
    """Where the commit has a file in their place, which was to be measured."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir()
        (folder / "lib.py").touch()
    (mine / "new.py").touch()
    move = Move((str(mine),), str(theirs), ())
    fine = SimpleNamespace(__file__=str(theirs / "lib.py")), SimpleNamespace(__file__=None)
    new = SimpleNamespace(__file__=str(mine / "new.py"))
    check_modules({"lib": fine[0], "sys": fine[1], "new": new}, move)
    with pytest.raises(InstrcountError, match=r"lib is imported from .*mine/lib\.py") as found:
        check_modules({"lib": SimpleNamespace(__file__=str(mine / "lib.py"))}, move)
    assert found.value.slug == "against-finder"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("source/pkg/__init__.py", "pkg"),
        ("pkg/__init__.py", "pkg"),
        ("source/ns/mod.py", "ns.mod"),  # of a namespace
        ("mod.py", "mod"),
        ("source/pkg/_core.c", "pkg"),
    ],
)
def test_what_was_installed_of_changed_files_is_refused(
    file: str, name: str, tmp_path: Path
) -> None:
    """However it was, and whatever the layout; what both sides have alike cannot differ."""
    mine, base = tmp_path / "mine", tmp_path / "base"
    files = {file, "source/pkg/__init__.py"} if file.endswith(".c") else {file}
    for folder in (mine, base):
        for each in files:
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_text("one")
    is_package = name == "pkg"
    path = f"/site/{name.replace('.', '/')}{'/__init__' if is_package else ''}.py"
    (module := SimpleNamespace()).__file__ = path
    check_changed({name: module}, files, base, str(mine))
    (mine / file).write_text("two")
    said = problem("against-installed", check_changed, {name: module}, files, base, str(mine))
    assert f"{name} is imported from {path}, so the same code" in said
    module.__file__ = str(base / file)
    check_changed({name: module}, files, base, str(mine))


def test_what_is_vendored_is_imported_by_another_name(tmp_path: Path) -> None:
    """An installed module of that name is another one, and so is a test of that name."""
    files = {"pkg/__init__.py", "pkg/_vendor/__init__.py", "pkg/_vendor/six.py", "tests/helper.py"}
    modules = {name: SimpleNamespace() for name in ("six", "tests.helper", "none")}
    modules["six"].__file__, modules["tests.helper"].__file__ = "/site/six.py", "/x/tests/helper.py"
    check_changed(modules, files, tmp_path, str(tmp_path))


def test_a_path_to_the_users_own_files_is_refused(tmp_path: Path) -> None:
    """Before a test imports something from there; not behind that of the commit."""
    mine, base = tmp_path / "mine", tmp_path / "base"
    (base / "src").mkdir(parents=True)
    move = Move((str(mine),), str(base), (f"{mine}/.venv",))
    check_path(
        ["", "/site", f"{mine}/.venv", f"{mine}/gone", str(base / "src"), f"{mine}/src"], move
    )
    said = problem("against-finder", check_path, [f"{mine}/src", str(base / "src")], move)
    assert f"{mine}/src is on sys.path wherever the tests are" in said


def test_environment_in_the_work_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/shop/.venv")
    assert "/shop/.venv" in environments_in(["/shop"])
    # a work tree may itself be below a prefix, as /usr/src/app
    assert environments_in([sys.base_prefix + "/src/app"]) == ()


def test_tables_of_editable_installs() -> None:
    finder = SimpleNamespace(MAPPING={"a": "/a"}, NAMESPACES={})
    modules = {"__editable___shop_1_0_finder": finder, "__editable___other": finder, "os": os}
    assert editable_tables(modules) == {
        "__editable___shop_1_0_finder": {"MAPPING": {"a": "/a"}, "NAMESPACES": {}}
    }


def test_modules_that_were_built_in_place(tmp_path: Path) -> None:
    suffix = EXTENSION_SUFFIXES[0]
    write(tmp_path, shop__a_py="")
    for name in (f"shop/fast{suffix}", f"shop/known{suffix}", "shop/lib.so.1"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / f"fast{suffix}").write_bytes(b"")
    tracked = ["shop/a.py", f"shop/known{suffix}", "gone/b.py"]
    assert built_in_place(tmp_path, tracked) == [f"shop/fast{suffix}"]


def test_modules_that_were_built_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder without a file of git's: those that were imported, but for what is installed."""
    suffix = EXTENSION_SUFFIXES[0]
    for name in ("ext/fast", "shop/beside", ".venv/lib/other"):
        loaded = SimpleNamespace(__file__=str(tmp_path / f"{name}{suffix}"))
        monkeypatch.setitem(sys.modules, f"built_{name}", loaded)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert list(built_elsewhere(tmp_path, ["shop/a.py"])) == [f"ext/fast{suffix}"]


def test_what_is_told_and_answered_comes_through(tmp_path: Path) -> None:
    move = Move(("/a",), "/b", ("/a/.venv",))
    request = Request(
        ["-v"], ["/x"], {}, "", ["t"], True, pack({"a": 1}), move, "/a", ["p"], "answer"
    )
    request.write(tmp_path / "request.json")
    read = Request.load(json.loads((tmp_path / "request.json").read_text()))
    assert read == request
    assert unpack(read.packed) == {"a": 1}
    answer = Answer(["t"], {"t": "fails"}, ["slug", "why", "fix"])
    answer.write(str(tmp_path / "answer"))
    assert Answer.read(tmp_path / "answer") == answer
    assert Answer.read(tmp_path / "no") == Answer()
