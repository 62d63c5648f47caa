"""The file: gzip of a length, a JSON index and numbers.

    8 bytes   'PGGOLD01'
    uint32    bytes of the JSON text, little-endian
    ...       JSON: { framework, cases }
    6 x n     the n numbers of all cases in the order in which the index needs them, in six planes of bytes: first the
              highest byte of every number, then the second ...

A number is a float64 rounded to its upper six bytes: 37 significant bits, a relative error of at most 2^-37 = 7e-12, far
below every tolerance. Whole numbers up to 2^37 and all float32 values are exact. Larger integers stand in the index as text.
"""

import gzip
import json
import struct

import numpy as np


def upper(values):
    """float64 values rounded to their upper 48 bits, as uint64 words."""
    x = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    w = x.view(np.uint64).copy()
    finite = np.isfinite(x)
    w[finite] += np.uint64(0x8000)
    w[np.isnan(x)] = np.uint64(0x7FF8000000000000)
    return w >> np.uint64(16)


def write(path, index, numbers):
    words = np.concatenate([upper(v) for v in numbers]) if numbers else np.zeros(0, np.uint64)
    planes = [((words >> np.uint64(8 * (5 - i))) & np.uint64(255)).astype(np.uint8).tobytes() for i in range(6)]
    text = json.dumps(index, separators=(',', ':'), allow_nan=False).encode('ascii')
    body = b'PGGOLD01' + struct.pack('<I', len(text)) + text + b''.join(planes)
    packed = gzip.compress(body, compresslevel=9, mtime=0)
    with open(path, 'wb') as f:
        f.write(packed)
    return len(packed), len(text), len(words)
