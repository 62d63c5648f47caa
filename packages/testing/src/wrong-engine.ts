/** An engine one of whose kernels computes wrongly, as with a driver that miscompiles: for tests of self-tests. */
import type { Command, IEngine } from '@polygrad/core/engine';

/**
 * Wraps any engine. Of the dispatches submitted, the one of this number writes a wrong word at the start of its result, and says nothing.
 *
 * @param inner what computes
 * @param at the number of the dispatch, from 1
 * @example
 * import { selfTest } from '@polygrad/core/engine/self-test';
 * import { createReferenceEngine, createWrongEngine } from '@polygrad/testing';
 * const { wrong } = await selfTest(createWrongEngine(createReferenceEngine(), 1));
 * console.log(wrong); //=> element 0 of a product is 7, expected -3
 */
export function createWrongEngine(inner: IEngine, at: number): IEngine {
  let count = 0;
  const spoiled = (command: Command): Command[] => {
    if (command.kind !== 'dispatch' || ++count !== at) return [command];
    const written = command.kernel.program.params.findIndex(({ arg }) => arg.access !== 'read');
    const to = command.bindings[written];
    // 7 as float32; as float16 the first is 0.
    return to === undefined ? [command] : [command, { kind: 'fill', to: { ...to, bytes: 4 }, pattern: 0x40e00000 }];
  };
  const submit = (commands: readonly Command[]): void => inner.submit(commands.flatMap(spoiled));
  // Engines have private members, so that calls must reach the engine itself.
  return new Proxy(inner, {
    get(target, key) {
      if (key === 'submit') return submit;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
