# segments GPU: what follows are segments of this GPU
segments() {
  gpu=$1
  present=$(devices "$gpu")
}

# segment PROFILE-ID:START PROFILE BATCH PROCESSES SERVICE: prints where a segment is, and has it started
segment() {
  local uuid
  uuid=$(uuid_among "$present" "$gpu" "$1")
  printf '%q\t%s\t%s\t%s\t%s\t%s\t%s\n' "$5" "$gpu" "$2" "${1#*:}" "$3" "$4" "$uuid"
  if defined start_segment; then
    if needs_mps "$4"; then start_mps "$gpu" "$uuid"; fi
    with_instance "$uuid" "$4" start_segment "$5" "$gpu" "$2" "${1#*:}" "$3" "$4"
  fi
}
