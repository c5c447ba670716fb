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
