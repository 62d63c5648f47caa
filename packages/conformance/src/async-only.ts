/**
 * An engine without synchronous reads. The suite runs through it, which proves that nothing in the library needs one
 * (idea: TensorFlow.js's test_async_backends).
 */
import type { IEngine } from '@polygrad/core/engine';

export function asyncOnly(engine: IEngine): IEngine {
  return new Proxy(engine, {
    get(target, key) {
      if (key === 'downloadSync') return undefined;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
