# Hooks for deploy.sh and change.sh: segments are Tritons behind HAProxy, if that runs. Settings: those of triton.sh.
# On other machines this folder has to be at the same path.
MIG_OPT_SERVERS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
begun=$(mktemp)

# script_of SERVICE GPU PROFILE START BATCH PROCESSES: prints the script of the server of a segment
script_of() {
  local script="$MIG_OPT_SERVERS/servers/$1-$2-${3//+/.}-$4-$5x$6.sh"
  if [[ ! -e $script ]]; then
    say "error: there is no $script; export into the folder of the servers that run"
    return 1
  fi
  printf '%s' "$script"
}

# on_machine SCRIPT VERB: does something with a server on its machine
on_machine() {
  local line name
  if [[ -z $MIG_OPT_HOST ]]; then
    bash "$@"
    return
  fi
  printf -v line '%q ' bash "$@"
  for name in CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY TRITON MODELS RUN START_SECONDS; do
    if [[ -n ${!name:-} ]]; then printf -v line '%s=%q %s' "$name" "${!name}" "$line"; fi
  done
  ssh -n -o BatchMode=yes "$MIG_OPT_HOST" "$line"
}

start_segment() {
  local script
  script=$(script_of "$@")
  if ! on_machine "$script" runs; then printf '%s %s\n' "${MIG_OPT_HOST:--}" "$script" >>"$begun"; fi
  on_machine "$script" start
  bash "$script" admit
}

stop_segment() {
  local script
  script=$(script_of "$@")
  bash "$script" drain
  on_machine "$script" stop
}

# A deployment that cannot be served as a whole is not served in part; a change stays at the step that failed.
end_all() {
  local script host
  if (($1)) && defined stop; then
    if [[ -e $DONE ]]; then say 'The change has stopped there. The same command goes on with it.'; fi
  elif (($1)); then
    while read -r host script <&3; do
      MIG_OPT_HOST=${host#-}
      bash "$script" drain || true
      on_machine "$script" stop || true
    done 3<"$begun"
  fi
  rm -f "$begun"
}
trap 'end_all $?' EXIT
