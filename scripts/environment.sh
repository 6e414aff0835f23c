# Sourced by the other scripts: makes the environment .venv with nothing but Python and pip, and renews it when needed.
# PYTHON names the interpreter to make it from (python3 when unset).

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"
python="$venv/bin/python"

current_step="start"
step() {
  current_step="$*"
  printf '\n== %s\n' "$current_step"
}
finish() {
  local status=$?
  if [[ $status -ne 0 ]]; then
    printf '\n!! FAILED: %s\n' "$current_step" >&2
  fi
}
trap finish EXIT

# An environment fits one pyproject.toml, in one place, under one Python.
hash_of_project='
import hashlib, pathlib, sys

root = pathlib.Path(sys.argv[1])
print(hashlib.sha256((root / "pyproject.toml").read_bytes() + f"{root} {sys.version}".encode()).hexdigest())
'

use_environment() { # use_environment [dev]
  local extras="${1:-}" base="${PYTHON:-python3}" wanted stamp
  if ! "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "mdmemory needs Python 3.11 or newer. Set PYTHON to one, such as PYTHON=python3.12 $0" >&2
    exit 1
  fi
  wanted="$("$base" -c "$hash_of_project" "$root")"
  stamp="$venv/installed${extras:+-$extras}"
  if [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then
    return
  fi
  if ! same_python "$base" || ! "$python" -m pip --version >/dev/null 2>&1; then
    step "make the environment .venv"
    make_environment "$base"
  fi
  step "install mdmemory${extras:+[$extras]} into .venv"
  "$python" -m pip install --quiet --disable-pip-version-check --editable "$root${extras:+[$extras]}"
  echo "$wanted" >"$stamp"
  echo "$wanted" >"$venv/installed" # what has the extras has the rest
}

same_python() {
  local say='import os, sys; print(sys.version, os.path.realpath(sys.base_prefix))'
  [[ -x "$python" && "$("$python" -c "$say" 2>/dev/null)" == "$("$1" -c "$say")" ]]
}

make_environment() {
  rm -rf "$venv"
  if ! "$1" -m venv "$venv" >/dev/null 2>&1; then
    # Some distributions ship venv without ensurepip: take the pip that is there.
    "$1" -m venv --clear --without-pip "$venv"
    "$1" -m pip --python "$python" install --quiet --disable-pip-version-check pip
  fi
}
