# Sourced by examples/run and tests/run: a virtual environment with the package, and Valgrind.
# Sets $python to the environment's interpreter. Everything it makes is in .venv, which git ignores.

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n  fix: %s\n' "$1" "$2" >&2; exit 1; }

# Run a command with the rights to install, or say what to type.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "installing needs rights that this user does not have" "as root: $*"
    fi
}

install_package() {
    if command -v apt-get >/dev/null; then
        as_root apt-get install -y -q "$1" || { as_root apt-get update -q && as_root apt-get install -y -q "$1"; }
    elif command -v dnf >/dev/null; then as_root dnf install -y "$1"
    elif command -v zypper >/dev/null; then as_root zypper --non-interactive install "$1"
    elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm "$1"
    else fail "no package manager that is known here" "install $1 by hand, then run this again"
    fi
}

need_valgrind() {
    command -v valgrind >/dev/null && return
    say "installing Valgrind"
    install_package valgrind
    command -v valgrind >/dev/null || fail "Valgrind is still not on PATH" "install valgrind by hand"
}

# make_environment REQUIREMENTS...: what pip shall install beside the package
make_environment() {
    local base=${PYTHON:-python3}
    command -v "$base" >/dev/null || fail "there is no $base" "PYTHON=/path/to/python3 $0"
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
        || fail "$base is older than 3.10" "PYTHON=/path/to/python3.10 $0"
    local home
    home="$root/.venv/$("$base" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')"
    python="$home/bin/python"
    if ! "$python" -c 'import pip' 2>/dev/null; then
        say "making a virtual environment for $("$base" --version)"
        rm -rf "$home"
        if ! "$base" -m venv "$home" >/dev/null 2>&1; then  # Debian keeps ensurepip in a package apart
            install_package python3-venv
            "$base" -m venv "$home" || fail "$base cannot make a virtual environment" "install python3-venv"
        fi
    fi
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}
