"""Makes blocks.gguf: a matrix in each block format, and beside it, as 32-bit
floats, what the public `gguf` package (MIT) reads from it.

    pip install gguf==0.19.0 && python make_blocks.py
"""

from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

ROWS, COLUMNS = 3, 512
Type = gguf.GGMLQuantizationType
random = np.random.default_rng(1)


def scales(blocks, columns):
    """Half-precision numbers of the size of real scales, as bytes."""
    values = random.uniform(-0.02, 0.02, (blocks, columns)).astype(np.float16)
    return values.view(np.uint8)


def superblocks(size, at):
    """Blocks of 256 weights: random bits, with the scales at `at` sensible."""
    blocks = ROWS * COLUMNS // 256
    data = random.integers(0, 256, (blocks, size), dtype=np.uint8)
    for position, count in at:
        data[:, position : position + 2 * count] = scales(blocks, count)
    return data.reshape(ROWS, -1)


weights = random.normal(0, 0.05, (ROWS, COLUMNS)).astype(np.float32)
matrices = {kind: quantize(weights, kind) for kind in (
    Type.F16, Type.BF16, Type.Q8_0, Type.Q5_1, Type.Q5_0, Type.Q4_1, Type.Q4_0)}
matrices[Type.Q4_K] = superblocks(144, [(0, 2)])
matrices[Type.Q5_K] = superblocks(176, [(0, 2)])
matrices[Type.Q6_K] = superblocks(210, [(208, 1)])

writer = gguf.GGUFWriter(Path(__file__).with_name("blocks.gguf"), "whisper")
writer.add_string("made.by", "make_blocks.py")
writer.add_array("made.of", ["texts", "in", "an array"])
for kind, data in matrices.items():
    name = kind.name.lower()
    expected = dequantize(data, kind).astype(np.float32).reshape(ROWS, COLUMNS)
    raw = data if data.dtype == np.uint8 else data.view(np.uint8)
    writer.add_tensor(name, raw, raw_dtype=kind)
    writer.add_tensor(f"{name}.expected", expected)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
