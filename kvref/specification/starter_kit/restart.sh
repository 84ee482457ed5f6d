#!/bin/sh
# Restart the server at the same address, on the same data, with the settings of the arguments, such as
# daemon_memcached_w_batch_size=4; without arguments with its own. Any exit code but 0: it refuses them.
set -eu
cd "$(dirname "$0")"
if [ -f server.pid ]; then
    kill -TERM "$(cat server.pid)"
    while kill -0 "$(cat server.pid)" 2>/dev/null; do sleep 0.1; done
fi
# Replace this line by the command that starts your server; it must write server.pid.
# nohup makes the server ignore SIGHUP until it sets a handler. A runtime that leaves an ignored signal alone, such as Java, needs another
# signal in reload.sh, or setsid instead of nohup.
nohup ./server data.db "$@" >server.log 2>&1 </dev/null &
