#!/bin/bash
# Puts NVIDIA's compiler and libraries, from its Python wheels, into cuda/:
#   cuda/home   what CUDA_HOME names while building; cuda/home/lib is the engine's library path
#   cuda/link   archives to link instead of the libraries (lazy-link.sh)
. "$(dirname "$0")/../lib.sh"

# The version that the programs' GPU code is made for; an older driver refuses it.
version=13.0.2
# About 100 MB to build with, 500 MB more to run with.
wheels="cuda-toolkit[nvcc,crt,nvvm,cudart,cccl,profiler,cublas,curand]==$version"
stamp=$root/cuda/.installed-for

[ "$(cat "$stamp" 2>/dev/null)" != "$wheels" ] || exit 0
[ "$(uname -m)" = x86_64 ] || fail "The CUDA engine is built on x86-64 only."

say "downloading NVIDIA's compiler and libraries (about 600 MB) into cuda/"
rm -rf cuda
mkdir -p cuda
python3 -m venv cuda/venv || fail "Python could not make a virtual environment."
cuda/venv/bin/pip install --quiet --disable-pip-version-check --no-compile "$wheels" ||
    fail "The wheels could not be installed. Is there a network?"

home=$(echo "$root"/cuda/venv/lib/python3*/site-packages/nvidia/cu13)
[ -x "$home/bin/nvcc" ] || fail "There is no nvcc in the wheels of CUDA $version."
ln -sfn "$home" cuda/home
ln -sfn lib "$home/lib64"
# The linker would prefer these to the archives, and the engine would not start without them.
rm -f "$home"/lib/*.so
scripts/cuda/lazy-link.sh cuda/link
ln -sfn ../home/lib/libcudart_static.a cuda/link/libcudart.a
printf '%s\n' "$wheels" >"$stamp"
