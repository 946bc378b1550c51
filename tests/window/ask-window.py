#!/usr/bin/python3
"""Does to a window of an X11 screen what a window manager or a keyboard would.

usage: ask-window.py close TITLE         the cross in its corner
       ask-window.py leave TITLE         another window comes in front
       ask-window.py keys TITLE KEY...   keys by their X11 names, as Return or
                                         Control_L+l, or texts, as =/tmp/a.wav

TITLE is a regular expression. Needs python3-xlib.
"""

import re
import sys
import time

from Xlib import X, XK, display, error
from Xlib.ext import xtest
from Xlib.protocol import event

PATIENCE = 120  # seconds; a busy machine is ten times slower than an idle one

screen = display.Display()


def atom(name):
    return screen.intern_atom(name)


def windows(parent):
    yield parent
    for child in parent.query_tree().children:
        yield from windows(child)


def find(pattern):
    """The visible window whose title matches and that can be closed."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for window in windows(screen.screen().root):
            try:
                named = window.get_full_property(atom("_NET_WM_NAME"), atom("UTF8_STRING"))
                title = named.value.decode() if named else window.get_wm_name()
                closable = window.get_full_property(atom("WM_PROTOCOLS"), X.AnyPropertyType)
                visible = window.get_attributes().map_state == X.IsViewable
                if title and closable and visible and re.search(pattern, title):
                    return window
            except error.XError:
                continue  # It went away while it was looked at.
        time.sleep(0.05)
    sys.exit(f"there is no window named {pattern}")


def close(window):
    data = (32, [atom("WM_DELETE_WINDOW"), X.CurrentTime, 0, 0, 0])
    window.send_event(event.ClientMessage(window=window, client_type=atom("WM_PROTOCOLS"), data=data))


def press(window, keys):
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    screen.sync()
    time.sleep(0.5)  # Until the toolkit has noticed.
    for key in keys:
        if key.startswith("="):
            for letter in key[1:]:
                # The upper symbol of a key needs shift.
                code = screen.keysym_to_keycode(ord(letter))
                upper = screen.keycode_to_keysym(code, 0) != ord(letter)
                strike([XK.XK_Shift_L, ord(letter)] if upper else [ord(letter)])
        else:
            strike([XK.string_to_keysym(name) for name in key.split("+")])
        time.sleep(0.5)


def strike(symbols):
    """Presses keys together."""
    codes = [screen.keysym_to_keycode(symbol) for symbol in symbols]
    for code in codes:
        xtest.fake_input(screen, X.KeyPress, code)
    for code in reversed(codes):
        xtest.fake_input(screen, X.KeyRelease, code)
    screen.sync()
    time.sleep(0.01)


def main():
    what, title, *keys = sys.argv[1:]
    window = find(title)
    if what == "close":
        close(window)
    elif what == "leave":
        # It has to have had the focus to lose it.
        window.set_input_focus(X.RevertToNone, X.CurrentTime)
        screen.sync()
        time.sleep(0.5)
        screen.set_input_focus(X.NONE, X.RevertToNone, X.CurrentTime)
    else:
        press(window, keys)
    screen.sync()


main()
