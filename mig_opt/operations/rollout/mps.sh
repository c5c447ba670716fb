# Processes of a segment share its instance through NVIDIA's Multi-Process Service: each such instance has one control
# daemon, in a folder of its own. Set NVIDIA_MPS='' if the processes are to do without.
MPS=${NVIDIA_MPS-nvidia-cuda-mps-control}
MPS_FOLDER=${MPS_FOLDER:-/tmp/mig-opt-mps}
mps_folder() { printf '%s/%s' "$MPS_FOLDER" "$1"; }

# needs_mps PROCESSES: succeeds if a segment with that number of processes has a daemon
needs_mps() { [[ -n $MPS ]] && (($1 > 1)); }

# check_mps GPU: counts as a problem unless the machine has the control program
check_mps() {
  if [[ -n $MPS ]] && defined start_segment && ! line_at "$1" "command -v ${MPS%% *}" >/dev/null; then
    problem "$1" "segments of several processes need ${MPS%% *}, which is not there; set NVIDIA_MPS='' to do without"
  fi
}

# mps GPU UUID TEXT: runs a line of shell with the environment of the daemon of an instance
mps() {
  local folder
  printf -v folder '%q' "$(mps_folder "$2")"
  line_at "$1" "export CUDA_VISIBLE_DEVICES=$2 CUDA_MPS_PIPE_DIRECTORY=$folder CUDA_MPS_LOG_DIRECTORY=$folder; $3"
}

# mps_runs GPU UUID: succeeds if the daemon of an instance runs
mps_runs() { mps "$1" "$2" "echo get_server_list | $MPS" >/dev/null 2>&1; }

# start_mps GPU UUID: starts it, unless it runs; not where another user could have made the folder, or can exchange it
start_mps() {
  local folder
  printf -v folder '%q' "$MPS_FOLDER"
  if ! line_at "$1" "umask 022; mkdir -p $folder && [ -O $folder ] && [ ! -L $folder ]"; then
    say "error: GPU ${NAMES[$1]}: $MPS_FOLDER must be a folder of the user who runs this; set MPS_FOLDER to another one"
    return 1
  fi
  if mps_runs "$1" "$2"; then return; fi
  say "GPU ${NAMES[$1]}: start the Multi-Process Service of $2"
  mps "$1" "$2" "mkdir -p \"\$CUDA_MPS_PIPE_DIRECTORY\" && $MPS -d" >&2
}

# stop_mps GPU UUID: ends it, if it runs: processes may have been started without
stop_mps() {
  if ! mps_runs "$1" "$2"; then return; fi
  say "GPU ${NAMES[$1]}: stop the Multi-Process Service of $2"
  mps "$1" "$2" "echo quit | $MPS" >&2
}

# with_instance UUID PROCESSES HOOK SERVICE GPU...: calls a hook with the environment of the processes of a segment
with_instance() {
  (
    export CUDA_VISIBLE_DEVICES=$1
    MIG_OPT_HOST=$(host_of "$5")
    export MIG_OPT_HOST
    if needs_mps "$2"; then
      CUDA_MPS_PIPE_DIRECTORY=$(mps_folder "$1")
      CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
      export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
    "${@:3}" 8<&-
  )
}
