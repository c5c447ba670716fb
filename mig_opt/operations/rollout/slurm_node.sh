# Layouts are lists of PROFILE-ID:START for each GPU: OLD before the change, NEW after it.

# has GPU LAYOUT: true if a GPU has exactly these instances
has() {
  local lines
  lines=$(instances "$1") || return
  [[ $(cut -d ' ' -f 1 <<<"$lines" | sort | xargs) == "$(tr ' ' '\n' <<<"$2" | sort | xargs)" ]]
}

has_all() {
  local -n layouts=$1
  local gpu
  for gpu in "${!GPUS[@]}"; do has "$gpu" "${layouts[gpu]}" || return; done
}

# become OLD|NEW: destroys what this layout does not have, and creates what it has beside what is there
become() {
  local -n layouts=$1
  local gpu lines place id index wanted
  for gpu in "${!GPUS[@]}"; do
    lines=$(instances "$gpu")
    while read -r place id index; do
      if [[ -n $place && " ${layouts[gpu]} " != *" $place "* ]]; then destroy "$gpu" "$place"; fi
    done <<<"$lines"
    read -ra wanted <<<"${layouts[gpu]}"
    create_missing "$gpu" "${wanted[@]}"
  done
  has_all "$1"
}

# files: prints the number of the GPU's device file, the profile, and the numbers of the files of its capabilities
files() {
  local gpu lines place id index minor part numbers
  for gpu in "${!GPUS[@]}"; do
    # All of it is read: nvidia-smi goes on writing, and would die of that.
    minor=$("${SMI[@]}" -i "${GPUS[gpu]}" -q | awk '/Minor Number/ && !found++ {print $NF}')
    if ! [[ $minor =~ ^[0-9]+$ ]]; then minor=$(query "$gpu" index); fi
    lines=$(instances "$gpu")
    printf '%s\n' "$minor"
    while read -r place id index; do
      if [[ -z $place ]]; then continue; fi
      numbers=''
      for part in access ci0/access; do
        numbers+=" $(awk -v name="gpu$minor/gi$id/$part" '$1 == name {print $2; found = 1} END {exit !found}' \
          "${MIG_MINORS:-/proc/driver/nvidia-caps/mig-minors}")"
      done
      printf '%s %s%s\n' "$minor" "${PROFILES[${place%:*}]}" "$numbers"
    done <<<"$lines"
  done
}

act() {
  local words
  case $1 in
    check)
      if has_all NEW; then
        printf 'new\n'
      else
        checks
        checked
        printf 'old\n'
      fi
      ;;
    change) become NEW ;;
    restore) become OLD ;;
    files) files ;;
    name) query 0 name ;;
    stop | start)
      words=${1^^}_SLURMD
      read -ra words <<<"${!words:-systemctl $1 slurmd}"
      "${words[@]}"
      ;;
    same)
      # With files of its own, the node has to have the ones of the controller.
      for words in "$EDITED" "$GRES_CONF"; do
        if [[ -e $words ]]; then cksum <"$words"; fi
      done
      ;;
    *)
      say "usage: bash $0 check|change|restore|files|name|stop|start"
      exit 2
      ;;
  esac
}
