#!/usr/bin/python3
"""Drops files on a window of an X11 screen, as a file manager would: by the
XDND protocol (version 5, freedesktop.org), with no pointer and no window
manager.

usage: drop-files.py TITLE FILE...        drops them
       drop-files.py --hover TITLE FILE...  holds them over it and goes away

Ends with 0 where the window took the drop. Needs python3-xlib.
"""

import os
import sys
import time
import urllib.parse

from Xlib import X, Xatom, display, error
from Xlib.protocol import event

PATIENCE = 20  # seconds
HOVER = 0.3

screen = display.Display()


def atom(name):
    return screen.intern_atom(name)


def windows(parent):
    yield parent
    for child in parent.query_tree().children:
        yield from windows(child)


def title(window):
    named = window.get_full_property(atom("_NET_WM_NAME"), atom("UTF8_STRING"))
    return named.value.decode() if named else window.get_wm_name()


def find(wanted):
    """The visible window of that title that takes drops, and its version of the protocol."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for window in windows(screen.screen().root):
            try:
                aware = window.get_full_property(atom("XdndAware"), X.AnyPropertyType)
                visible = window.get_attributes().map_state == X.IsViewable
                if aware and visible and title(window) == wanted:
                    return window, min(5, aware.value[0])
            except error.XError:
                continue  # It went away while it was looked at.
        time.sleep(0.05)
    sys.exit(f"there is no window named {wanted} that takes drops")


class Drag:
    """Files on their way to a window."""

    def __init__(self, target, version, files):
        self.target, self.version = target, version
        lines = [f"file://{urllib.parse.quote(os.path.abspath(file))}\r\n" for file in files]
        self.uris = "".join(lines).encode()
        self.served = False
        root = screen.screen().root
        self.source = root.create_window(-9, -9, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask)
        self.source.change_property(atom("XdndAware"), Xatom.ATOM, 32, [5])
        self.source.set_selection_owner(atom("XdndSelection"), X.CurrentTime)
        size = target.get_geometry()
        place = root.translate_coords(target, size.width // 2, size.height // 2)
        self.x, self.y = place.x, place.y

    def send(self, kind, *data):
        data = [self.source.id, *data] + [0] * (4 - len(data))
        message = event.ClientMessage(window=self.target, client_type=atom(kind), data=(32, data))
        self.target.send_event(message)
        screen.flush()

    def answer(self, wanted, seconds):
        """Hands over what is asked for until a message of that kind arrives; its data or None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while screen.pending_events():
                got = screen.next_event()
                if got.type == X.SelectionRequest:
                    self.serve(got)
                elif got.type == X.ClientMessage and got.client_type == atom(wanted):
                    return got.data[1]
            time.sleep(0.005)
        return None

    def serve(self, request):
        uri_list, targets = atom("text/uri-list"), atom("TARGETS")
        property = request.property or request.target
        if request.target == targets:
            request.requestor.change_property(property, Xatom.ATOM, 32, [targets, uri_list])
        elif request.target == uri_list:
            request.requestor.change_property(property, uri_list, 8, self.uris)
            self.served = True
        else:
            property = 0
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time,
                requestor=request.requestor,
                selection=request.selection,
                target=request.target,
                property=property,
            )
        )
        screen.flush()

    def enter(self):
        """Moves over the window until it wants the files. It has to see them first."""
        self.send("XdndEnter", self.version << 24, atom("text/uri-list"))
        end = time.monotonic() + PATIENCE
        step = 0
        while time.monotonic() < end:
            step += 1
            self.send("XdndPosition", 0, (self.x + step % 2) << 16 | self.y, X.CurrentTime, atom("XdndActionCopy"))
            status = self.answer("XdndStatus", 1)
            if status is not None and status[1] & 1 and self.served and step > 2:
                self.answer("", HOVER)
                return True
            self.answer("", 0.05)
        return False

    def leave(self):
        self.send("XdndLeave")
        self.answer("", 0.2)

    def drop(self):
        self.send("XdndDrop", 0, X.CurrentTime)
        return self.answer("XdndFinished", PATIENCE) is not None


def main():
    arguments = sys.argv[1:]
    hover = arguments[:1] == ["--hover"]
    name, *files = arguments[hover:]
    drag = Drag(*find(name), files)
    if not drag.enter():
        drag.leave()
        sys.exit("the window does not want the files")
    if hover:
        drag.leave()
    elif not drag.drop():
        sys.exit("the window did not take the files")


main()
