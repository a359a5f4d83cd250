# Sourced by examples/run and tests/run: a virtual environment with the package, and Valgrind.
# Sets $python to the environment's interpreter. Everything it makes is in .venv, which git ignores.

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n  fix: %s\n' "$1" "$2" >&2; exit 1; }

# Run a command with the rights to install, or say what to type.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "this user may not install packages, and there is no sudo" "as root: $*"
    fi
}

# install_package NAME: through the system's package manager, whichever it is.
install_package() {
    say "installing $1"
    if command -v apt-get >/dev/null; then
        # A fresh image has no list of packages, an old machine one that points at what is gone.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" \
            || { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1"; }
    elif command -v dnf >/dev/null; then as_root dnf install -y "$1"
    elif command -v zypper >/dev/null; then as_root zypper --non-interactive install "$1"
    elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm "$1"
    else fail "there is no package manager that this script knows" "install $1 by hand, then run this again"
    fi || fail "$1 could not be installed" "install $1 by hand, then run this again"
}

need_valgrind() {
    command -v valgrind >/dev/null && return
    [ "$(uname -s)" = Linux ] || fail "Valgrind's Callgrind is used on Linux only" "run this on Linux"
    install_package valgrind
    command -v valgrind >/dev/null || fail "Valgrind is still not on PATH" "install valgrind by hand"
}

# make_environment WHAT...: a virtual environment for $PYTHON or python3, and what pip shall install.
make_environment() {
    local base=${PYTHON:-python3} version home
    command -v "$base" >/dev/null || fail "there is no $base" "PYTHON=/path/to/python3 $0"
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || fail "$("$base" --version) is older than 3.11" "PYTHON=/path/to/python3.11 $0"
    version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    home="$root/.venv/cp${version/./}"
    python="$home/bin/python"
    if ! "$python" -c 'import pip' 2>/dev/null; then
        say "making a virtual environment for $("$base" --version)"
        if ! "$base" -m venv --clear "$home" >/dev/null 2>&1; then
            # Debian and Ubuntu keep ensurepip in a package of its own, one for each Python.
            if command -v apt-get >/dev/null; then install_package "python$version-venv"; fi
            "$base" -m venv --clear "$home" \
                || fail "$base cannot make a virtual environment" "install its venv module, then run this again"
        fi
    fi
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}
