#!/usr/bin/python3
"""A window named Cover over all others, until it is ended; with `order` the
names of the windows of this screen, the topmost last. Needs python3-xlib."""

import sys

from Xlib import X, display, error

screen = display.Display()
root = screen.screen().root


def name_of(window):
    try:
        named = window.get_full_property(screen.intern_atom("_NET_WM_NAME"), screen.intern_atom("UTF8_STRING"))
        visible = window.get_attributes().map_state == X.IsViewable
        return (named.value.decode() if named else window.get_wm_name()) if visible else None
    except error.XError:
        return None  # It went away while it was looked at.


if sys.argv[1:] == ["order"]:
    for window in root.query_tree().children:
        if name_of(window) in ("Steno", "Cover"):
            print(name_of(window))
else:
    cover = root.create_window(0, 0, 1280, 960, 0, X.CopyFromParent)
    cover.set_wm_name("Cover")
    cover.map()
    cover.configure(stack_mode=X.Above)
    screen.sync()
    print("there", flush=True)
    while True:
        screen.next_event()
