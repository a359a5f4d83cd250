"""Statements in C and C++: a program that counts its own loop, made by the system's compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.timer.launch import out_of_time
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.programs import run_program

#: Language -> variable with the compiler, variable with its options, compilers, end of file names.
_COMPILERS = {
    "c": ("CC", "CFLAGS", ("cc", "gcc", "clang"), ".c"),
    "c++": ("CXX", "CXXFLAGS", ("c++", "g++", "clang++"), ".cpp"),
}
_INSTALL = {
    "c": "sudo apt-get install gcc    # or CC=/path/to/compiler",
    "c++": "sudo apt-get install g++    # or CXX=/path/to/compiler",
}
_OPTIONS = ("-O2", "-g", "-w")

# Requests are those of ``requests``; valgrind.h need not be installed.
_SOURCE = """\
{global_setup}
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSTRCOUNT_REQUEST(number, argument) do {{ \\
    volatile unsigned long long instrcount_words[6] = \\
        {{(number), (unsigned long long)(argument), 0, 0, 0, 0}}; \\
    unsigned long long instrcount_answer = 0; \\
    INSTRCOUNT_ASM(instrcount_words, instrcount_answer); \\
}} while (0)
#if defined(__x86_64__)
#define INSTRCOUNT_ASM(words, answer) __asm__ volatile( \\
    "rolq $3, %%rdi\\n\\trolq $13, %%rdi\\n\\trolq $61, %%rdi\\n\\trolq $51, %%rdi\\n\\t" \\
    "xchgq %%rbx, %%rbx" \\
    : "=d"(answer) : "a"(words), "0"(answer) : "cc", "memory")
#elif defined(__aarch64__)
#define INSTRCOUNT_ASM(words, answer) __asm__ volatile( \\
    "mov x3, %1\\n\\tmov x4, %2\\n\\t" \\
    "ror x12, x12, #3\\n\\tror x12, x12, #13\\n\\tror x12, x12, #51\\n\\tror x12, x12, #61\\n\\t" \\
    "orr x10, x10, x10\\n\\tmov %0, x3" \\
    : "=r"(answer) : "r"(answer), "r"(words) : "cc", "memory", "x3", "x4")
#else
#error "client requests are not written for this processor"
#endif
#define INSTRCOUNT_TOGGLE INSTRCOUNT_REQUEST(0x43540002, 0)
#define INSTRCOUNT_DUMP INSTRCOUNT_REQUEST(0x43540003, "instrcount")
#define INSTRCOUNT_ZERO INSTRCOUNT_REQUEST(0x43540001, 0)
/* threads are collected from the start on, this one is not */
#define INSTRCOUNT_START INSTRCOUNT_REQUEST(0x43540004, 0); INSTRCOUNT_TOGGLE; INSTRCOUNT_ZERO

int main(int instrcount_argc, char **instrcount_argv) {{
  const long instrcount_number = atol(instrcount_argv[1]);
  const long instrcount_warm_up = atol(instrcount_argv[2]);
  const long instrcount_repeats = atol(instrcount_argv[3]);
  const int instrcount_forks = atol(instrcount_argv[4]) == 1;
  const int instrcount_pids = open(instrcount_argv[5], O_WRONLY | O_CREAT, 0600);
  const struct rlimit instrcount_core = {{0, 0}};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != atol(instrcount_argv[6])) return 1;
  setrlimit(RLIMIT_CORE, &instrcount_core);
#line 1 "<setup>"
{setup}
  ;
  INSTRCOUNT_START;
  INSTRCOUNT_TOGGLE;
  for (long instrcount_i = 0; instrcount_i < instrcount_warm_up; ++instrcount_i) {{
#line 1 "<stmt>"
{stmt}
    ;
  }}
  for (long instrcount_repeat = 0; instrcount_repeat < instrcount_repeats; ++instrcount_repeat) {{
    int instrcount_pid = instrcount_forks ? fork() : 0;
    if (instrcount_pid == 0) {{
      INSTRCOUNT_DUMP;
      for (long instrcount_i = 0; instrcount_i < instrcount_number; ++instrcount_i) {{
#line 1 "<stmt>"
{stmt}
        ;
      }}
      INSTRCOUNT_DUMP;
      dprintf(instrcount_pids, "%d\\n", (int)getpid());
      if (instrcount_forks) {{
        fflush(NULL);
        kill(getpid(), SIGKILL);
      }}
    }} else {{
      int instrcount_status = 0;
      waitpid(instrcount_pid, &instrcount_status, 0);
      if (!WIFSIGNALED(instrcount_status)) _exit(WEXITSTATUS(instrcount_status));
      if (WTERMSIG(instrcount_status) != SIGKILL) kill(getpid(), WTERMSIG(instrcount_status));
    }}
  }}
  _exit(0);
}}
"""


def program_source(stmt: str, setup: str, global_setup: str) -> str:
    """The source of the program, for C and for C++ alike.

    ``global_setup`` is at its top, ``setup`` in ``main``, ``stmt`` in a loop of a block of its own.

    >>> program_source("x += 1;", "int x = 0;", "").count("x += 1;")
    2
    """
    first = f'#line 1 "<global_setup>"\n{global_setup}' if global_setup else ""
    return _SOURCE.format(stmt=stmt, setup=setup, global_setup=first)


def find_compiler(language: str, variables: Mapping[str, str]) -> list[str]:
    """The system's compiler: what ``$CC`` or ``$CXX`` says, or the first that there is.

    Raises InstrcountError ``compiler-missing``.
    """
    variable, _, names, _ = _COMPILERS[language]
    wanted = shlex.split(variables.get(variable, ""))
    if wanted and shutil.which(wanted[0], path=variables.get("PATH")):
        return wanted
    if not wanted:
        for name in names:
            path = shutil.which(name, path=variables.get("PATH"))
            if path is not None:
                return [path]
    raise InstrcountError(
        "compiler-missing",
        f"there is no compiler for a statement in {language.upper()}: looked for "
        + (f"{wanted[0]!r} (${variable})" if wanted else f"{', '.join(names)} and ${variable}"),
        _INSTALL[language],
    )


def compile_program(
    language: str, source: str, folder: Path, variables: Mapping[str, str], seconds: float
) -> Path:
    """Compile a program into a folder; ``$CFLAGS`` or ``$CXXFLAGS`` and ``$LDFLAGS`` are heeded.

    ``language`` is "c" or "c++". Raises InstrcountError ``compiler-missing``, ``compiler-failed``
    with what the compiler said, or ``timeout``.
    """
    _, options, _, suffix = _COMPILERS[language]
    compiler = find_compiler(language, variables)
    text, program = folder / f"statement{suffix}", folder / "statement"
    text.write_text(source, encoding="utf-8")
    given, libraries = (shlex.split(variables.get(name, "")) for name in (options, "LDFLAGS"))
    command = [*compiler, *_OPTIONS, *given, str(text), "-o", str(program), *libraries]
    try:
        environment = {**variables, "TMPDIR": temporary_folder(str(folder))}
        done = run_program(command, seconds, env=environment)
    except subprocess.TimeoutExpired:
        raise out_of_time(seconds) from None
    if done.returncode:
        said = (
            (done.stdout + done.stderr)
            .decode(errors="replace")
            .replace(f"{folder}{os.sep}", "")
            .rstrip()
        )
        raise InstrcountError(
            "compiler-failed",
            f"{compiler[0]} does not compile the statement\n{said}",
            "mend stmt, setup or global_setup",
        )
    return program
