#!/bin/bash
# Runs a command on a screen that nobody sees, with folders and a session bus
# of its own, and ends whatever it leaves behind.
# usage: with-display.sh COMMAND...
set -um # Every background job is a process group of its own.

folder=$(mktemp -d)
mkdir -m 700 "$folder/run"
mkfifo "$folder/number"
Xvfb -displayfd 9 -screen 0 1280x960x24 -nolisten tcp -noreset 9>"$folder/number" 2>"$folder/xvfb.log" &
screen=$!
if ! read -r -t 30 number <"$folder/number"; then
    cat "$folder/xvfb.log" >&2
    kill $screen
    rm -rf "$folder"
    exit 1
fi

export DISPLAY=:$number XDG_RUNTIME_DIR=$folder/run GDK_BACKEND=x11 NO_AT_BRIDGE=1 GTK_A11Y=none
export XDG_DATA_HOME=$folder/data XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache
# Neither WEBKIT_DISABLE_DMABUF_RENDERER nor WEBKIT_DISABLE_COMPOSITING_MODE:
# with either, taking a picture of the window hangs on a busy machine.
unset WAYLAND_DISPLAY WEBKIT_DISABLE_DMABUF_RENDERER WEBKIT_DISABLE_COMPOSITING_MODE

dbus-run-session -- "$@" &
job=$!
finish() {
    kill -TERM -- -$job 2>/dev/null && sleep 0.3
    kill -KILL -- -$job 2>/dev/null
    kill $screen 2>/dev/null
    wait $screen 2>/dev/null
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 143' TERM INT
wait $job
