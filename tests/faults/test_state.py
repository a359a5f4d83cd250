"""Tests that change the process they run in: the descriptors, the folder, limits, the interpreter."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Compared, Fault, Place, compare, faulty_file

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

CLOSED = "it closed all descriptors, with the plugin's among them: no result can be had [channel]"

FAULTS = {
    "closes_all_descriptors": Fault("os.closerange(3, 4096)", "failed", CLOSED),
    "puts_files_in_their_place": Fault(
        """
        os.closerange(3, 4096)
        CALLS.append([open(f"{os.environ['HOME']}/file{n}", "wb") for n in range(20)])
        """,
        "failed",
        CLOSED,
    ),
    "writes_to_all_descriptors": Fault(
        """
        for descriptor in range(3, 64):
            try: os.write(descriptor, b"garbage")
            except OSError: pass
        """,
        "failed",
        "it wrote to a descriptor that is the plugin's [channel]",
    ),
    "opens_all_descriptors": Fault(
        """
        try:
            while True: CALLS.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        """
    ),
    "changes_directory": Fault("os.chdir(tmp_path)", args="tmp_path"),
    "deletes_its_directory": Fault(
        """
        os.chdir(tempfile.mkdtemp())
        os.rmdir(os.getcwd())
        """
    ),
    "clears_environment": Fault("os.environ.clear()"),
    "changes_umask": Fault("os.umask(0o777)"),
    "ignores_all_signals": Fault(
        """
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        """,
        args="tmp_path",
    ),
    "reaps_all_children": Fault(
        """
        def reap(*_):
            try:
                while os.waitpid(-1, os.WNOHANG)[0]: pass
            except ChildProcessError: pass
        signal.signal(signal.SIGCHLD, reap)
        """,
        args="tmp_path",
    ),
    "blocks_all_signals": Fault("signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"),
    "lowers_the_recursion_limit": Fault("sys.setrecursionlimit(60)"),
    "raises_the_recursion_limit": Fault("sys.setrecursionlimit(10**8)"),
    "clears_sys_path": Fault("sys.path.clear()"),
    "clears_sys_modules": Fault("sys.modules.clear()"),
    "breaks_builtins": Fault(
        "builtins.open = builtins.print = builtins.len = None", "failed", "exited with status 1"
    ),
    "breaks_json": Fault("json.dumps = json.loads = None"),
    "breaks_sockets": Fault("socket.socket = None"),
    "collects_all_the_time": Fault("gc.set_threshold(1)"),
    "never_collects": Fault("gc.disable(); gc.freeze()"),
    "takes_stdout_away": Fault("sys.stdout = sys.stderr = None"),
    "traces": Fault("sys.settrace(lambda *_: None)"),
    "profiles": Fault("sys.setprofile(lambda *_: None)"),
    "records_what_has_no_text": Fault(
        """
        class Evil:
            def __str__(self): raise RuntimeError
            __repr__ = __str__
        loop = []
        loop.append(loop)
        record_property("evil", [Evil(), loop, {(1, 2): 3}])
        """,
        args="record_property",
    ),
    "may_write_no_file": Fault(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        "failed",
        "is not a complete Callgrind profile",
    ),
    "has_no_descriptors": Fault(
        """
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))
        """,
        "",
        "Bad file descriptor",
    ),
    "has_no_memory": Fault(
        """
        resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
        bytearray(1 << 33)
        """,
        "",
        "MemoryError",
    ),
    "has_no_time": Fault(
        """
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        while True: pass
        """,
        "failed",
        "was killed by SIGKILL before the test ended",
    ),
    "forbids_its_folder": Fault(
        """
        folder = tmp_path / f"folder{len(CALLS)}"
        CALLS.append(folder)
        folder.joinpath("inner").mkdir(parents=True)
        folder.chmod(0)
        """,
        args="tmp_path",
    ),
}


@pytest.fixture(scope="module")
def compared(module_place: Place) -> Compared:
    """All faults in one run."""
    module_place.write("test_faults.py", faulty_file(FAULTS))
    home = module_place.path.parent / "home"
    home.mkdir()
    return compare(module_place, HOME=str(home))


@pytest.mark.parametrize("name", FAULTS)
def test_fault(compared: Compared, name: str) -> None:
    compared.assert_fault(name, FAULTS[name])


def test_the_others_are_equal(compared: Compared) -> None:
    compared.assert_others_equal()


def test_nothing_is_left(compared: Compared) -> None:
    compared.place.assert_nothing_left(compared.tree)


def test_files_of_the_user_are_not_written(compared: Compared) -> None:
    """They had the descriptors of the plugin's channels."""
    files = list((compared.place.path.parent / "home").iterdir())
    assert len(files) == 20
    assert {file.read_bytes() for file in files} == {b""}
