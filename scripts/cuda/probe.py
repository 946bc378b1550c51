#!/usr/bin/env python3
"""Asks the NVIDIA driver for its devices: prints `CAPABILITY,... DRIVER`, the lowest
first, e.g. `75,89 13000`, or a sentence why there is none, with status 1."""

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
    found = set()
    for device in range(number("cuDeviceGetCount")):
        handle = number("cuDeviceGet", device)
        major, minor = (number("cuDeviceGetAttribute", attribute, handle) for attribute in (MAJOR, MINOR))
        found.add(10 * major + minor)
    if not found:
        sys.exit("The NVIDIA driver knows no GPU.")
    capabilities = ",".join(str(capability) for capability in sorted(found))
    print(f"{capabilities} {number('cuDriverGetVersion')}")


main()
