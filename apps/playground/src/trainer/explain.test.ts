import { DeviceLostError, OutOfMemoryError } from '@polygrad/core';
import { DataError } from '@polygrad/data';
import { Linear } from '@polygrad/nn';
import { expect, it } from 'vitest';
import { LayerError } from '../common/layers.ts';
import { explain } from './explain.ts';

it('puts errors into sentences', () => {
  const sizes = { requested: 5_000_000, live: 2_000_000, reserved: 0, limit: 6_000_000 };
  expect(explain(new OutOfMemoryError('cpu', sizes))).toBe(
    'Out of memory: 5.0 MB were asked for with 2.0 MB in use. Choose a smaller batch or smaller layers.',
  );
  expect(explain(new DeviceLostError('webgpu', 'a card', 'it went'))).toMatch(
    /^The device is lost \(a card\): it went;.*\.$/,
  );
  expect(explain(new DataError('truncated', 'a.safetensors', '[safetensors] a.safetensors is truncated'))).toBe(
    'a.safetensors is truncated.',
  );
  expect(explain(new LayerError(2, 'too small'))).toBe('Layer 3: too small.');
  const other = { weight: { dtype: 'float32', shape: [1, 2], data: new Float32Array(2) } } as const;
  const refused = (): unknown => {
    try {
      return new Linear(2, 1).loadStateDict(other);
    } catch (error) {
      return error;
    }
  };
  expect(explain(refused())).toBe(
    "The file holds the weights of another network. The state lacks 'bias'. Build the network they belong to, or choose another file.",
  );
  expect(explain('what?')).toBe('what?');
});
