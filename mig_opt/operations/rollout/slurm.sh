say() { printf '%s\n' "$*" >&2; }

problems=0
problem() {
  say "error: $*"
  problems=$((problems + 1))
}

read -ra ON <<<"${ON_NODE:-ssh -o BatchMode=yes}"
read -ra RESTART <<<"${RESTART_SLURMCTLD:-systemctl restart slurmctld}"
read -ra SHARE <<<"${SHARE_CONF:-true}"
SLURM_CONF=${SLURM_CONF:-/etc/slurm/slurm.conf}
GRES_CONF=${GRES_CONF:-${SLURM_CONF%/*}/gres.conf}
export SLURM_CONF
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REASON='MIG instances change'
declare -A NEW_GRES STATE FILE

# lock [check]: ends if another one is at work on the files of Slurm; several may check at a time. What may go on for longer
# than this (a daemon, a connection of ssh) is begun without the lock.
lock() {
  local how=-s
  exec 9<"$SLURM_CONF"
  if [[ ${1:-} != check ]]; then how=-x && exec 9>>"$SLURM_CONF"; fi
  if ! flock -n "$how" 9; then
    say "error: another controller.sh is at work on $SLURM_CONF; wait until it has ended (fuser $SLURM_CONF shows it)"
    exit 1
  fi
}

# on NODE ACTION: runs the script of a node there, with the settings of this one
on() {
  {
    for name in EDITED GRES_CONF STOP_SLURMD START_SLURMD NVIDIA_SMI MIG_MINORS; do
      if [[ -v $name ]]; then printf '%s=%q\n' "$name" "${!name}"; fi
    done
    cat "$here/node-$1.sh"
  } | "${ON[@]}" "$1" bash -s -- "$2" 9>&-
}

# of NODE KEY: prints what Slurm says of a node
of() { scontrol -o show node "$1" | tr ' ' '\n' | sed -n "s/^$2=//;T;s/([^)]*)//g;p"; }

# gpus NODE: prints the GPUs and instances of a node; Slurm adds to them, to what is beside them, and numbers of 1
gpus() { of "$1" Gres | gpus_in; }
gpus_in() { tr , '\n' | sed -n '/^gpu/ { /:[0-9]*$/!s/$/:1/; p }' | sort | paste -sd,; }

# edited FILE NODE FUNCTION: prints a file of Slurm, with what the function makes of each line about a node in its place;
# lines that are about other nodes, too, are divided
edited() {
  local raw='' text='' line own list names others put
  local key='(^|[[:space:]])[Nn][Oo][Dd][Ee][Nn][Aa][Mm][Ee]=([^[:space:]]+)'
  while IFS= read -r line || [[ -n $line ]]; do
    raw+=$line
    text+=${line%%#*}
    if [[ $text =~ ^(.*)\\[[:space:]]*$ ]]; then
      raw+=$'\n' text="${BASH_REMATCH[1]} "
      continue
    fi
    if [[ $text =~ $key && ${BASH_REMATCH[2]} != DEFAULT ]]; then
      list=${BASH_REMATCH[2]}
      names=$(scontrol show hostnames "$list")
      if [[ $'\n'$names$'\n' == *$'\n'"$2"$'\n'* ]]; then
        own=${text/"=$list"/"=$2"}
        put=$("$3" "$own")
        if [[ $put != "$own" ]]; then
          others=$(grep -vxF -- "$2" <<<"$names" | paste -sd, || true)
          raw=$put
          if [[ -n $others ]]; then
            if [[ $text =~ (NodeAddr|NodeHostName|NodeHostname|Port|BcastAddr)=[^[:space:]]*[],] ]]; then
              say "error: $1: $2 shares its line with $others, with a list in ${BASH_REMATCH[1]}; give it a line of its own"
              return 1
            fi
            raw=${text/"=$list"/"=$(scontrol show hostlist "$others")"}$'\n'$put
          fi
        fi
      fi
    fi
    if [[ -n $raw || -z $line ]]; then printf '%s\n' "$raw"; fi
    raw='' text=''
  done <"$1"
  printf '%s' "$raw"
}

tell() { printf '%s\n' "$1" >&3; printf '%s' "$1"; }
lines_of() { edited "$1" "$2" tell 3>&1 >/dev/null; }

# whole FILE: prints the lines of a file of Slurm as Slurm takes them: without comments, what goes on in the next one in one
whole() { sed -E ':a; s/#.*//; /\\[[:space:]]*$/ { N; s/\\[[:space:]]*\n/ /; ba }' "$1"; }

# The line of a node in slurm.conf with $gres; nothing in place of a line of gres.conf for an instance on $changed
with_gres() {
  local value=${gres:+Gres=$gres}
  if [[ $1 =~ ^(.*[[:space:]])[Gg][Rr][Ee][Ss]=[^[:space:]]*(.*)$ ]]; then
    printf '%s' "${BASH_REMATCH[1]}$value${BASH_REMATCH[2]}"
  else
    printf '%s' "${1%"${1##*[![:space:]]}"} $value"
  fi
}
FILES='[Mm]ultiple[Ff]iles=([^[:space:]]*/)nvidia([0-9]+),'
without_instances() { if ! [[ $1 =~ $FILES && " $changed " == *" ${BASH_REMATCH[2]} "* ]]; then printf '%s' "$1"; fi; }

# plan NODE COLUMN: sets $now, $gres, $style and TYPES for a node, which has the instances of before (3) or after (4) the change
declare -A TYPES
plan() {
  local node=$1 token entry name spelled key prefix='' types=' ' sum=0 result='' own kind auto
  local -a columns tokens
  local -A now_of=() next=() known=()
  local shape='^gpu:(([^:]*_)?([0-9]+g\.[0-9]+gb[^:]*))(:([0-9]+))?$'
  TYPES=()
  own=$(lines_of "$GRES_CONF" "$node")
  style=files
  # What a line of the node says of it counts, else that of all nodes.
  auto=$(grep -i AutoDetect= <<<"$own" || whole "$GRES_CONF" | grep -iv NodeName= || true)
  if ! [[ $own =~ $FILES ]] && grep -iqE 'AutoDetect=(nvml|nvidia)' <<<"$auto"; then style=detected; fi
  if grep -iqE 'AutoDetect=nvml.*Count=' <<<"$own"; then
    say "error: gres.conf has Count beside AutoDetect for $node, which Slurm does not support for instances; leave it out"
    return 1
  fi
  if [[ $style == detected && -n ${EMPTY[$node]} ]]; then
    say "error: $node: GPU ${EMPTY[$node]} would have no instance, and AutoDetect takes it for a whole GPU then; keep one on it"
    return 1
  fi
  if [[ -n $(whole "$GRES_CONF" | grep -i MultipleFiles= | grep -iv NodeName=) ]]; then
    say "error: $GRES_CONF has instances without the NodeName of their node; write it in front"
    return 1
  fi
  # As the file has it: what Slurm shows has more.
  now=$(lines_of "${FILE[$node]}" "$node")
  if [[ $now =~ (^|[[:space:]])[Gg][Rr][Ee][Ss]=([^[:space:]]*) ]]; then now=${BASH_REMATCH[2]}; else now=$(of "$node" Gres); fi
  IFS=, read -ra tokens <<<"$now"
  for token in "${tokens[@]}"; do
    if [[ $token =~ $shape ]]; then types+="${BASH_REMATCH[3]} " prefix=${BASH_REMATCH[2]}; fi
  done
  if [[ $types == ' ' && $now != *gpu:[0-9]* ]]; then
    kind=$(on "$node" name)
    kind=${kind,,}
    if [[ $style == detected ]]; then kind=${kind%%-*}; fi
    prefix=${kind// /_}_
  fi
  for entry in ${COUNTS[$node]}; do
    IFS=: read -ra columns <<<"$entry"
    name=${columns[0]} spelled=${columns[1]} key=$name
    if [[ $types != *" $name "* && ($types == *" $spelled "* || $style == detected) ]]; then key=$spelled; fi
    now_of[$key]=$((${now_of[$key]:-0} + columns[$2 - 1]))
    next[$key]=$((${next[$key]:-0} + columns[3]))
    sum=$((sum + columns[3] - columns[$2 - 1]))
    TYPES[$name]=$prefix$key
  done
  for token in "${tokens[@]}"; do
    if [[ $token =~ $shape ]]; then
      key=${BASH_REMATCH[3]}
      if ((${BASH_REMATCH[5]:-1} != ${now_of[$key]:-0})); then
        say "error: $node has ${BASH_REMATCH[5]:-1} of ${BASH_REMATCH[1]} in Slurm, and ${now_of[$key]:-0} in the plan"
        return 1
      fi
      known[$key]=1
      if ((next[$key])); then result+=",gpu:${BASH_REMATCH[1]}:${next[$key]}"; fi
    elif [[ $types == ' ' && $token =~ ^gpu:([0-9]+)$ ]]; then
      TYPES=()
      now_of=() next=()
      if ((BASH_REMATCH[1] + sum)); then result+=",gpu:$((BASH_REMATCH[1] + sum))"; fi
    else
      result+=",$token"
    fi
  done
  for key in $(printf '%s\n' "${!next[@]}" | sort); do
    if [[ -n ${known[$key]:-} ]]; then continue; fi
    if ((now_of[$key])); then
      say "error: no type of $node in Slurm names ${key}: $now"
      return 1
    fi
    if ((next[$key])); then result+=",gpu:$prefix$key:${next[$key]}"; fi
  done
  gres=${result#,}
}

# file_of NODE: prints the file with the line of a node: slurm.conf, or one that it includes
file_of() {
  local file
  while read -r file; do
    if [[ $file != /* ]]; then file=${SLURM_CONF%/*}/$file; fi
    if [[ -n $(lines_of "$file" "$1") ]]; then
      printf '%s\n' "$file"
      return
    fi
  done < <(printf '%s\n' "$SLURM_CONF" && sed -nE 's/^[[:space:]]*[Ii]nclude[[:space:]]+([^#[:space:]]+).*/\1/p' "$SLURM_CONF")
  say "error: neither $SLURM_CONF nor a file that it includes has a line of $1"
  return 1
}

survey() {
  local node=$1 at state gres style now
  if [[ -d $here/$node.before ]]; then
    problem "$node: a change has begun and not ended; take it back with: $0 undo"
  elif ! at=$(on "$node" check) || ! FILE[$node]=$(file_of "$node") || ! state=$(of "$node" State); then
    problem "$node: see above"
  elif [[ $state =~ DOWN|INVAL|NOT_RESPONDING|FAIL|\* ]]; then
    problem "$node is $state in Slurm; see to that first"
  elif [[ $at == new ]] && plan "$node" 4 2>/dev/null && [[ $gres == "$now" ]]; then
    STATE[$node]=done
    NEW_GRES[$node]=$gres
  elif ! plan "$node" 3; then
    problem "$node: see above"
  else
    STATE[$node]=old
    NEW_GRES[$node]=$gres
  fi
}

# stranded: tells the pending jobs whose GPUs some node has now, and none will have
stranded() {
  local node value
  {
    while read -r node value; do
      printf 'now %s\nnext %s\n' "$value" "${NEW_GRES[$node]-$value}"
    done < <(scontrol -o show node | sed -nE 's/^NodeName=([^ ]+) .* Gres=([^ ]*) .*/\1 \2/; s/\([^)]*\)//g; p')
    scontrol -o show job | grep JobState=PENDING || true
  } | awk '
    $1 == "now" || $1 == "next" {
      for (i = split($2, tokens, ","); i; i--)
        if (split(tokens[i], part, ":") == 3 && part[1] == "gpu" && part[3] + 0 > most[$1, part[2]]) most[$1, part[2]] = part[3] + 0
      next
    }
    {
      for (field = 2; field <= NF; field++) {
        if ($field !~ /^TresPer(Node|Job|Task|Socket)=/) continue
        value = $field; sub(/^[^=]*=/, "", value)
        for (i = split(value, tokens, ","); i; i--) {
          if (!match(tokens[i], /gpu:[^:=]*[^0-9:=]/)) continue
          split(substr(tokens[i], RSTART), part, /[:=]/)
          count = $field ~ /^TresPerNode/ && part[3] ? part[3] + 0 : 1
          if (most["next", part[2]] < count && count <= most["now", part[2]])
            printf "%s, which is pending, wants %d of %s: no node will have them any more.\n", $1, count, part[2]
        }
      }
    }' | sed 's/^JobId=/Job /'
}

# drain NODE: waits until no job is on a node, which Slurm has to say
drain() {
  local jobs='' before='' state
  state=$(of "$1" State)
  if [[ $state != *DRAIN* ]]; then scontrol update NodeName="$1" State=DRAIN Reason="$REASON"; fi
  until jobs=$(squeue -ahw "$1" -t R,CG,CF,S,ST -o %i | xargs) && state=$(of "$1" State) &&
    [[ -z $jobs && -n $state && ! $state =~ ALLOC|MIXED|COMPLETING ]]; do
    if [[ $jobs != "$before" ]]; then say "$1: waiting for the jobs ${jobs}"; fi
    before=$jobs
    sleep "${POLL_SECONDS:-5}"
  done
}

# restarted NODE GPUS BEFORE: waits until a node has registered anew with these instances (and not as it did BEFORE)
restarted() {
  local left state began
  for ((left = ${START_SECONDS:-60}; left > 0; left--)); do
    # In this order: the state is that of a node that has registered, or a later one.
    began=$(of "$1" SlurmdStartTime 2>/dev/null || true)
    state=$(of "$1" State 2>/dev/null || true)
    if [[ $began != [0-9]* || $began == "$3" ]]; then state='not registered yet'; fi
    if [[ $state == *INVAL* ]]; then
      say "error: Slurm takes $1 for invalid; the log of slurmctld says why"
      return 1
    fi
    if [[ ! $state =~ registered|NOT_RESPONDING|\* && $(gpus "$1") == "$2" ]]; then return; fi
    sleep 1
  done
  say "error: $1 has not come back within ${START_SECONDS:-60} s as wanted: $state, Gres=$(gpus "$1")"
  return 1
}

# bring_up NODE GPUS: lets Slurm read its files, and starts the node
bring_up() {
  local began there left
  began=$(of "$1" SlurmdStartTime)
  "${SHARE[@]}" 9>&-
  there=$(on "$1" same)
  if [[ -n $there && $there != "$(cksum <"$EDITED" && cksum <"$GRES_CONF")" ]]; then
    say "error: $1 has other files of Slurm than this machine; let SHARE_CONF be a command that copies them to all nodes"
    return 1
  fi
  "${RESTART[@]}" 9>&-
  for ((left = 60; left > 0; left--)); do
    if scontrol ping 2>/dev/null | grep -q ' UP'; then break; fi
    sleep 1
  done
  on "$1" start
  restarted "$1" "$2" "$began"
}

# change NODE: all steps, of which each ends the change if it fails
change() {
  local node=$1 gres style now changed lines minor profile first second cores own auto dev=${NVIDIA_DEVICES:-/dev}
  drain "$node"
  if [[ $(on "$node" check) != old ]]; then say "$node: its instances are there already"; fi
  plan "$node" 3
  EDITED=${FILE[$node]}
  # All of it or nothing, so that what is there can be taken back.
  rm -rf "$here/$node.begin"
  mkdir "$here/$node.begin"
  cp -p "$EDITED" "$here/$node.begin/slurm"
  cp -p "$GRES_CONF" "$here/$node.begin/gres"
  gpus "$node" >"$here/$node.begin/gpus"
  printf '%s\n' "$EDITED" >"$here/$node.begin/file"
  mv "$here/$node.begin" "$here/$node.before"
  on "$node" stop
  on "$node" change
  edited "$EDITED" "$node" with_gres >"$here/$node.before/new"
  cat "$here/$node.before/new" >"$EDITED"
  if [[ $style == files ]]; then
    lines=$(on "$node" files)
    changed=$(cut -d ' ' -f 1 <<<"$lines" | sort -u | xargs)
    own=$(lines_of "$GRES_CONF" "$node")
    auto=$(grep -m 1 -ioE '\bAutoDetect=[^ ]+' <<<"$own" || true)
    edited "$GRES_CONF" "$node" without_instances >"$here/$node.before/new"
    while read -r minor profile first second; do
      if [[ -z $profile ]]; then continue; fi
      cores=$(grep -iE "MultipleFiles=[^ ]*/nvidia$minor," <<<"$own" | grep -ioE '\b(Cores|Flags)=[^ ]+' | sort -u | xargs || true)
      printf 'NodeName=%s Name=gpu %sMultipleFiles=%s%s\n' "$node" "${TYPES[$profile]:+Type=${TYPES[$profile]} }" \
        "$dev/nvidia$minor,$dev/nvidia-caps/nvidia-cap$first,$dev/nvidia-caps/nvidia-cap$second" \
        "${auto:+ $auto}${cores:+ $cores}"
    done <<<"$lines" >>"$here/$node.before/new"
    cat "$here/$node.before/new" >"$GRES_CONF"
  fi
  bring_up "$node" "$(gpus_in <<<"$gres")"
  rm -r "$here/$node.before"
}

# undo NODE: makes a node as it was before a change that has not ended
undo() {
  local before=$here/$1.before
  if [[ ! -d $before ]]; then return; fi
  say "$1: back to what it was"
  on "$1" stop || true
  on "$1" restore
  EDITED=$(<"$before/file")
  cat "$before/slurm" >"$EDITED"
  cat "$before/gres" >"$GRES_CONF"
  bring_up "$1" "$(<"$before/gpus")"
  rm -r "$before"
}

# resume NODE: gives a node back, unless somebody else had drained it before
resume() {
  if scontrol show node "$1" | grep -q "Reason=$REASON"; then
    scontrol update NodeName="$1" State=RESUME
  elif [[ $(of "$1" State) == *DRAIN* ]]; then
    say "$1 stays drained, as it was"
  fi
}

# try FUNCTION NODE: sets $code to 0, or to that of the first step of a function that fails
try() {
  set +e
  (
    set -e
    "$@"
  )
  code=$?
  set -e
}

main() {
  local node code failed stopped=''
  if [[ ${1:-} != '' && $1 != check && $1 != undo ]] || (($# > 1)); then
    say "usage: bash $0 [check|undo]"
    exit 2
  fi
  lock "$@"
  if [[ ${1:-} == undo ]]; then
    for node in "${NODES[@]}"; do
      undo "$node"
      resume "$node"
    done
    exit
  fi
  for node in "${NODES[@]}"; do survey "$node"; done
  if ((problems)); then
    say "Nothing has been changed."
    exit 1
  fi
  stranded
  for node in "${NODES[@]}"; do
    printf '%s: Gres=%s%s\n' "$node" "${NEW_GRES[$node]}" "$([[ ${STATE[$node]} != "done" ]] || echo ', as it is')"
  done
  if [[ ${1:-} == check ]]; then exit; fi
  trap 'stopped=1' HUP INT TERM
  for node in "${NODES[@]}"; do
    if [[ ${STATE[$node]} == "done" ]]; then continue; fi
    try change "$node"
    failed=$code
    if ((failed)); then
      try undo "$node"
      if ((code)); then
        say "$node is drained, and could not be made as it was; see above, then: $0 undo"
        exit 1
      fi
    fi
    resume "$node"
    if ((failed)); then
      say "$node: the change failed and was taken back; the nodes after it have not been touched."
      exit 1
    fi
    printf '%s: done\n' "$node"
    if [[ -n $stopped ]]; then exit 130; fi
  done
}
