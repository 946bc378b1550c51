#!/usr/bin/python3
"""Simulates logind and a desktop that shows notifications and files. Prints a line per call
and "released" when an inhibitor is closed. Refuses the reason "refuse"."""

import os
import sys

from gi.repository import Gio, GLib

LOGIND = """<node><interface name="org.freedesktop.login1.Manager"><method name="Inhibit">
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="h" direction="out"/></method></interface></node>"""
DESKTOP = """<node><interface name="org.freedesktop.Notifications"><method name="Notify">
<arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{sv}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/>
</method></interface></node>"""

FILES = """<node><interface name="org.freedesktop.FileManager1"><method name="ShowItems">
<arg type="as" direction="in"/><arg type="s" direction="in"/></method></interface></node>"""


def say(line):
    print(line, flush=True)


def inhibit(connection, sender, path, interface, method, arguments, call):
    if arguments.unpack()[2] == "refuse":
        call.return_dbus_error("org.freedesktop.DBus.Error.AccessDenied", "Access denied")
        return
    say("inhibit " + " ".join(arguments.unpack()))
    ours, theirs = os.pipe()
    files = Gio.UnixFDList.new()
    number = files.append(theirs)
    os.close(theirs)
    call.return_value_with_unix_fd_list(GLib.Variant("(h)", (number,)), files)

    def closed(*_):
        say("released")
        return False

    GLib.io_add_watch(ours, GLib.PRIORITY_DEFAULT, GLib.IO_HUP, closed)


def notify(connection, sender, path, interface, method, arguments, call):
    name, _, _, title, text, *_ = arguments.unpack()
    say(f"notify {name}: {title}, {text}")
    call.return_value(GLib.Variant("(u)", (1,)))


def show(connection, sender, path, interface, method, arguments, call):
    say("show " + " ".join(arguments.unpack()[0]))
    call.return_value(None)


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
for name, path, xml, answer in [
    ("org.freedesktop.login1", "/org/freedesktop/login1", LOGIND, inhibit),
    ("org.freedesktop.FileManager1", "/org/freedesktop/FileManager1", FILES, show),
    ("org.freedesktop.Notifications", "/org/freedesktop/Notifications", DESKTOP, notify),
]:
    interface = Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0]
    bus.register_object(path, interface, answer, None, None)
    request = ("RequestName", GLib.Variant("(su)", (name, 4)), GLib.VariantType("(u)"))
    bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", *request, 0, -1)
say("ready")
try:
    GLib.MainLoop().run()
except KeyboardInterrupt:
    sys.exit(0)
