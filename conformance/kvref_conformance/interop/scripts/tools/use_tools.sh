#!/bin/bash
# The tools of libmemcached, text or binary: one process and one connection a command.
# Arguments: HOST PORT PROTOCOL PREFIX. What should come is in ../../features.toml.
with=("--servers=$1:$2")
[ "$3" = binary ] && with+=(--binary)
prefix=$4
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# A tool as JSON: true or false, or what it printed; one that found nothing says nothing or `NOT FOUND`.
did() { timeout 5 "$@" "${with[@]}" >/dev/null 2>&1 && echo true || echo false; }
said() {
    local printed
    if printed=$(timeout 5 "$@" "${with[@]}" 2>"$folder/.error"); then
        printf '"%s"' "$printed"
    elif grep -q 'NOT FOUND' "$folder/.error" || [ ! -s "$folder/.error" ]; then
        echo null
    else
        printf '"error: %s"' "$(head -1 "$folder/.error" | tr -d '"\\')"
    fi
}
# memccp names the key after the file: OPTIONS KEY VALUE.
put() {
    printf %s "${*: -1}" >"$folder/${*: -2:1}"
    did memccp "${@:1:$#-2}" "$folder/${*: -2:1}"
}
# Copied there and back, the file is the same.
same() {
    timeout 5 memccp "${with[@]}" "$folder/$1" && timeout 5 memccat "${with[@]}" --file="$folder/.back" "$1" \
        && cmp -s "$folder/$1" "$folder/.back" && echo true || echo false
}
tell() {
    local IFS=,
    echo "{\"feature\": \"$1\", \"came\": [${*:2}]}"
}
cannot() { echo "{\"feature\": \"$1\", \"came\": [], \"cannot\": \"no tool for it\"}"; }

echo "{\"client\": \"libmemcached tools\", \"version\": \"$(memcstat --version | sed 's/.*libmemcached v\(.*\))/\1/')\"," \
    "\"runtime\": \"bash ${BASH_VERSION%%(*}\"}"

key=$prefix-get
stored=$(put "$key" one)
# It has no --binary.
timeout 5 memcping "${with[0]}" 2>/dev/null || stored='"error: memcping"'
found=$(said memccat "$key")
[ "$(did memcexist "$key")" = true ] || found='"error: memcexist"'
tell get "$stored" "$found" "$(said memccat "$key-none")" "$(did memcrm "$key")" \
    "$(said memccat "$key")"

key=$prefix-values
printf 42 >"$folder/$key-1"
printf 'kvref %.0s' {1..700} >"$folder/$key-2"
for byte in {0..255}; do printf "\\x$(printf %x "$byte")"; done >"$folder/$key-3"
tell values "$(same "$key-1")" "$(same "$key-2")" "$(same "$key-3")"

cannot multi

key=$prefix-store
tell store "$(put --add "$key" one)" "$(put --add "$key" two)" "$(put --replace "$key" two)" \
    "$(put --replace "$key-none" two)" "$(said memccat "$key")"

for feature in append cas incr initial; do cannot "$feature"; done

short=$prefix-expiry
touched=$prefix-touch
put --expire=2 "$short" one >/dev/null
now=$(said memccat "$short")
put --expire=2 "$touched" one >/dev/null
hit=$(did memctouch --expire=100 "$touched")
miss=$(did memctouch --expire=100 "$touched-none")
sleep 3.2
tell expiry "$now" "$(said memccat "$short")"
tell touch "$hit" "$miss" "$(said memccat "$touched")"
cannot gat

key=$prefix-at
tell at "$(put "@@bbb.$key" other)" "$(said memccat "@@bbc.$key")" "$(said memccat "@@aaa.$key")"
cannot multi_at
cannot bind
