#!/usr/bin/env bash
# An HDFS of one node on this machine, for the tests: Hadoop's own, from Maven Central.
#
#   scripts/hdfs.sh install
#   scripts/hdfs.sh start    # its content is lost when it stops
#   scripts/hdfs.sh stop
#
# WebHDFS answers on port 50070 (PORT=N for another one). Everything is in HDFS_DIR (default: .hdfs).
set -euo pipefail
cd "$(dirname "$0")/.."

DIR="$(realpath -m "${HDFS_DIR:-.hdfs}")"
PORT="${PORT:-50070}"

install() {
    [ -d "$DIR/libs" ] && [ ! scripts/hdfs/pom.xml -nt "$DIR/libs" ] && return
    mkdir -p "$DIR/new"
    cp scripts/hdfs/pom.xml "$DIR"
    # -C: a download whose checksum is wrong is an error.
    mvn --batch-mode --quiet -C --file "$DIR/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime "-DoutputDirectory=$DIR/new"
    rm -rf "$DIR/libs"
    mv "$DIR/new" "$DIR/libs"
    touch "$DIR/libs"
}

start() {
    [ -d "$DIR/libs" ] || { echo "hdfs.sh: not installed; run: scripts/hdfs.sh install" >&2; exit 2; }
    (cd "$DIR" && exec nohup java -Xmx512m -cp "libs/*" org.apache.hadoop.mapreduce.MiniHadoopClusterManager \
        -D dfs.permissions.enabled=false -nomr -format -nnhttpport "$PORT" >"$DIR/log" 2>&1 & echo $! >"$DIR/pid")
    for _ in $(seq 60); do
        if grep -q "Started MiniDFSCluster" "$DIR/log"; then return; fi
        sleep 1
    done
    stop
    echo "hdfs.sh: it did not start; see $DIR/log" >&2
    exit 2
}

stop() {
    [ ! -f "$DIR/pid" ] || kill "$(cat "$DIR/pid")" 2>/dev/null || true
    rm -f "$DIR/pid"
}

case "${1:-}" in
    install | start | stop) "$1" ;;
    *) sed -n '2,/^set/{/^#/p}' "$0" | cut -c3-; exit 2 ;;
esac
