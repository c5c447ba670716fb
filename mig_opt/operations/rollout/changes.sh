# What has been done is in a file beside this script, so that the same command goes on after a failure.
DONE=$0.done
# Another run may be at a step that is not in the file yet. What goes on for longer than this is begun without the lock.
exec 8<"$0"
if ! flock -n 8; then
  say "error: $0 runs already; wait until that has ended (fuser $0 shows it)"
  exit 1
fi
did=()
if [[ -e $DONE ]]; then mapfile -t did <"$DONE"; fi
# The first line tells of which script it is.
if [[ ${did[0]:-} != "$(cksum <"$0")" ]]; then did=("$(cksum <"$0")"); fi
turn=0

# check_now GPU 'MUST' 'MAY' 'WANTED': the same as check, of the instances after what has been done
check_now() {
  local line verb gpu place must=" $2 "
  for line in "${did[@]:1}"; do
    read -r verb gpu place _ <<<"$line"
    if [[ $gpu == "$1" && $verb == create ]]; then must+="$place "; fi
    if [[ $gpu == "$1" && $verb == destroy ]]; then must=${must/ $place / }; fi
  done
  check "$1" "$must" "$3" "$4"
}

# act COMMAND...: does it, unless it has been done
act() {
  local line
  turn=$((turn + 1))
  if ((turn < ${#did[@]})); then return; fi
  printf '%s\n' "${did[@]}" >"$DONE"
  "$@"
  printf -v line ' %q' "$@"
  did+=("${line# }")
  printf '%s\n' "${did[@]}" >"$DONE"
}

# start GPU PROFILE-ID:START PROFILE BATCH PROCESSES SERVICE: has a segment started
start() {
  segments "$1"
  segment "${@:2}"
}

# stop GPU PROFILE-ID:START PROFILE BATCH PROCESSES SERVICE: has a segment stopped
stop() {
  local uuid
  segments "$1"
  uuid=$(uuid_among "$present" "$1" "$2")
  say "GPU ${NAMES[$1]}: $3 at slice ${2#*:} stops serving $(printf '%q' "$6")"
  with_instance "$uuid" "$5" stop_segment "$6" "$1" "$3" "${2#*:}" "$4" "$5"
  if needs_mps "$5"; then stop_mps "$1" "$uuid"; fi
}
