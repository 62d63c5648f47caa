import { expect, it } from 'vitest';
import { add, linspace, ones } from '../functions.ts';
import { OperationError } from '@polygrad/compiler/shape/errors';
import { TensorHandle } from '../tensor/handle.ts';
import { putMissing } from './help.ts';

it('says which import to add, until methods are there', async () => {
  const t = linspace(0, 1, 4);
  expect(() => t.reshape([4, 1])).toThrow(OperationError);
  expect(() => t.reshape([4, 1])).toThrow(
    /^\[reshape\] no method reshape: .* call reshape\(x, \.\.\.\), or import '@polygrad\/core'/,
  );
  expect(add(t, 1).add(1).shape).toEqual([4]);

  // A page that imports both, in either order: one tensor, made before.
  await import('./methods.ts');
  expect(t.reshape([4, 1]).shape).toEqual([4, 1]);
  expect(Object.keys(ones([1]))).not.toContain('reshape');
});

it('knows all methods, and no others', async () => {
  const stubs = {};
  putMissing(stubs);
  await import('./methods.ts');
  const own = /^(add|sub|mul|div|data|array|item|dataSync|arraySync|itemSync|print|device|backward)$/;
  const members = new Set([
    'constructor',
    'shape',
    'ndim',
    'size',
    'dtype',
    'requiresGrad',
    'grad',
    'rebind',
    'assign',
    'dispose',
    'toString',
    'toJSON',
  ]);
  const real = Object.getOwnPropertyNames(TensorHandle.prototype).filter(
    // What helps with names of other libraries throws when it is read.
    (n) => !own.test(n) && !members.has(n) && !Object.getOwnPropertyDescriptor(TensorHandle.prototype, n)!.get,
  );
  expect(Object.getOwnPropertyNames(stubs).sort()).toEqual(real.sort());
});
