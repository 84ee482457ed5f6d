#!/bin/sh
# Make the server read its configuration tables again, and wait until it has. Exit code 3: it cannot have this configuration.
# This sample sends SIGHUP to the process whose ID the server has written to server.pid, and waits for the line of its log that
# ends the reload: "configuration reloaded", or "configuration not reloaded". Change both to what your server logs.
set -eu
cd "$(dirname "$0")"
ended() { grep -c 'configuration \(not \)\{0,1\}reloaded' server.log || true; }
before=$(ended)
kill -HUP "$(cat server.pid)"
tries=0
while [ "$(ended)" -le "$before" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 200 ] || { echo "reload.sh: server.log has no line that ends the reload within 10 s" >&2; exit 1; }
    sleep 0.05
done
if grep 'configuration \(not \)\{0,1\}reloaded' server.log | tail -n 1 | grep -q 'not reloaded'; then exit 3; fi
