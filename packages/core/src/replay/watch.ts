/**
 * What holds for every call that runs a compiled function, recorded or not: it must not read values, because replays would not.
 */
import { OperationError } from '@polygrad/compiler/shape/errors';
import { graph } from '../graph/state.ts';

export class Watch {
  /** The refused read; the function may have caught the error. */
  refused: OperationError | null = null;

  /** Runs a function. */
  watching<T>(body: () => T): T {
    graph.refuseRead = () => this.#refuse();
    try {
      return body();
    } finally {
      graph.refuseRead = null;
    }
  }

  #refuse(): never {
    this.refused = new OperationError(
      'compile',
      'a value is read inside a compiled function, which later calls would not do; return the tensor and read it after the call, or choose by value with where()',
    );
    throw this.refused;
  }
}
