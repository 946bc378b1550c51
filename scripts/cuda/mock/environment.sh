# Sourced: what the CUDA engine is compiled with where no NVIDIA software is, to be linted and for the emulated card.
# The same for both, so that one can use what the other compiled.
# shellcheck shell=bash

export NVCC=$root/scripts/cuda/fake-nvcc CUDARC_CUDA_VERSION=13000 CUDA_COMPUTE_CAP=80
# What the emulated card's devices are (scripts/cuda/mock/driver.c).
export STENO_CUDA_CAPABILITIES=75,80
