#!/usr/bin/env bash
# A Flink cluster on this machine, and Beam's job server for it: see docs/cluster.md.
#
#   scripts/flink.sh install   # Flink from PyPI, the job server's parts from Maven Central
#   scripts/flink.sh start     # a JobManager and two TaskManagers, on the loopback interface
#   scripts/flink.sh repair    # starts TaskManagers in place of lost ones
#   scripts/flink.sh status
#   scripts/flink.sh stop
#
# Everything is in FLINK_DIR (default: .flink). Other settings: TASKMANAGERS=2, SLOTS=2,
# TASKMANAGER_MEMORY=3g, RESTARTS=10 (0: a job is not restarted), PORT=8081.
set -euo pipefail
cd "$(dirname "$0")/.."

FLINK_VERSION=1.19.3
DIR="$(realpath -m "${FLINK_DIR:-.flink}")"
JAR="$DIR/beam-flink-server.jar"
PORT="${PORT:-8081}"

export FLINK_HOME="$DIR/flink/pyflink" FLINK_CONF_DIR="$DIR/conf"

fail() {
    echo "flink.sh: $*" >&2
    exit 2
}

need() {
    command -v "$1" >/dev/null || fail "$1 is missing; install $2"
}

install() {
    need java "OpenJDK 17"
    need mvn "Maven"
    # Without what PyFlink depends on: only Flink itself is of use here, and it would pin an old Beam.
    [ -d "$FLINK_HOME" ] || "${PYTHON:-.venv/bin/python}" -m pip install --quiet --no-deps --target "$DIR/flink" \
        "apache-flink==$FLINK_VERSION" "apache-flink-libraries==$FLINK_VERSION"
    if [ ! -f "$JAR" ] || [ scripts/flink/pom.xml -nt "$JAR" ]; then
        mkdir -p "$DIR/build"
        cp scripts/flink/pom.xml "$DIR/build"
        # -C: a download whose checksum is wrong is an error.
        mvn --batch-mode --quiet -C --file "$DIR/build/pom.xml" package
        # From a folder of Flink's own, workers live from one step of a job to the next. From a jar
        # that comes with the job, each step would start them anew, which takes 2 seconds.
        mv "$DIR/build/target/beam-flink-1-runner.jar" "$FLINK_HOME/lib"
        mv "$DIR/build/target/beam-flink-1-server.jar" "$JAR"
        rm -rf "$DIR/build"
    fi
    echo "job server: $JAR"
}

configure() {
    mkdir -p "$FLINK_CONF_DIR" "$DIR/log" "$DIR/tmp"
    cp "$FLINK_HOME"/conf/log4j*.properties "$FLINK_CONF_DIR"
    local restarts="exponential-delay" package
    # Java 17 keeps these from Flink and from Beam unless they are opened.
    OPENED=""
    for package in lang lang.invoke lang.reflect net io nio text time util util.concurrent \
        util.concurrent.atomic util.concurrent.locks; do
        OPENED+=" --add-opens=java.base/java.$package=ALL-UNNAMED"
    done
    [ "${RESTARTS:-10}" = 0 ] && restarts="none"
    cat >"$FLINK_CONF_DIR/config.yaml" <<END
env.log.dir: $DIR/log
env.pid.dir: $DIR
io.tmp.dirs: $DIR/tmp
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $PORT
rest.bind-port: $PORT
jobmanager.rpc.address: 127.0.0.1
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 1024m
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: ${SLOTS:-2}
taskmanager.memory.process.size: ${TASKMANAGER_MEMORY:-3g}
# What waits for a Python worker to read it is in direct memory.
taskmanager.memory.task.off-heap.size: 512m
taskmanager.memory.managed.fraction: 0.25
# Our jobs have dozens of steps, each with buffers in every slot; 512 for each would be 8 steps.
taskmanager.network.sort-shuffle.min-buffers: 64
taskmanager.memory.network.min: 128m
taskmanager.memory.network.max: 128m
# Flink's default is to give up at once. A fixed delay would count each lost task as an attempt: one
# lost TaskManager uses up dozens. This strategy counts what fails within a delay once.
restart-strategy.type: $restarts
restart-strategy.exponential-delay.attempts-before-reset-backoff: ${RESTARTS:-10}
restart-strategy.exponential-delay.initial-backoff: 2 s
restart-strategy.exponential-delay.max-backoff: 20 s
restart-strategy.exponential-delay.backoff-multiplier: 1.5
classloader.resolve-order: parent-first
# A thread that meets the end of the heap dies alone, and what waits for it waits for ever.
env.java.opts.all: -XX:+ExitOnOutOfMemoryError $OPENED
slot.request.timeout: 60000
# A lost TaskManager is noticed in seconds.
heartbeat.interval: 2000
heartbeat.timeout: 20000
END
    cp "$FLINK_CONF_DIR/config.yaml" "$FLINK_CONF_DIR/flink-conf.yaml"
}

overview() {
    curl --silent --fail "http://127.0.0.1:$PORT/overview"
}

start() {
    [ -d "$FLINK_HOME" ] && [ -f "$JAR" ] || fail "not installed; run: scripts/flink.sh install"
    overview >/dev/null && fail "port $PORT is in use; run: scripts/flink.sh stop, or set PORT"
    configure
    "$FLINK_HOME/bin/jobmanager.sh" start >/dev/null
    repair
}

repair() {
    local count="${TASKMANAGERS:-2}" running
    running="$(pgrep -fc "TaskManagerRunner.*$FLINK_CONF_DIR" || true)"
    for _ in $(seq $((count - running))); do
        "$FLINK_HOME/bin/taskmanager.sh" start >/dev/null
    done
    wait_for "$count"
}

wait_for() {
    local second
    for second in $(seq 60); do
        if overview | grep -q "\"taskmanagers\":$1,"; then
            status
            return
        fi
        sleep 1
    done
    fail "the cluster did not start within $second s; see $DIR/log"
}

status() {
    overview || fail "no cluster on port $PORT"
    echo
}

stop() {
    [ -d "$FLINK_CONF_DIR" ] || return 0
    "$FLINK_HOME/bin/taskmanager.sh" stop-all >/dev/null || true
    "$FLINK_HOME/bin/jobmanager.sh" stop-all >/dev/null || true
}

case "${1:-}" in
    install | start | repair | status | stop) "$1" ;;
    *) sed -n '2,/^set/{/^#/p}' "$0" | cut -c3-; exit 2 ;;
esac
