# Each GPU works through its part of the plan on its own. Tasks run beside it, those of an instance one after another.
declare -A worker=()
failed=0
lanes=()

# run GPU PROFILE-ID:START PROFILE SECONDS TASK...: lets an instance run tasks, after SECONDS of earlier work
run() {
  local gpu=$1 place=$2 profile=$3 seconds=$4 present uuid
  shift 4
  # Here and not beside the next operation, which may number the devices anew.
  present=$(devices "$gpu")
  uuid=$(uuid_among "$present" "$gpu" "$place")
  (
    failed=0
    MIG_OPT_HOST=$(host_of "$gpu")
    export MIG_OPT_HOST
    if [[ $seconds != 0 ]]; then
      say "GPU ${NAMES[$gpu]}: $profile at slice ${place#*:} is busy with earlier work"
      if defined earlier_work; then
        CUDA_VISIBLE_DEVICES=$uuid earlier_work "$gpu" "$profile" "${place#*:}" "$seconds"
      else
        sleep "$seconds"
      fi
    fi
    for task; do
      say "GPU ${NAMES[$gpu]}: $profile at slice ${place#*:} runs $(printf '%q' "$task")"
      CUDA_VISIBLE_DEVICES=$uuid run_task "$task" "$gpu" "$profile" "${place#*:}" &
      if ! wait "$!"; then
        say "error: GPU ${NAMES[$gpu]}: $(printf '%q' "$task") has failed"
        failed=1
      fi
    done
    exit "$failed"
  ) &
  worker[$place]=$!
}

# await PROFILE-ID:START: waits for the tasks of an instance
await() {
  if [[ -n ${worker[$1]:-} ]]; then
    wait "${worker[$1]}" || failed=1
    unset "worker[$1]"
  fi
}

# release GPU PROFILE-ID:START: destroys an instance, once its tasks have ended
release() {
  await "$2"
  destroy "$1" "$2"
}

lane() {
  local place
  trap - INT TERM HUP
  trap wait EXIT # what runs when an operation fails may come to its end
  "$1"
  for place in "${!worker[@]}"; do await "$place"; done
  exit "$failed"
}

# all FUNCTION...: works through the plans of all GPUs at the same time
all() {
  local name id
  set -m # a group of processes for each lane, so that it can be stopped with its tasks
  for name; do
    lane "$name" </dev/null &
    lanes+=("$!")
  done
  for id in "${lanes[@]}"; do wait "$id" || failed=1; done
  if ((failed)); then
    say "Not everything has been done; see above."
    exit 1
  fi
}

stop() {
  local id
  trap - INT TERM HUP
  for id in "${lanes[@]}"; do kill -TERM -- "-$id" 2>/dev/null || true; done
  say "Stopped, and with it the tasks. Instances that exist stay."
  exit 130
}
trap stop INT TERM HUP
