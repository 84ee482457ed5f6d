#!/bin/sh
# Make the server read its configuration tables again. Exit code 3: the server cannot have this configuration.
# This sample sends SIGHUP to the process whose ID the server has written to server.pid.
set -eu
cd "$(dirname "$0")"
kill -HUP "$(cat server.pid)"
