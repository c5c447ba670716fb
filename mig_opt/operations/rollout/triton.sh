# Functions of the scripts of servers. Settings, by variables of the environment:
#   TRITON          what starts the server (tritonserver), with options that all servers are to have
#   MODELS          model repository, whose models are linked into that of each server
#   RUN             folder of logs and process numbers (run, beside this file)
#   START_SECONDS   after which a server that is not ready is given up (300)
#   DRAIN_SECONDS   in which a server that is drained has to answer its requests (300)
#   HAPROXY_SOCKET  socket of HAProxy (haproxy.sock, beside this file); without such a file nothing is told
RUN=${RUN:-$MIG_OPT_SERVERS/run}
HAPROXY_SOCKET=${HAPROXY_SOCKET:-$MIG_OPT_SERVERS/haproxy.sock}
say() { printf '%s\n' "$*" >&2; }
fail() {
  say "error: $NAME: $*"
  exit 1
}

# process: prints the number of the process of the server, if it runs
process() {
  local number
  number=$(cat "$RUN/$NAME.pid" 2>/dev/null) || return
  if [[ $(ps -ww -o args= -p "$number" 2>/dev/null) == *"$MIG_OPT_SERVERS/models/$NAME"* ]]; then printf '%s' "$number"; else return 1; fi
}

# ready: succeeds if the server answers that it is ready
ready() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$HTTP"
    printf 'GET /v2/health/ready HTTP/1.0\r\n\r\n' >&3
    read -r -t 5 line <&3
    [[ $line == *' 200 '* ]]
  ) 2>/dev/null
}

# until_true TENTHS COMMAND...: succeeds when the command does, fails after that time
until_true() {
  local left
  for ((left = $1; left > 0; left--)); do
    if "${@:2}"; then return; fi
    sleep 0.1
  done
  return 1
}

link_model() {
  local repository=$MIG_OPT_SERVERS/models/$NAME/$MODEL entry linked=''
  [[ -d $MODELS/$MODEL ]] || fail "there is no $MODELS/$MODEL; set MODELS to the model repository"
  for entry in "$(cd "$MODELS" && pwd)/$MODEL"/*; do
    if [[ ${entry##*/} != config.pbtxt ]]; then
      ln -sfn "$entry" "$repository/"
      linked=1
    fi
  done
  [[ -n $linked ]] || fail "$MODELS/$MODEL has no version of the model"
}

start_server() {
  local port number server state=ended
  if process >/dev/null && ready; then
    say "$NAME serves already"
    return
  fi
  end_server
  [[ -n ${CUDA_VISIBLE_DEVICES:-} ]] || fail 'set CUDA_VISIBLE_DEVICES to the UUID of the instance'
  for port in "$HTTP" "$GRPC" "$METRICS"; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      fail "port $port is taken; stop what listens there, or export with another --port"
    fi
  done
  link_model
  mkdir -p "$RUN"
  read -ra server <<<"${TRITON:-tritonserver}"
  command -v "${server[0]}" >/dev/null || fail "there is no program ${server[0]}; set TRITON"
  setsid "${server[@]}" --model-repository="$MIG_OPT_SERVERS/models/$NAME" --http-address="$LISTEN" --http-port="$HTTP" \
    --grpc-address="$LISTEN" --grpc-port="$GRPC" --metrics-address="$LISTEN" --metrics-port="$METRICS" \
    >"$RUN/$NAME.log" 2>&1 </dev/null &
  number=$!
  printf '%s\n' "$number" >"$RUN/$NAME.pid"
  up_or_ended() { if ! kill -0 "$number" 2>/dev/null; then return 0; fi; ready; }
  if until_true "$((10 * ${START_SECONDS:-300}))" up_or_ended; then
    if kill -0 "$number" 2>/dev/null; then
      say "$NAME serves"
      return
    fi
  else
    state="was not ready after ${START_SECONDS:-300} s"
    kill -KILL -- "-$number" || true
  fi
  rm -f "$RUN/$NAME.pid"
  say "error: $NAME: the server $state; from $RUN/$NAME.log:"
  { grep -E '^(E[0-9]|error|\| .*UNAVAILABLE)|[Ff]ailed' "$RUN/$NAME.log" || tail -n 5 "$RUN/$NAME.log"; } | cut -c -400 | tail -n 5 >&2
  exit 1
}

# end_server: ends the server, which answers first what it has; nothing if there is none
end_server() {
  local number
  if number=$(process); then
    kill "$number"
    gone() { ! kill -0 "$number" 2>/dev/null; }
    if ! until_true 600 gone; then kill -KILL -- "-$number"; fi
    say "$NAME has ended"
  fi
  rm -f "$RUN/$NAME.pid"
}

proxied() { [[ -S $HAPROXY_SOCKET ]]; }

# proxy COMMAND: has HAProxy do something, and prints what it says
proxy() {
  command -v socat >/dev/null || fail 'socat, which talks to HAProxy, is not installed'
  printf '%s\n' "$1" | socat -t5 - "UNIX-CONNECT:$HAPROXY_SOCKET" ||
    fail "HAProxy does not answer at $HAPROXY_SOCKET; remove that file if it does not run"
}

# order COMMAND: the same, for what is silent if it works
order() {
  local said
  said=$(proxy "$1") || exit 1
  [[ -z ${said//[$'\n ']/} ]] || fail "HAProxy says to '$1': $said"
}

# in_proxy BACKEND COLUMN: prints a column of the state of the server in HAProxy, nothing if it does not know it
in_proxy() { proxy "show servers state $1" | awk -v name="$NAME" -v column="$2" '$4 == name { print $column }'; }

# open_requests: prints the requests that HAProxy has with the server
open_requests() {
  proxy 'show stat' | awk -F, -v name="$NAME" '$2 == name { sum += $3 + $5 } END { print sum + 0 }'
}

up() { [[ $(in_proxy "$SERVICE-http" 6) == 2 && $(in_proxy "$SERVICE-grpc" 6) == 2 ]]; }
idle() { local open; open=$(open_requests 2>/dev/null) && [[ $open == 0 ]]; }

# admit_server: requests go to the server from now on
admit_server() {
  local kind more said
  proxied || return 0
  for kind in http grpc; do
    if [[ -z $(in_proxy "$SERVICE-$kind" 4) ]]; then
      if [[ $kind == http ]]; then more="$HTTP"; else more="$GRPC proto h2 check-proto h1 port $HTTP"; fi
      said=$(proxy "add server $SERVICE-$kind/$NAME $ADDRESS:$more weight $WEIGHT check inter 500ms fall 2 rise 1")
      [[ $said == *registered* ]] || fail "HAProxy does not take it: $said; has it the new haproxy.cfg?"
      order "enable health $SERVICE-$kind/$NAME"
    fi
    order "set server $SERVICE-$kind/$NAME state ready"
  done
  until_true 100 up || fail 'HAProxy does not reach the server'
}

# drain_server: no further requests go to the server; returns when it has answered all
drain_server() {
  local kind known kinds=()
  proxied || return 0
  for kind in http grpc; do
    known=$(in_proxy "$SERVICE-$kind" 4) # if that is not told, this ends: there may be requests
    if [[ -n $known ]]; then
      order "set server $SERVICE-$kind/$NAME state drain"
      kinds+=("$kind")
    fi
  done
  sleep 0.2 # for a request that is just on its way
  until_true "$((10 * ${DRAIN_SECONDS:-300}))" idle ||
    fail "there still are $(open_requests) requests; nothing was stopped. For further ones: bash $0 admit"
  for kind in "${kinds[@]}"; do
    order "set server $SERVICE-$kind/$NAME state maint"
    proxy "del server $SERVICE-$kind/$NAME" >/dev/null # if a connection is still open, it stays in maintenance
  done
}

do_with_server() {
  case ${1:-} in
  start) start_server ;;
  stop) end_server ;;
  runs) process >/dev/null ;;
  admit) admit_server ;;
  drain) drain_server ;;
  *)
    say "usage: bash $0 start|stop|runs|admit|drain"
    exit 2
    ;;
  esac
}
