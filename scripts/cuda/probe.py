#!/usr/bin/env python3
"""Asks the NVIDIA driver for the first device: prints `CAPABILITY DRIVER`, e.g.
`89 13000`, or a sentence why there is none, with status 1."""

import ctypes
import sys

MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


def main():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        sys.exit("There is no NVIDIA driver (libcuda.so.1).")

    def call(name, *arguments):
        status = getattr(driver, name)(*arguments)
        if status:
            sys.exit(f"The NVIDIA driver answers {name} with error {status}: there is no usable GPU.")

    def number(name, *arguments):
        value = ctypes.c_int()
        call(name, ctypes.byref(value), *arguments)
        return value.value

    call("cuInit", 0)
    device = number("cuDeviceGet", 0)
    major, minor = (number("cuDeviceGetAttribute", attribute, device) for attribute in (MAJOR, MINOR))
    print(f"{major}{minor} {number('cuDriverGetVersion')}")


main()
