# shellcheck shell=bash
# Throw-away PostgreSQL and Redis servers on free loopback ports. To be sourced: it defines functions and starts nothing.
#
#   install_missing                  installs what is not there: PostgreSQL and Redis
#   servers_begin                    makes SERVERS_DIR; every way out of the script stops the servers and removes it
#   start_postgres [option…]         sets DATABASE_URL, POSTGRES_PID and PG_BIN
#   start_redis                      sets REDIS_URL and REDIS_PIDS
#   start_redis_cluster              the same for a cluster of three
#
# What must hold: only processes started here are ended, by their pid; a server dies with the script even if that is
# killed (PDEATHSIG); a cluster of servers that a package brings along is neither used nor touched. Each server has a
# terminal session of its own, so Ctrl-C reaches the script first and a program that tidies up still finds its servers.

SERVERS_DIR=
POSTGRES_PID=
REDIS_PIDS=()

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# The newest PostgreSQL on this machine: Debian keeps the server's programs out of the PATH.
find_postgres() {
  local found
  found=$(find /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort --version-sort | tail -n 1)
  [ -n "$found" ] || found=$(command -v initdb || true)
  PG_BIN=${found%/initdb}
  [ -n "$PG_BIN" ]
}

install_missing() {
  local missing=()
  find_postgres || missing+=(postgresql)
  { command -v redis-server && command -v redis-cli; } >/dev/null || missing+=(redis-server)
  command -v openssl >/dev/null || missing+=(openssl) # the tests of TLS make certificates
  if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || die "please install: ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || die "please install, as root: apt-get install ${missing[*]}"
    say "Installing ${missing[*]} …"
    local log
    log=$(mktemp)
    if ! { as_root apt-get update &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
      </dev/null >"$log" 2>&1; then
      tail -n 20 "$log" >&2
      rm -f "$log"
      die "could not install: ${missing[*]}"
    fi
    rm -f "$log"
    find_postgres || die "no initdb below /usr/lib/postgresql although postgresql is installed"
  fi
  if ! command -v cargo >/dev/null; then
    # A shell without a login (as CI starts one) has not read the line that rustup adds to the profile.
    [ -x ~/.cargo/bin/cargo ] || die "please install Rust: https://rustup.rs"
    PATH=~/.cargo/bin:$PATH
  fi
}

servers_begin() {
  SERVERS_DIR=$(mktemp -d)
  chmod 711 "$SERVERS_DIR" # the postgres user must get through to its own directory
  trap servers_end EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

servers_end() {
  trap '' HUP INT TERM
  local pid
  for pid in ${POSTGRES_PID:+"$POSTGRES_PID"} ${REDIS_PIDS[@]+"${REDIS_PIDS[@]}"}; do
    kill -s INT "$pid" 2>/dev/null || true # PostgreSQL: end the connections, then stop
  done
  for pid in ${POSTGRES_PID:+"$POSTGRES_PID"} ${REDIS_PIDS[@]+"${REDIS_PIDS[@]}"}; do
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$SERVERS_DIR"
}

# Below the ports that the kernel hands out by itself; a cluster node also takes the port 10000 above its own.
free_port() {
  local try port
  for try in {1..200}; do
    port=$((20000 + RANDOM % 10000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ! (exec 3<>"/dev/tcp/127.0.0.1/$((port + 10000))") 2>/dev/null; then
      FREE_PORT=$port
      return
    fi
  done
  die "no free port found in $try tries"
}

# wait_for PID LOG COMMAND…: until the command succeeds, at most 30 s, and not longer than the process lives.
wait_for() {
  local pid=$1 log=$2 end=$((SECONDS + 30))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! kill -0 "$pid" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then
      tail -n 20 "$log" >&2
      die "a server did not start"
    fi
    sleep 0.05
  done
}

start_postgres() {
  local data=$SERVERS_DIR/postgres log=$SERVERS_DIR/postgres.log user=()
  mkdir "$data"
  if [ "$(id -u)" -eq 0 ]; then
    chown postgres: "$data"
    user=(--reuid=postgres --regid=postgres --clear-groups)
  fi
  (cd "$data" && setpriv --pdeathsig=KILL ${user[@]+"${user[@]}"} "$PG_BIN/initdb" --pgdata="$data" --username=postgres \
    --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync) >"$log" 2>&1 || { tail -n 20 "$log" >&2 && die "initdb failed"; }
  free_port
  setsid setpriv --pdeathsig=QUIT ${user[@]+"${user[@]}"} "$PG_BIN/postgres" -D "$data" -p "$FREE_PORT" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_wal_size=4GB "$@" \
    </dev/null >>"$log" 2>&1 &
  POSTGRES_PID=$!
  export DATABASE_URL="postgresql://postgres@127.0.0.1:$FREE_PORT/postgres"
  wait_for "$POSTGRES_PID" "$log" "$PG_BIN/pg_isready" --quiet --dbname="$DATABASE_URL"
}

# start_redis_node NAME [option…]: sets NODE_PORT and adds the pid to REDIS_PIDS.
start_redis_node() {
  local dir=$SERVERS_DIR/$1
  shift
  mkdir "$dir"
  free_port
  NODE_PORT=$FREE_PORT
  setsid setpriv --pdeathsig=KILL redis-server --bind 127.0.0.1 --port "$NODE_PORT" --dir "$dir" \
    --save '' --appendonly no "$@" </dev/null >"$dir/log" 2>&1 &
  REDIS_PIDS+=($!)
  wait_for "$!" "$dir/log" redis-cli -p "$NODE_PORT" ping
}

start_redis() {
  start_redis_node redis
  export REDIS_URL="redis://127.0.0.1:$NODE_PORT"
}

start_redis_cluster() {
  local node ports=()
  for node in 1 2 3; do
    start_redis_node "redis-$node" --cluster-enabled yes
    ports+=("$NODE_PORT")
  done
  redis-cli --cluster create "${ports[@]/#/127.0.0.1:}" --cluster-yes </dev/null >"$SERVERS_DIR/cluster.log" 2>&1 ||
    { cat "$SERVERS_DIR/cluster.log" >&2 && die "the cluster could not be made"; }
  for node in 0 1 2; do
    wait_for "${REDIS_PIDS[node]}" "$SERVERS_DIR/redis-$((node + 1))/log" cluster_is_ready "${ports[node]}"
  done
  local urls=("${ports[@]/#/redis://127.0.0.1:}")
  REDIS_URL=$(IFS=, && printf '%s' "${urls[*]}")
  export REDIS_URL
}

cluster_is_ready() {
  redis-cli -p "$1" cluster info | grep -q '^cluster_state:ok'
}
