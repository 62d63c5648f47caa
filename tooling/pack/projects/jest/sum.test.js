import { expect, jest, test } from '@jest/globals';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { allClose, setEngine, tensor } from '@polygrad/core';
import { extendExpect } from '@polygrad/core/matchers';

extendExpect(expect);

test('tensors in jest', async () => {
  const engine = createCpuEngine({ threads: 1 });
  await setEngine(engine);
  const [a, b] = [tensor([1, 2]), tensor([1, 3])];
  expect(a.add(1)).toBeCloseToTensor([2, 3]);
  expect(() => expect(a).toBeCloseToTensor(b)).toThrow('1 of 2 elements differ, most at [1]');
  expect(a).toEqual(tensor([1, 2]));
  expect(() => expect(a).toEqual(b)).toThrow();
  const called = jest.fn();
  called(a);
  expect(called).toHaveBeenCalledWith(a);
  expect(await allClose(a, b)).toBe(false);
  // What prints is loaded now.
  const shown = jest.spyOn(console, 'log').mockImplementation(() => {});
  await a.print();
  expect(shown.mock.calls).toEqual([['[1. 2.]']]);
  shown.mockRestore();
  engine.dispose();
});
