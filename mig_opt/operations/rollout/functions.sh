say() { printf '%s\n' "$*" >&2; }

# GPUs of the machine on which this runs need no ssh.
for gpu in "${!GPUS[@]}"; do
  case ${GPUS[gpu]%/*} in "$HOSTNAME" | "${HOSTNAME%%.*}") GPUS[gpu]=${GPUS[gpu]##*/} ;; esac
done

# host_of GPU: prints the machine that has this GPU of the plan, nothing if it is this one
host_of() { if [[ ${GPUS[$1]} == */* ]]; then printf '%s' "${GPUS[$1]%%/*}"; fi; }

# line_at GPU TEXT: runs a line of shell on the machine that has this GPU of the plan
line_at() {
  if [[ ${GPUS[$1]} == */* ]]; then
    ssh -n -o BatchMode=yes "${GPUS[$1]%%/*}" "$2" 8<&-
  else
    bash -c "$2" </dev/null 8<&-
  fi
}

# at GPU COMMAND...: runs a command there
at() {
  local line
  printf -v line '%q ' "${@:2}"
  line_at "$1" "$line"
}

query() { at "$1" "${SMI[@]}" -i "${GPUS[$1]##*/}" --query-gpu="$2" --format=csv,noheader; }
mig() { at "$1" "${SMI[@]}" mig -i "${GPUS[$1]##*/}" "${@:2}"; }

# instances GPU: prints "PROFILE-ID:START INSTANCE-ID GPU-INDEX" for each instance that exists
instances() {
  local text line count=0
  local row='^\|[ ]+([0-9]+)[ ]+MIG[ ]+[^ ]+[ ]+([0-9]+)[ ]+([0-9]+)[ ]+([0-9]+):[0-9]+[ ]+\|'
  if ! text=$(mig "$1" -lgi 2>&1) || [[ $text == *"No GPU instances found"* ]]; then
    if [[ $text == *"No GPU instances found"* ]]; then return; fi
    say "$text"
    return 1
  fi
  while IFS= read -r line; do
    if [[ $line =~ $row ]]; then
      printf '%s:%s %s %s\n' "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[1]}"
      count=$((count + 1))
    fi
  done <<<"$text"
  if ((count == 0)); then
    say "this list of instances is in a form that is not known:"
    say "$text"
    return 1
  fi
}

# behind PLACE LINES: prints the second word of the line that begins with a place
behind() { awk -v place="$1" '$1 == place { print $2; found = 1; exit } END { exit !found }' <<<"$2"; }

# instance_id GPU PROFILE-ID:START: prints the number that the driver has given to an instance
instance_id() {
  local lines
  lines=$(instances "$1") || return
  if ! behind "$2" "$lines"; then
    say "error: GPU ${NAMES[$1]} has no instance of profile ${2%:*} at slice ${2#*:}"
    return 1
  fi
}

# devices GPU: prints "PROFILE-ID:START UUID" for each instance with a compute instance
devices() {
  local lines table list place id index line row number within
  lines=$(instances "$1") || return
  table=$(at "$1" "${SMI[@]}" -i "${GPUS[$1]##*/}") || return
  list=$(at "$1" "${SMI[@]}" -L) || return
  while read -r place id index; do
    # The table has the number of an instance's device, the list has the UUIDs of devices by number.
    row=$'\n'"\\|[ ]+$index[ ]+$id[ ]+[0-9]+[ ]+([0-9]+)[ ]+\\|"
    if ! [[ $'\n'$table =~ $row ]]; then continue; fi
    number=${BASH_REMATCH[1]} within=''
    row="^[ ]+MIG .*Device[ ]+$number:.*UUID: (MIG-[^)]+)"
    while IFS= read -r line; do
      if [[ $line =~ ^GPU[[:space:]]+([0-9]+): ]]; then within=${BASH_REMATCH[1]}; fi
      if [[ $within == "$index" && $line =~ $row ]]; then
        printf '%s %s\n' "$place" "${BASH_REMATCH[1]}"
      fi
    done <<<"$list"
  done <<<"$lines"
}

# uuid_among DEVICES GPU PROFILE-ID:START: prints what CUDA_VISIBLE_DEVICES has to be for an instance
uuid_among() {
  if ! behind "$3" "$1"; then
    say "error: GPU ${NAMES[$2]}: nvidia-smi shows no device for profile ${3%:*} at slice ${3#*:}; has it a compute instance?"
    return 1
  fi
}

# check GPU 'MUST' 'MAY' 'WANTED': counts as a problem unless MIG mode is enabled, the instances MUST and no others
# but MAY exist (as PROFILE-ID:START), and WANTED (as PROFILE-ID:START:SIZE) are possible on this kind of GPU
problems=0
problem() {
  say "error: GPU ${NAMES[$1]} (${GPUS[$1]}): $2"
  problems=$((problems + 1))
}
check() {
  local gpu=$1 mode lines text place id index start size pattern present=' '
  if ! mode=$(query "$gpu" mig.mode.current); then
    problem "$gpu" "nvidia-smi does not find it; correct the list of GPUs in this script"
    return
  fi
  if [[ $mode != Enabled ]]; then
    problem "$gpu" "MIG mode is $mode; enable it with: nvidia-smi -i ${GPUS[$gpu]##*/} -mig 1"
    return
  fi
  if ! lines=$(instances "$gpu") || ! text=$(mig "$gpu" -lgipp); then
    problem "$gpu" "its instances or their possible places cannot be listed"
    return
  fi
  while read -r place id index; do
    if [[ -z $place ]]; then continue; fi
    present+="$place "
    if [[ " $2 $3 " != *" $place "* ]]; then
      problem "$gpu" "instance $id (profile ${place%:*} at slice ${place#*:}) is in the way; destroy it first"
    fi
  done <<<"$lines"
  for place in $2; do
    if [[ $present != *" $place "* ]]; then
      problem "$gpu" "an instance of profile ${place%:*} at slice ${place#*:} should exist, but does not"
    fi
  done
  for place in $4; do
    IFS=: read -r id start size <<<"$place"
    pattern="Profile ID +$id Placements? *: *\\{([0-9, ]+)\\}:$size"
    if ! [[ $text =~ $pattern && ,${BASH_REMATCH[1]// /}, == *,$start,* ]]; then
      problem "$gpu" "profile $id of $size memory slices at slice $start is not possible; is it another kind of GPU?"
    fi
  done
}
checked() {
  if ((problems)); then
    say "Nothing has been changed."
    exit 1
  fi
}

# create GPU PROFILE-ID:START...: creates instances, each with one compute instance that fills it
create() {
  local gpu=$1 list
  shift
  printf -v list ',%s' "$@"
  say "GPU ${NAMES[$gpu]}: create ${list#,}"
  mig "$gpu" -cgi "${list#,}" -C >&2
}

# computes GPU INSTANCE-ID: succeeds unless an instance has no compute instance, since something was stopped in between
computes() { [[ $(mig "$1" -lci -gi "$2" 2>&1) != *"instances found"* ]]; }

# create_missing GPU PROFILE-ID:START...: creates those that do not exist, and compute instances that are missing
create_missing() {
  local gpu=$1 lines place id missing=''
  shift
  lines=$(instances "$gpu")
  for place; do
    if ! id=$(behind "$place" "$lines"); then
      missing+=" $place"
    elif ! computes "$gpu" "$id"; then
      say "GPU ${NAMES[$gpu]}: create the compute instance of $place (instance $id)"
      mig "$gpu" -cci -gi "$id" >&2
    fi
  done
  if [[ -n $missing ]]; then
    # shellcheck disable=SC2086  # a list of words
    create "$gpu" $missing
  fi
}

# destroy GPU PROFILE-ID:START: destroys an instance, with its compute instances
destroy() {
  local id
  id=$(instance_id "$1" "$2")
  say "GPU ${NAMES[$1]}: destroy $2 (instance $id)"
  if computes "$1" "$id"; then patiently mig "$1" -dci -gi "$id"; fi
  patiently mig "$1" -dgi -gi "$id"
}

# What a process has used is sometimes held for a few seconds after its end.
patiently() {
  local left
  for ((left = 20; left > 0; left--)); do
    if "$@" >&2; then return; fi
    sleep 1
  done
  "$@" >&2
}

defined() { declare -F "$1" >/dev/null; }
