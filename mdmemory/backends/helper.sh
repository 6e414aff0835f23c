# The part of ShellBackend that runs where the files are. It is sent with each call, so that nothing there can replace it:
#
#   sh -c THIS mdmemory scan BYTES ROOT HEAD_BYTES                 stdin: known versions, each with its path
#   sh -c THIS mdmemory read BYTES ROOT MAX_BYTES                  stdin: paths, an empty line, `START LENGTH PATH` of parts
#   sh -c THIS mdmemory commit BYTES ROOT MAKE LOCK_WAIT_S NONCE   stdin: a tar of the bytes to write, by number, and `ops`
#
# BYTES is how much there is on stdin: it need not end. It is read before the first byte of the answer is written. The answer's
# first line is `mdmemory STATUS ...`; the exit code is 0 whenever there is one. POSIX sh with what busybox and GNU tools share;
# no process is started per file where one can serve all. Comments are not sent.

set -u
LC_ALL=C TZ=UTC0 PATH=/usr/bin:/bin:${PATH-}
export LC_ALL TZ PATH
umask 022
tab=$(printf '\t')
verb=$1 bytes=$2 root=$3
shift 3

input() { head -c "$bytes"; }

say() { printf 'mdmemory %s\n' "$*"; }

end() {
  say "$@"
  exit 0
}

# Go into the folder. That it is absent is known only where the nearest folder above can be searched.
enter() {
  cd -P -- "$root" 2>/dev/null && return
  if [ -e "$root" ] || [ -L "$root" ]; then end unavailable Permission denied; fi
  above=$root
  until [ -e "$above" ] || [ -L "$above" ]; do
    above=${above%/*}
    [ -n "$above" ] || above=/
  done
  if [ -d "$above" ] && [ -x "$above" ]; then end absent; fi
  end unavailable Permission denied
}

# Set `what` to the kind of thing at a path, and `where` to the part of the path that decides it. No link is followed.
look() {
  rest=$1 where=
  while :; do
    where=${where:+$where/}${rest%%/*}
    if [ -L "$where" ]; then
      what=link
      return
    fi
    case $rest in */*) rest=${rest#*/} ;; *) break ;; esac
    if [ ! -e "$where" ]; then
      what=absent
      return
    elif [ ! -d "$where" ]; then
      what=blocked
      return
    elif [ ! -x "$where" ]; then
      what=denied
      return
    fi
  done
  if [ -f "$where" ]; then
    what=file
  elif [ -d "$where" ]; then
    what=folder
  elif [ -p "$where" ]; then
    what=fifo
  elif [ -S "$where" ]; then
    what=socket
  elif [ -e "$where" ]; then
    what=device
  else
    what=absent
  fi
}

# The time by the clock that stamps files, to the nanosecond: busybox has no %N, but a process's folder is as new as the process.
now() {
  time=$(date '+%Y-%m-%d %H:%M:%S.%N')
  case $time in *N) time=$(stat -c %z /proc/self/) ;; esac
}

# ---------------------------------------------------------------------------------------------------------------------- scan

# Answer in four sections: everything that is visible, what of it can't be read, names with control characters, heads.
scan() { # HEAD_BYTES
  known=$(input)
  enter
  [ -r . ] && [ -x . ] || end unavailable Permission denied
  now
  say scan "$time"
  list=$(find . -name '.?*' -prune -o -name '*[[:cntrl:]]*' -prune -o ! -name . \
    -exec stat -c '%f %h %y|%i %s %z %n' {} + 2>&1)
  [ -z "$list" ] || printf '%s\n' "$list"
  printf '\n'
  new=$(printf '%s\n\n%s\n' "$known" "$list" | awk '
    !listing { if ($0 == "" && NR > 1) listing = 1; else known[$0] = 1; next }
    !(at = index($0, "|")) { next }
    { rest = substr($0, at + 1); path = substr(rest, index(rest, " ./") + 1) }
    /^4/ { print path "/" }
    /^8/ && !(rest in known) && tolower(path) ~ /\.md$/ { print path }')
  printf '%s\n' "$new" | while IFS= read -r path; do
    if [ -e "$path" ] && { [ ! -r "$path" ] || { [ -d "$path" ] && [ ! -x "$path" ]; }; }; then printf '%s\n' "${path%/}"; fi
  done
  printf '\n'
  find . -name '.?*' -prune -o -name '*[[:cntrl:]]*' -prune -print0 2>/dev/null
  printf '\0'
  printf '%s\n' "$new" | grep '[^/]$' | heads "$1"
}

# The first bytes of each file, each after a line with its name.
heads() { tr '\n' '\0' | xargs -0 -r head -v -c "$1" -- 2>/dev/null; }

# ---------------------------------------------------------------------------------------------------------------------- read

# Answer with a line per path, an empty line, and the bytes as `heads` gives them: whole files, then parts.
read_files() { # MAX_BYTES
  wanted=$(input)
  enter
  say read
  printf '%s\n' "$wanted" | answer "$1"
}

answer() { # MAX_BYTES
  exec 3>&1
  files=$(while IFS= read -r path && [ -n "$path" ]; do readable "$path" && printf './%s\n' "$path"; done)
  files=$(printf '%s' "$files" | tr '\n' '\0' | xargs -0 -r stat -c '%s %y %n' -- 2>/dev/null)
  [ -z "$files" ] || printf '%s\n' "$files"
  parts=$(while read -r start length path; do readable "$path" && part; done)
  printf '\n'
  printf '%s\n' "$files" | awk -v max="$1" '$0 != "" && $1 <= max { print substr($0, index($0, " ./") + 1) }' | heads "$1"
  printf '%s' "${parts:+$parts
}" | while read -r start length path; do
    printf '\n==> %s <==\n' "$path"
    dd if="$path" bs=65536 iflag=fullblock,skip_bytes,count_bytes skip="$start" count="$length" 2>/dev/null
  done
}

readable() {
  look "$1"
  if [ "$what" = file ] && [ ! -r "$1" ]; then what=denied; fi
  [ "$what" = file ] || { printf '%s %s\n' "$what" "$1" >&3 && return 1; }
}

# Tell the size on the answer, and print which bytes are wanted.
part() {
  found=$(stat -c '%s %y %n' -- "./$path" 2>/dev/null) || return
  printf '%s\n' "$found" >&3
  size=${found%% *}
  [ "$start" -ge 0 ] || start=$((size + start))
  [ "$start" -ge 0 ] || start=0
  printf '%s %s ./%s\n' "$start" "$length" "$path"
}

# ---------------------------------------------------------------------------------------------------------------------- lock

# The lock is a folder with one file, named after its owner. Each name is used once, so that whoever removes a dead owner's
# can't hit a living one's. An owner whose process can be looked at is dead when that process is; any other, of another
# container or machine, when its name has not been touched for SILENCE seconds.
SILENCE=10 own=.mdmemory lock=.mdmemory/shell/lock
log=.mdmemory/log.jsonl

uptime() {
  read -r up _ 2>/dev/null </proc/uptime || up=$(date +%s)
  up=${up%%.*}
}

# Set `state` of a process, and when it was `born`: a number that has been given anew has another birth.
process() {
  state=X born=0
  read -r stat 2>/dev/null <"/proc/$1/stat" || return
  set -- ${stat##*) }
  state=$1 born=${20}
}

introduce() {
  read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id || boot=none
  space=$(readlink /proc/self/ns/pid 2>/dev/null) || space=none
  space=$boot-${space#pid:}
  process $$
  me=$$.$born.$space.$1
}

dead() { # FILE SILENCE_S
  name=${1##*/}
  pid=${name%%.*}
  name=${name#*.}
  since=${name%%.*}
  name=${name#*.}
  if [ "${name%.*}" = "$space" ] && [ -O "$1" ] && [ "$since" != 0 ]; then
    process "$pid"
    [ "$born" != "$since" ] || [ "$state" = Z ]
  else
    touched=$(stat -c %Y -- "$1" 2>/dev/null) || return
    [ $(($(date +%s) - touched)) -gt "$2" ]
  fi
}

take() {
  mkdir "$lock" 2>/dev/null || return
  true 2>/dev/null >"$lock/$me" || return
  set -- "$lock"/*
  [ $# = 1 ] && [ "$1" = "$lock/$me" ] && return
  rm -f -- "$lock/$me"
  return 1
}

clear_dead() {
  for owner in "$lock"/*; do
    if [ -e "$owner" ] && dead "$owner" $SILENCE; then rm -f -- "$owner"; fi
  done
  rmdir "$lock" 2>/dev/null
}

acquire() { # WAIT_S
  uptime
  give_up=$((up + $1))
  until take; do
    [ -d "$lock" ] || [ -w "$own/shell" ] || broke
    clear_dead && continue
    uptime
    [ "$up" -lt "$give_up" ] || end busy
    sleep "0.0$(($$ % 7 + 2))"
  done
  touched_at=$up
  for left in "$own"/shell/work/*; do
    if [ "$left" != "$work" ] && dead "$left" 3600; then rm -rf -- "$left"; fi
  done
}

# Before every step: the lock is still ours.
hold() {
  uptime
  if [ $((up - touched_at)) -ge 3 ]; then
    touch -c -- "$lock/$me"
    touched_at=$up
  fi
  [ -e "$lock/$me" ] || end lost "$done_so_far"
}

leave() {
  rm -rf -- "$work" "$lock/$me"
  rmdir "$lock" 2>/dev/null
}

# -------------------------------------------------------------------------------------------------------------------- commit

done_so_far=nothing left_out=

# A tool failed; why stands on stderr.
broke() { end failed "$done_so_far"; }

# Read the next operation from descriptor 3; no field is empty.
next() { IFS=$tab read -r kind n path dst want required sha always id <&3; }
kept() { eval "[ -z \"\${out_$n-}\" ]"; }
leave_out() {
  eval "out_$n=1"
  left_out="$left_out $n"
}
is() { eval "[ \"\${what_$n-}\" = $1 ]"; }

commit() { # MAKE LOCK_WAIT_S NONCE
  [ "$1" = 0 ] || [ -d "$root" ] || mkdir -p -- "$root" || broke
  enter
  introduce "$3"
  work=$own/shell/work/$me
  for folder in "$own" "$own/shell" "$own/shell/work"; do
    look "$folder"
    [ "$what" = folder ] || [ "$what" = absent ] || end refused "$what" "$where"
    [ "$what" = folder ] || mkdir -p -m 700 -- "$folder" || broke
  done
  [ -e "$own/.gitignore" ] || printf '*\n' >"$own/.gitignore"
  trap leave EXIT
  trap 'exit 1' HUP INT TERM
  mkdir -- "$work" && input | tar -xmof - -C "$work" && [ -f "$work/ops" ] || broke
  exec </dev/null
  stage
  sync -- "$work"/* 2>/dev/null
  acquire "$2"
  has_happened
  check_kinds
  check_links
  check_etags
  apply
  say ok $left_out
}

# Bytes that several operations write are sent once. `ops` is the last in the tar: where it is, all is.
stage() {
  while next; do
    case $kind in
      done) mark=${id#=} ;;
      copy) cp -p -- "$work/$path" "$work/$n" || broke ;;
    esac
  done 3<"$work/ops"
}

hash() { sha256sum <"$1" | head -c 64; }

near_end() { # FILE TEXT
  tail -c 65536 -- "$1" | tr '\000' '\n' | grep -qF -e "$2"
}

has_happened() {
  look $log
  [ "$what" = file ] && near_end $log "$mark" || return
  say happened
  while next; do
    [ "$kind" = put ] || continue
    look "$path"
    [ "$what" != file ] || printf '%s %s\n' "$n" "$(hash "$path")"
  done 3<"$work/ops"
  exit 0
}

# Refuse what can't be written to, and collect the files for one `stat`.
check_kinds() {
  set --
  while next; do
    case $kind in copy | done) continue ;; esac
    if [ "$kind" = move ]; then
      look "$dst"
      eval "dst_$n=$what"
      refuse_unsafe
    fi
    look "$path"
    eval "what_$n=$what"
    refuse_unsafe
    if [ "$what" = file ] && [ "$kind" != move ]; then set -- "$@" "./$path"; fi
  done 3<"$work/ops"
  true >"$work/stat" || broke
  [ $# = 0 ] || stat -c '%h %a %u:%g' -- "$@" >"$work/stat" || broke
}

refuse_unsafe() {
  case $what in
    file | absent) ;;
    folder) [ "$kind" = move ] || end refused folder "$where" ;;
    blocked | denied) end refused "$what" "$where" ;;
    link) [ "$kind $want $where" = "delete link $path" ] || refuse ;; # a delete of the link itself
    *) refuse ;;
  esac
}

refuse() {
  if [ "$required" = 1 ]; then end refused "$what" "$where"; else leave_out; fi
}

# Refuse hard links, keep each file's mode and owner, and take the hash of what is to be replaced or deleted.
check_links() {
  set --
  while next; do
    case $kind in copy | done | move) continue ;; esac
    is file || continue
    read -r links mode owner <&4
    if [ "$kind" != delete ] && [ "$links" != 1 ]; then
      [ "$required" = 0 ] || end refused hard_link "$path"
      leave_out
    fi
    if [ "$kind" = put ] && kept; then
      [ -O "$path" ] || chown "$owner" -- "$work/$n" 2>/dev/null
      [ "$mode" = 644 ] || chmod "$mode" -- "$work/$n" || broke
    fi
    [ "$kind" = append ] || set -- "$@" "./$path"
  done 3<"$work/ops" 4<"$work/stat"
  true >"$work/sums" || broke
  [ $# = 0 ] || sha256sum -- "$@" >"$work/sums" || broke
}

check_etags() {
  while next; do
    case $kind in
      put | delete)
        etag=-
        if is file; then read -r etag _ <&4; elif is link; then etag=link; fi
        if kept && ! holds; then
          [ "$required" = 0 ] || end conflict "$n" path "$etag"
          leave_out
        fi
        if [ "$etag" = "$sha" ] && [ "$always" = 0 ]; then eval "there_$n=1"; fi
        ;;
      move)
        eval "what=\$dst_$n"
        [ "$what" != file ] || end conflict "$n" dst "$(hash "$dst")"
        [ "$what" = absent ] || end conflict "$n" dst "$what"
        ! is absent || end conflict "$n" path -
        ;;
    esac
  done 3<"$work/ops" 4<"$work/sums"
}

holds() {
  [ "$want" = '*' ] || [ "$etag" = "$want" ] && return
  if [ "$kind" = put ]; then [ "$etag" = "$sha" ]; else [ "$etag" = - ]; fi
}

# Apply in order. `$@` is what has to be made durable: all of it before the log grows.
apply() {
  while next; do
    case $kind in put | append | move) kept && make_parent ;; esac
  done 3<"$work/ops"
  set --
  while next; do
    case $kind in copy | done) continue ;; esac
    kept || continue
    hold
    case $kind in
      put)
        if eval "[ -n \"\${there_$n-}\" ]"; then continue; fi
        make_parent
        mv -f -- "$work/$n" "./$path" || broke
        ;;
      append)
        if [ "$path" = $log ]; then
          [ $# = 0 ] || sync -- "$@" 2>/dev/null
          set --
        fi
        make_parent
        append
        [ "$id" = "=$mark" ] || [ "$path" != $log ] || sync -- $log 2>/dev/null
        ;;
      delete) rm -f -- "./$path" || broke ;;
      move)
        look "$dst"
        [ "$what" = absent ] || end conflict "$n" dst "$what"
        make_parent
        mv -- "./$path" "./$dst" || broke
        target=./$dst
        set -- "$@" "${target%/*}"
        ;;
    esac
    done_so_far=part
    target=./$path
    set -- "$@" "${target%/*}"
    [ "$kind" != append ] || set -- "$@" "$target"
  done 3<"$work/ops"
  [ $# = 0 ] || sync -- "$@" 2>/dev/null
}

make_parent() {
  [ "$kind" = move ] && target=./$dst || target=./$path
  [ -d "${target%/*}" ] || mkdir -p -- "${target%/*}" || broke
}

append() {
  case $path in "$own"/*) umask 077 ;; *) umask 022 ;; esac
  size=new
  if [ -e "./$path" ]; then
    size=$(stat -c %s -- "./$path") || broke
    if [ "$id" != = ] && near_end "./$path" "${id#=}"; then return; fi
    if [ "$size" != 0 ] && [ -n "$(tail -c 1 -- "./$path" | tr '\000' x)" ]; then
      { printf '\n' && cat -- "$work/$n"; } >"$work/line" && mv -f -- "$work/line" "$work/$n" || broke
    fi
  fi
  cat -- "$work/$n" >>"./$path" && return
  if [ "$size" = new ]; then rm -f -- "./$path"; else dd if=/dev/null of="./$path" bs=1 seek="$size" 2>/dev/null; fi
  broke
}

case $verb in
  scan) scan "$1" ;;
  read) read_files "$1" ;;
  commit) commit "$@" ;;
esac
exit 0
