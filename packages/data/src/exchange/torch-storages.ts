/** PyTorch's classes of storages by element type. Those types that came with PyTorch 2.3 have none. */
import type { HostDType } from '../arrays.ts';

export const storageNames: Readonly<Partial<Record<HostDType, string>>> = {
  float64: 'DoubleStorage',
  float32: 'FloatStorage',
  float16: 'HalfStorage',
  bfloat16: 'BFloat16Storage',
  int64: 'LongStorage',
  int32: 'IntStorage',
  int16: 'ShortStorage',
  int8: 'CharStorage',
  uint8: 'ByteStorage',
  bool: 'BoolStorage',
};
