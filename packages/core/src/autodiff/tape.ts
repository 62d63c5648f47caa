/**
 * GradientTape: records what happens to watched tensors while ordinary code runs, and gives gradients afterwards. For code that is no function of
 * its tensors; where it is, `grad` needs no tape to end.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import { constant, cast } from '../graph/primitives.ts';
import {
  adoptResource,
  endRecording,
  holdFlushes,
  openRecordings,
  pauseRecording,
  restoreTracking,
  resumeRecording,
  startRecording,
  suspendTracking,
  traceScope,
  watchNode,
} from '../graph/scope.ts';
import type { Recording, RecordingOwner } from '../graph/state.ts';
import { isLeaf } from '../graph/recorder.ts';
import { hintCollector } from '../engine/pool.ts';
import { sameShape } from '@polygrad/compiler/shape/view';
import { isFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { showAs } from '#shown-as';
import { nodeOf } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { GradientError } from './backward.ts';
import { type Gradients, gradientsOf, leavesOf, type TensorTree, walk } from './walk.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** Options of `GradientTape`. */
export interface TapeOptions {
  /** Allow several calls of gradient(); end the tape with dispose(). Default false. */
  readonly persistent?: boolean;
}

/** Options of `gradient` of a tape. */
export interface TapeGradientOptions {
  /** Keep recording while gradients are computed, so that they can be differentiated too. Needs a persistent tape for another call. Default false. */
  readonly createGraph?: boolean;
  /** Gradient of the target to start from, of its shape. Default: ones. */
  readonly outputGradient?: Tensor;
}

/** Ends tapes that are unreachable, for instance because an exception came before gradient(). */
const forgotten = new FinalizationRegistry<Recording>(endRecording);
/** From this many tapes on, each further one triggers a search for unreachable ones. */
const manyTapes = 16;

/**
 * Records operations from its construction on: those on watched tensors, and those on requiresGrad leaves. Source: TensorFlow
 * `GradientTape`.
 *
 * A tape ends with its first gradient(), or if persistent with dispose() (or `using`); one made inside a scope ends with the scope.
 * An unreachable tape ends when it is garbage collected. At most 31 tapes and gradient functions are open at once.
 *
 * @example
 * const x = tensor([1, 2]);
 * const tape = new GradientTape();
 * tape.watch(x);
 * const y = x.mul(x).sum();
 * const slope = tape.gradient(y, x); // [2, 4]
 */
export class GradientTape {
  readonly persistent: boolean;
  /** For scopes. */
  kept: boolean = false;
  stamp: number = 0;
  #recording: Recording | null;
  /** Where the tape was made, formatted only on request. The tape has it, not the recording: it keeps the caller's frames alive. */
  readonly #made: Error = new Error();

  /** @throws ArgumentError where 31 tapes and gradient functions are open; it says where they were made */
  constructor(options: TapeOptions = {}) {
    checkNames('GradientTape', options, 'persistent?');
    this.persistent = options.persistent ?? false;
    if (openRecordings() >= manyTapes) hintCollector();
    this.#recording = startRecording('GradientTape', true, GradientTape.#ownerOf(this));
    forgotten.register(this, this.#recording, this.#recording);
    adoptResource(this);
  }

  /** True once the tape has ended. */
  get disposed(): boolean {
    return this.#recording === null;
  }

  /**
   * Follows tensors from now on.
   *
   * @throws DTypeError for tensors that are no floats; GradientError if the tape has ended
   */
  watch(...tensors: Tensor[]): void {
    const recording = this.#active('watch');
    for (const t of tensors) {
      const node = nodeOf(t, 'watch');
      if (!isFloat(node.dtype))
        throw new DTypeError(
          'watch',
          say`dtype not accepted: ${node.dtype}; only floating-point tensors have gradients`,
          [node.dtype],
        );
      watchNode(recording, node);
    }
  }

  /**
   * Runs a function without recording it; returns its result.
   *
   * @throws GradientError if the tape has ended
   */
  stopRecording<T>(body: () => T): T {
    const recording = this.#active('stopRecording');
    pauseRecording(recording);
    try {
      return body();
    } finally {
      if (this.#recording !== null) resumeRecording(recording);
    }
  }

  /**
   * The gradients of `target` by tensors on the tape, in their structure; zeros for tensors it does not depend on. A target of several elements is
   * summed.
   *
   * @param sources a tensor, or nested arrays and plain objects of tensors: watched, requiresGrad leaves, or computed on the tape
   * @throws GradientError if the tape has ended or a source is none of those; ShapeError if outputGradient has not the shape of the target
   */
  gradient<S extends TensorTree>(target: Tensor, sources: S, options: TapeGradientOptions = {}): S {
    checkNames('gradient', options, 'createGraph? outputGradient');
    const recording = this.#active('gradient');
    const node = nodeOf(target, 'gradient');
    const { createGraph = false, outputGradient } = options;
    return traceScope(() => {
      const state = createGraph ? null : suspendTracking('recordings');
      if (!createGraph) pauseRecording(recording);
      try {
        for (const { node: source } of leavesOf('gradient', sources))
          if ((source.pins & recording.bit) === 0 && !isLeaf(source))
            throw new GradientError(
              'gradient',
              say`the tape does not know a ${source.dtype} ${showShape(source.shape)}: watch() it before it is used`,
            );
        return holdFlushes(() => {
          const seed =
            outputGradient === undefined
              ? constant(1, node.dtype, node.shape)
              : cast(nodeOf(outputGradient, 'gradient'), node.dtype);
          if (!sameShape(seed.shape, node.shape))
            throw new ShapeError(
              'gradient',
              say`shapes differ: ${showShape(node.shape)} and outputGradient ${showShape(seed.shape)}; make them equal`,
              [node.shape, seed.shape],
            );
          const gradients: Gradients = new Map([[node, seed]]);
          const { bit, nodes } = recording;
          walk(nodes, nodes.length, gradients, (source) => (source.pins & bit) !== 0 || isLeaf(source));
          return gradientsOf('gradient', gradients, sources) as S;
        });
      } finally {
        if (!this.persistent && !createGraph) this.dispose();
        else if (!createGraph) resumeRecording(recording);
        if (state !== null) restoreTracking(state);
      }
    });
  }

  /** Ends the tape: nothing is recorded any more and what it held goes. Calling it again does nothing. */
  dispose(): void {
    if (this.#recording === null) return;
    forgotten.unregister(this.#recording);
    endRecording(this.#recording);
    this.#recording = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Tells of a tape without keeping it alive. */
  static #ownerOf(tape: GradientTape): RecordingOwner {
    const ref = new WeakRef(tape);
    return {
      origin: () => {
        const found = ref.deref();
        return found === undefined ? null : callerOf(found.#made);
      },
    };
  }

  #active(op: string): Recording {
    if (this.#recording === null)
      throw new GradientError(
        op,
        'the tape has ended: it gives one gradient unless made with { persistent: true }, and ends with its scope',
      );
    return this.#recording;
  }
}

/** The line of a stack trace for who called the constructor that made it: `at train (loop.ts:12:18)`. */
function callerOf({ stack }: { readonly stack?: unknown }): string {
  const lines = typeof stack === 'string' ? stack.split('\n').filter((line) => /:\d+:\d+/.test(line)) : [];
  return lines[1]?.trim() ?? 'at an unknown place';
}

showAs(GradientTape.prototype, ({ persistent, disposed }) => ({ persistent, disposed }), 'GradientTape');
